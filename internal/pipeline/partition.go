package pipeline

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"assay/consumer"
	"assay/internal/interaction"
	"assay/internal/interaction/decode"
	"assay/sampler"
	"assay/sink"
)

// errRevoked is why a judgement was cut off at the end of a drain: its record stays
// unresolved and the next owner reads it again.
var errRevoked = errors.New("partition revoked")

// partition is one partition of one generation.
type partition struct {
	pipeline *Pipeline
	topic    string
	id       uint32
	log      *slog.Logger
	counts   int64 // offset at which counting starts: those below stand in the ledger and are resolved
	ledger   *sampler.Ledger
	answered map[sink.AnswerKey]struct{} // immutable
	queues   []*queue                    // by check; checks with one judge share it
	letters  *queue                      // what is left of refused rows: it waits for the sink, and must not take a judge's slot
	labels   labels
	unstored atomic.Bool // a row that was refused even bare was logged

	judging context.Context // of judgements and of the rows they hand over
	revoke  context.CancelCauseFunc

	// Of the partition loop alone; the last two are kept between records to save
	// allocations.
	joins     joins
	decisions []sampler.Decision
	cells     []sampler.Cell
	prober    *prober // nil: every record is decoded in full
}

func (p *Pipeline) newPartition(a consumer.Assignment, from int64, answered map[sink.AnswerKey]struct{}) *partition {
	judging, revoke := context.WithCancelCause(context.Background())
	pt := &partition{
		pipeline: p,
		topic:    a.Topic,
		id:       uint32(a.Partition),
		log:      p.deps.Log.With("topic", a.Topic, "partition", a.Partition),
		counts:   from,
		ledger:   sampler.NewLedger(a.Topic, a.Partition, p.rules, from),
		joins:    newJoins(p.deps.Decoder.NewJoiner(a.Topic)),
		answered: answered,
		judging:  judging,
		revoke:   revoke,
	}
	byJudge := make(map[string]*queue)
	for _, c := range p.checks {
		q := byJudge[c.Judge]
		if q == nil {
			q = c.slots.queue()
			byJudge[c.Judge] = q
		}
		pt.queues = append(pt.queues, q)
	}
	pt.letters = newSlots(1).queue()
	pt.prober = p.newProber(a.Topic)
	pt.labels.queue = p.writers.queue()
	return pt
}

// Handle decodes a record, decides, counts, and starts what has to be judged.
func (pt *partition) Handle(ctx context.Context, d consumer.Delivery) {
	t := pt.take(&d)
	switch {
	case d.Below: // resolved by an earlier owner: counted again, nothing else
	case t.unit == nil:
		t.finish(d)
	default:
		d.Record = interaction.Record{} // the unit outlives the bytes
		pt.start(ctx, t, d)
	}
}

// take counts a record and returns what has to be done about it. The ledger learns of
// the record before anything of it can be resolved, so a watermark never passes an offset
// that is not counted.
func (pt *partition) take(d *consumer.Delivery) taken {
	defer pt.trim()
	p, rec := pt.pipeline, &d.Record
	rec.Time = plausible(rec.Time, epoch1970)
	if pt.passOver(d) {
		return taken{outcome: consumer.NotNeeded}
	}
	res := pt.decode(d)
	if rec.Offset < pt.counts { // read for its halves only
		pt.countJoins(false)
		return taken{outcome: consumer.NotNeeded}
	}
	logMinute := minuteOf(rec.Time)
	pt.cells = pt.cells[:0]
	for _, reason := range res.Skips {
		pt.cells = append(pt.cells, sampler.Cell{Minute: logMinute, Decision: "no_interaction", Reason: reason})
	}
	for _, bad := range res.Bad {
		pt.cells = append(pt.cells, sampler.Cell{Minute: logMinute, Decision: "dead_lettered", Reason: bad.Reason})
	}
	if len(res.Scores) > 0 && len(res.Interactions)+len(pt.cells) == 0 {
		pt.cells = append(pt.cells, sampler.Cell{Minute: logMinute, Decision: "no_interaction", Reason: reasonScore})
	}
	outcome := consumer.NotNeeded
	if len(res.Interactions) == 0 {
		outcome = consumer.NoInteraction
	}
	var jobs []job
	for i := range res.Interactions {
		it := &res.Interactions[i]
		it.Time = plausible(it.Time, rec.Time)
		more, answered := pt.decide(it, d.Below, jobs)
		if answered != nil {
			outcome = consumer.Durable
			if len(more) == len(jobs) {
				more = append(more, *answered)
			}
		}
		if len(more) > len(jobs) {
			more[len(jobs)].text = true
		}
		jobs = more
	}
	pt.compare(rec.Offset, len(res.Interactions))
	if res.Kept {
		pt.cells = markKept(pt.cells, logMinute)
	}
	t := taken{jobs: jobs, outcome: outcome}
	if !d.Below {
		t.labels = p.labelsOf(rec, &res)
	}
	rows, held := len(jobs)+len(res.Bad)+len(t.labels) > 0, res.Held > 0
	pt.ledger.Count(rec.Offset, rec.Time, !d.Below && (rows || held), pt.cells)
	pt.countJoins(!d.Below)
	if d.Below {
		return taken{}
	}
	p.count(pt.topic, res, pt.cells)
	t.frees = pt.joins.take(res.Released)
	if !rows && !held {
		return t
	}
	var letter sink.DeadLetter
	if len(jobs)+len(res.Bad) > 0 {
		letter = pt.letter(rec)
	}
	if len(res.Bad) > 0 {
		p.fill(&letter, rec, res.Bad)
	}
	t.unit = newUnit(pt, rec.Offset, letter, t, len(res.Bad) > 0, held)
	if held {
		pt.joins.hold(rec.Offset, t.unit)
	}
	return t
}

// start sets a record's rows on their way; end is told when they are durable.
func (pt *partition) start(ctx context.Context, t taken, end ending) {
	u := t.unit
	u.end = end
	if u.rows.Load() == 0 { // it only waits for another record
		u.durable()
		return
	}
	if u.dead {
		// A full buffer blocks here on purpose, so that fetching stops. The wait ends
		// with ctx: a drain cannot begin before Handle has returned.
		pt.addDeadLetter(ctx, u, u.letter)
	}
	if len(t.labels) > 0 {
		pt.addLabels(u, t.labels)
	}
	for _, j := range t.jobs {
		j.unit = u
		pt.queues[j.check].put(func() { pt.judge(j) })
	}
}

// maxSpareCells is how many cells are kept between records: no giant that one record of
// many elements made.
const maxSpareCells = 4096

func (pt *partition) trim() {
	if cap(pt.cells) > maxSpareCells {
		pt.cells = nil
	}
}

// decode reads the record, unless handling it has panicked before.
func (pt *partition) decode(d *consumer.Delivery) decode.Result {
	if d.Fault != "" {
		return decode.Result{
			Bad:     []decode.Bad{{Reason: d.Fault, Error: "handling this record panicked again and again; the log has the stack"}},
			Format:  "unknown",
			Outcome: decode.DeadLetter, Envelope: "none",
		}
	}
	return pt.joins.joiner.Decode(d.Record)
}

// count decides about one interaction and adds its cells.
func (pt *partition) count(it *interaction.Interaction) {
	p := pt.pipeline
	minute := minuteOf(it.Time)
	pt.cells = append(pt.cells, sampler.Cell{Minute: minute, Decision: "interaction"})
	pt.decisions = p.sampler.Decide(it, pt.decisions[:0])
	for _, d := range pt.decisions {
		c := &p.checks[d.Check]
		pt.cells = append(pt.cells, sampler.Cell{
			Minute: minute, Check: c.Name, Version: c.Version, Stratum: d.Stratum,
			Decision: d.Kind.String(), Reason: d.Reason, Pi: d.Pi, Epoch: d.Epoch,
		})
	}
}

// decide counts one interaction and collects the judgements it needs. It returns one of
// those that an earlier owner has finished, if there is any.
func (pt *partition) decide(it *interaction.Interaction, below bool, jobs []job) (_ []job, answered *job) {
	p := pt.pipeline
	pt.count(it)
	for _, d := range pt.decisions {
		c := &p.checks[d.Check]
		if d.Kind != sampler.Selected || below {
			continue
		}
		key := sink.AnswerKey{Offset: uint64(it.Offset), Element: uint16(it.Element), Check: c.Name, Version: c.Version}
		if _, ok := pt.answered[key]; ok {
			p.metrics.recovered.WithLabelValues(c.Name).Inc()
			answered = &job{it: it, check: d.Check, decision: d, answered: true}
			continue
		}
		jobs = append(jobs, job{it: it, check: d.Check, decision: d})
	}
	return jobs, answered
}

// Flush makes the ledger durable up to a watermark; the committer calls it before it
// commits.
func (pt *partition) Flush(ctx context.Context, watermark int64) error {
	batch := pt.ledger.Flush(watermark)
	rows := batch.Counts()
	if len(rows) == 0 {
		return nil
	}
	if err := pt.pipeline.deps.Rows.InsertPopulation(ctx, pt.population(rows)); err != nil {
		return err // the same cells come with the next flush
	}
	batch.Done()
	return nil
}

// population are the ledger's counts as rows.
func (pt *partition) population(counts []sampler.Count) []sink.Population {
	rows := make([]sink.Population, 0, len(counts))
	for _, c := range counts {
		rows = append(rows, sink.Population{
			Topic: pt.topic, Partition: pt.id, Block: uint64(c.Block), SegmentFrom: uint64(c.SegmentFrom),
			Minute: time.Unix(c.Minute*60, 0).UTC(), Check: c.Check, CheckVersion: c.Version, Stratum: c.Stratum,
			Decision: c.Decision, Reason: c.Reason, Pi: c.Pi, Epoch: c.Epoch,
			N: c.N, UptoOffset: uint64(c.UptoOffset), LogTime: c.LogTime, ChecksHash: c.ChecksHash,
		})
	}
	return rows
}

// Drain forgets what has not started, gives running judgements until ctx ends and then
// cuts them off: no row, not resolved. Then it makes finished rows durable.
func (pt *partition) Drain(ctx context.Context) error {
	pt.drop()
	cut := pt.wait(ctx)
	if cut == nil {
		return nil
	}
	pt.revoke(errRevoked)
	_ = pt.wait(context.WithoutCancel(ctx)) // a cut-off judge returns at once
	return cut
}

// FlushRows makes the rows of finished judgements durable.
func (pt *partition) FlushRows(ctx context.Context) error {
	return pt.pipeline.deps.Rows.Flush(ctx)
}

// Close ends what the partition still holds; nothing of it is resolved any more.
func (pt *partition) Close() {
	pt.drop()
	pt.revoke(errRevoked)
	_ = pt.wait(context.Background()) // its end is no error
}

// drop forgets what has not started, in every queue.
func (pt *partition) drop() {
	for _, q := range pt.queues {
		q.drop()
	}
	pt.letters.drop()
	pt.labels.queue.drop()
}

// wait returns when nothing that was dropped runs any more.
func (pt *partition) wait(ctx context.Context) error {
	for _, q := range pt.queues {
		if err := q.wait(ctx); err != nil {
			return err
		}
	}
	if err := pt.labels.queue.wait(ctx); err != nil {
		return err
	}
	return pt.letters.wait(ctx)
}

// lastYear bounds the times that every table can hold. A producer that wrote
// microseconds for milliseconds is tens of thousands of years ahead, and rows with such
// a time are refused: the ledger's, and with it every later commit of the partition.
const lastYear = 2105

// plausible is t when the tables can hold it, else instead.
func plausible(t, instead time.Time) time.Time {
	if t.Unix() < 0 || t.UTC().Year() > lastYear {
		return instead
	}
	return t
}

func minuteOf(t time.Time) int64 { return t.Unix() / 60 }

// count moves the process's counters; the ledger holds what must be exact.
func (p *Pipeline) count(topic string, res decode.Result, cells []sampler.Cell) {
	p.decoded.Count(topic, res)
	for _, c := range cells {
		switch c.Decision {
		case "interaction":
			p.metrics.interactions.WithLabelValues(topic).Inc()
		case "no_interaction":
		case "dead_lettered":
			p.metrics.deadLetters.WithLabelValues(topic, c.Reason).Inc()
		default:
			p.metrics.decisions.WithLabelValues(c.Check, c.Decision).Inc()
		}
	}
}
