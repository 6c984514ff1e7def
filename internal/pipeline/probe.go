package pipeline

import (
	"slices"

	"github.com/prometheus/client_golang/prometheus"

	"assay/consumer"
	"assay/internal/interaction/decode"
	"assay/sampler"
)

// A prober counts records that no check selects by what the decoder's fast path reads of
// them. It belongs to a partition's loop.
//
// What it read of a record that some check selects is thrown away: the record is decoded
// in full, and the full decisions count. They must be the same; that they are is
// checked here too, since a difference would bend the weights of everything.
type prober struct {
	fast      *decode.Prober
	decisions []sampler.Decision // of the last record that was selected
	selected  bool

	interactions, declined, read, again, differs prometheus.Counter
	decided                                      [][4]prometheus.Counter // by check, kind
	decoded                                      map[string]prometheus.Counter
}

// What became of a record that the fast path was asked about, as label values.
const (
	fastRead     = "read"     // no check selects it, and nothing more was read of it
	fastSelected = "selected" // some check does: it was decoded in full after all
	fastDeclined = "declined" // only the full decode can read it
	fastDiffers  = "differs"  // the full decode decided otherwise, and counts
)

func fastResults() []string { return []string{fastRead, fastSelected, fastDeclined, fastDiffers} }

// newProber is nil where every record of the topic is decoded in full.
func (p *Pipeline) newProber(topic string) *prober {
	if p.plan == nil {
		return nil
	}
	fast := p.deps.Decoder.Prober(topic, *p.plan)
	if fast == nil {
		return nil
	}
	pr := &prober{
		fast:         fast,
		interactions: p.metrics.interactions.WithLabelValues(topic),
		declined:     p.metrics.fast.WithLabelValues(topic, fastDeclined),
		read:         p.metrics.fast.WithLabelValues(topic, fastRead),
		again:        p.metrics.fast.WithLabelValues(topic, fastSelected),
		differs:      p.metrics.fast.WithLabelValues(topic, fastDiffers),
		decoded:      make(map[string]prometheus.Counter),
	}
	for _, c := range p.checks {
		var kinds [4]prometheus.Counter
		for i := range kinds {
			kinds[i] = p.metrics.decisions.WithLabelValues(c.Name, sampler.Kind(i+1).String())
		}
		pr.decided = append(pr.decided, kinds)
	}
	return pr
}

// passOver counts a record that no check selects, without decoding it in full. It is
// false when the record is still to be decoded, and nothing was counted. While the joiner
// keeps halves every record is told to it.
func (pt *partition) passOver(d *consumer.Delivery) bool {
	pr := pt.prober
	if pr == nil {
		return false
	}
	pr.selected = false
	if d.Fault != "" || !pt.joins.joiner.Idle() {
		return false
	}
	res, ok := pr.fast.Probe(d.Record)
	if !ok || res.Interactions[0].Feedback != nil { // which becomes a label
		pr.declined.Inc()
		return false
	}
	if d.Record.Offset < pt.counts { // read for its halves only, and has none
		return true
	}
	it := &res.Interactions[0]
	it.Time = plausible(it.Time, d.Record.Time)
	pt.cells = pt.cells[:0]
	pt.count(it)
	if !d.Below && slices.ContainsFunc(pt.decisions, isSelected) {
		pr.selected, pr.decisions = true, append(pr.decisions[:0], pt.decisions...)
		pr.again.Inc()
		return false
	}
	pt.ledger.Count(d.Record.Offset, d.Record.Time, false, pt.cells)
	if !d.Below {
		pr.read.Inc()
		pr.count(pt, res)
	}
	return true
}

// count is Pipeline.count for a record with one interaction, by counters that it keeps:
// to find them again costs more than all the rest.
func (pr *prober) count(pt *partition, res decode.Result) {
	pr.interactions.Inc()
	for i := range pt.decisions {
		pr.decided[pt.decisions[i].Check][pt.decisions[i].Kind-1].Inc()
	}
	counter := pr.decoded[res.Format]
	if counter == nil {
		counter = pt.pipeline.decoded.Of(pt.topic, res)
		pr.decoded[res.Format] = counter
	}
	counter.Inc()
}

func isSelected(d sampler.Decision) bool { return d.Kind == sampler.Selected }

// compare holds what the full decode gave, so many interactions and the decisions about
// the last of them, against the one that the fast path read.
func (pt *partition) compare(offset int64, interactions int) {
	pr := pt.prober
	if pr == nil || !pr.selected {
		return
	}
	pr.selected = false
	if interactions == 1 && slices.Equal(pr.decisions, pt.decisions) {
		return
	}
	pr.differs.Inc()
	pt.log.Error("the fast path decided otherwise than the full decode, which counts", "offset", offset)
}
