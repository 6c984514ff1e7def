package pipeline

import (
	"cmp"
	"context"
	"errors"
	"math"
	"sync"
	"time"

	"assay/internal/checks"
	"assay/internal/interaction"
	"assay/internal/interaction/decode"
	"assay/sink"
)

// labelWriter is what the pipeline needs of the sink to keep what people say.
type labelWriter interface {
	WriteLabels(ctx context.Context, changes []sink.LabelChange, now time.Time) ([]sink.LabelOutcome, error)
}

// What became of feedback, as label values.
const (
	feedbackLabelled = "labelled" // a label of the check that the source's feedback names
	feedbackForeign  = "foreign"  // no check is named for it: kept, and nothing is computed from it
	feedbackUnclear  = "unclear"  // a check is named, and what was said is no verdict: kept likewise
	feedbackTrace    = "trace"    // about a trace as a whole: kept likewise, under the trace's id
	feedbackNameless = "nameless" // about nothing that it names: not kept
	feedbackRefused  = "refused"  // ClickHouse refused it for good
)

func feedbackOutcomes() []string {
	return []string{feedbackLabelled, feedbackForeign, feedbackUnclear, feedbackTrace, feedbackNameless, feedbackRefused}
}

// reasonScore is why a record has no interaction: it is about those of others.
const reasonScore = "score"

// origin of labels that nobody was asked for: they are shown and never averaged.
const volunteered = "volunteered"

// labelsOf makes labels of what a record says about interactions: its scores, and the
// reactions that came with its own interactions.
func (p *Pipeline) labelsOf(rec *interaction.Record, res *decode.Result) []sink.LabelChange {
	var out []sink.LabelChange
	for i := range res.Scores {
		out = p.label(out, rec, &res.Scores[i])
	}
	for i := range res.Interactions {
		it := &res.Interactions[i]
		if f := it.Feedback; f != nil {
			out = p.label(out, rec, &decode.Score{InteractionID: it.ID, Name: f.Name, Value: &f.Value, Label: f.Label, Comment: f.Comment, Time: rec.Time})
		}
	}
	return out
}

// label appends what one score becomes, if it is kept.
func (p *Pipeline) label(out []sink.LabelChange, rec *interaction.Record, s *decode.Score) []sink.LabelChange {
	count := func(outcome string) { p.metrics.feedback.WithLabelValues(rec.Topic, outcome).Inc() }
	id, outcome := scored(s)
	if id == "" || len(id) > sink.MaxLabelID {
		count(feedbackNameless)
		return out
	}
	name := cut(cmp.Or(s.Name, "feedback"), maxScoreName)
	c := sink.LabelChange{InteractionID: id, Rater: "feedback:" + name, Pi2: 1, Origin: volunteered,
		At: plausible(s.Time, rec.Time), Revision: revision(rec)}
	comment := cmp.Or(s.Comment, s.Expected)
	c.Comment = p.privacy.excerpt(&comment)
	value := s.Value
	if value != nil && (math.IsNaN(*value) || math.Abs(*value) > math.MaxFloat32) {
		value = nil
	}
	feedback, named := p.feedback[rec.Topic][name]
	passed, clear := feedback.Passes(value, s.Label)
	switch {
	case outcome != "":
	case !named:
		outcome = feedbackForeign
	case !clear:
		outcome = feedbackUnclear
	default:
		c.Check, c.Passed, outcome = feedback.Check, &passed, feedbackLabelled
	}
	if c.Check == "" {
		c.Question, c.Option = name, cut(p.privacy.excerpt(&s.Label), maxScoreName)
		if value != nil {
			c.Value = new(float32(*value))
		}
	}
	count(outcome)
	return append(out, c)
}

// maxScoreName bounds what becomes part of a dictionary, in runes.
const maxScoreName = 50

// scored is the id of the interaction that a score is about, "" if it names none. A
// trace's id stands for no interaction; the outcome says so.
func scored(s *decode.Score) (id, outcome string) {
	switch {
	case s.InteractionID != "":
		return s.InteractionID, ""
	case s.TraceID != "" && s.SpanID != "":
		return s.TraceID + "/" + s.SpanID, "" // as the decoder names spans
	case s.ResponseID != "":
		return s.ResponseID, ""
	case s.TraceID != "":
		return s.TraceID, feedbackTrace
	}
	return "", feedbackNameless
}

// revision places what a record says among all that its log says: later records win, and
// a record that is read again says nothing new.
func revision(rec *interaction.Record) uint64 {
	const offsetBits = 20
	return max(uint64(max(rec.Time.UnixMilli(), 0))<<offsetBits|uint64(rec.Offset)&(1<<offsetBits-1), 1)
}

// feedbackOf are the sources' rules by topic.
func feedbackOf(f *checks.File) map[string]map[string]checks.Feedback {
	out := make(map[string]map[string]checks.Feedback)
	for _, s := range f.Sources {
		out[s.Topic] = make(map[string]checks.Feedback, len(s.Feedback))
		for name, rule := range s.Feedback {
			out[s.Topic][cut(name, maxScoreName)] = rule
		}
	}
	return out
}

// labels are what a partition has to write of labels. Each write looks up where they
// belong, so those that come while one is under way go with the next.
type labels struct {
	queue *queue

	mu      sync.Mutex // guards the field below; nothing else is locked under it
	pending []pendingLabels
}

// pendingLabels are one record's.
type pendingLabels struct {
	unit    *unit
	changes []sink.LabelChange
}

// labelWriters bounds how many partitions write labels at once, labelsAtOnce what they
// write.
const (
	labelWriters = 2
	labelsAtOnce = 1000
)

// addLabels sets a record's labels on their way.
func (pt *partition) addLabels(u *unit, changes []sink.LabelChange) {
	l := &pt.labels
	l.mu.Lock()
	l.pending = append(l.pending, pendingLabels{u, changes})
	l.mu.Unlock()
	l.queue.put(pt.writeLabels)
}

// take returns the oldest records' labels.
func (l *labels) take() (some []pendingLabels) {
	l.mu.Lock()
	defer l.mu.Unlock()
	n, labels := 0, 0
	for n < len(l.pending) && labels < labelsAtOnce {
		labels += len(l.pending[n].changes)
		n++
	}
	some, l.pending = l.pending[:n:n], l.pending[n:]
	return some
}

// The pauses between tries of a write.
const (
	firstLabelPause = 500 * time.Millisecond
	lastLabelPause  = 15 * time.Second
)

// writeLabels writes what is pending, again and again until it is durable or the
// partition is given up: then its records are read again, which changes nothing that is
// stored.
func (pt *partition) writeLabels() {
	some := pt.labels.take()
	if len(some) == 0 { // went with an earlier one
		return
	}
	var changes []sink.LabelChange
	for _, p := range some {
		changes = append(changes, p.changes...)
	}
	for pause := firstLabelPause; ; pause = min(2*pause, lastLabelPause) {
		err := pt.storeLabels(changes)
		if err == nil {
			break
		}
		if pause == firstLabelPause {
			pt.log.Warn("labels wait for ClickHouse", "labels", len(changes), "err", err)
		}
		select {
		case <-pt.judging.Done():
			for _, p := range some {
				p.unit.settle(context.Cause(pt.judging))
			}
			return
		case <-time.After(pause):
		}
	}
	for _, p := range some {
		p.unit.settle(nil)
	}
}

// storeLabels writes labels, and without those that can never be stored if there are any.
func (pt *partition) storeLabels(changes []sink.LabelChange) error {
	p := pt.pipeline
	_, err := p.deps.Labels.WriteLabels(pt.judging, changes, p.deps.Now())
	if !isPoison(err) {
		return err
	}
	if len(changes) == 1 {
		p.metrics.feedback.WithLabelValues(pt.topic, feedbackRefused).Inc()
		pt.log.Error("feedback can never be stored", "check", changes[0].Check, "interaction", changes[0].InteractionID, "err", err)
		return nil
	}
	half := len(changes) / 2
	if err := pt.storeLabels(changes[:half]); err != nil {
		return err
	}
	return pt.storeLabels(changes[half:])
}

// isPoison reports that some row, and not the server's state, is at fault.
func isPoison(err error) bool {
	var row *sink.PoisonError
	var insert *sink.InsertError
	return errors.As(err, &row) || errors.As(err, &insert) && insert.Class == sink.Poison
}
