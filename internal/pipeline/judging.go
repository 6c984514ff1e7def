package pipeline

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"

	"assay/evaluators"
	"assay/internal/interaction"
	"assay/sampler"
	"assay/sink"
)

// Reasons of error rows that no judge is to blame for.
const (
	reasonPanic     = "panic"           // judging this interaction panicked
	reasonEvaluator = "evaluator_error" // the evaluator gave up without being told to
)

// job is one interaction and one check, selected.
type job struct {
	unit     *unit
	it       *interaction.Interaction
	check    int
	decision sampler.Decision
	text     bool // the one of the interaction's jobs that also stores its text
	answered bool // an earlier owner has judged it: only the text is stored again
}

// rows is how many rows the job writes.
func (j job) rows() int {
	n := 0
	if j.text {
		n++
	}
	if !j.answered {
		n++
	}
	return n
}

// judge runs a job in its slot: it asks, writes the rows, and settles the record. A
// judgement that a revoke cut off leaves no row.
//
// The text is on its way while the judge thinks. Should a crash leave an answer without
// its text, the next owner finds the answer and stores the text again.
func (pt *partition) judge(j job) {
	u, check := j.unit, pt.pipeline.checks[j.check].Name
	if j.text {
		pt.storeText(j)
	}
	if j.answered {
		u.judged()
		return
	}
	row, err := pt.outcome(j)
	if err == nil {
		pt.pipeline.metrics.evaluations.WithLabelValues(check, row.Status).Inc()
		pt.addRow(u, row)
	}
	u.judged()
	if err != nil {
		u.settle(err)
	}
}

// outcome judges and lays out what is stored. The error is set only when the judgement
// was cut off.
//
// A panic in it, of an evaluator or a judge or of the laying out, costs that judgement
// alone: it runs in a goroutine of ours, where a panic would end the process, and the
// same record would end the next process too.
func (pt *partition) outcome(j job) (row sink.Evaluation, err error) {
	p := pt.pipeline
	c := &p.checks[j.check]
	defer func() {
		if v := recover(); v != nil {
			p.metrics.panics.WithLabelValues(c.Name).Inc()
			if c.panicked.CompareAndSwap(false, true) { // the next ones are counted, and their rows say where
				pt.log.Error("judging an interaction panicked", "check", c.Name, "interaction", j.it.ID,
					"offset", j.it.Offset, "element", j.it.Element, "err", fmt.Sprint(v), "stack", string(debug.Stack()))
			}
			row, err = p.failed(c, j, reasonPanic), nil
		}
	}()
	if c.wait != nil {
		if err := c.wait(pt.judging); err != nil && pt.judging.Err() != nil {
			return row, context.Cause(pt.judging)
		}
	}
	ctx, cancel := context.WithTimeout(pt.judging, p.cfg.Deadline)
	defer cancel()
	res, err := c.evaluator.Evaluate(ctx, c.judge, c.Item(j.it))
	switch {
	case err != nil && pt.judging.Err() != nil:
		return row, context.Cause(pt.judging)
	case err != nil:
		// Nobody told it to stop: left open, the record would hold the offset for ever.
		res = evaluators.Result{Status: evaluators.Error, Reason: reasonEvaluator, Detail: map[string]any{"error": err.Error()}}
	}
	return p.row(c, j, res), nil
}

// storeText hands an interaction's text to the sink. A text that cannot be laid out is
// lost like one that ClickHouse refuses.
func (pt *partition) storeText(j job) {
	u := j.unit
	text, err := pt.textOf(j)
	if err != nil {
		pt.log.Error("a text was lost", "interaction", j.it.ID, "offset", j.it.Offset, "element", j.it.Element, "err", err)
		pt.pipeline.metrics.textLost.Inc()
		u.settle(nil)
		return
	}
	err = pt.pipeline.deps.Rows.AddTexts(pt.judging, []sink.Text{text}, func(err error) {
		var poison *sink.PoisonError
		if errors.As(err, &poison) { // a text is for readers: its loss is counted and loses no judgement
			pt.pipeline.metrics.textLost.Inc()
			err = nil
		}
		u.settle(err)
	})
	if err != nil {
		u.settle(err)
	}
}

// textOf lays a text out; a panic in it is an error, for the reason given at outcome.
func (pt *partition) textOf(j job) (text sink.Text, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("panic: %v\n%s", v, debug.Stack())
		}
	}()
	return pt.pipeline.text(j.it), nil
}

// addRow hands a row to the sink. One that ClickHouse will never take leaves two things
// behind: a dead letter of its record that says why, and a bare row in its place, so that
// every selected interaction has its row.
func (pt *partition) addRow(u *unit, row sink.Evaluation) {
	err := pt.pipeline.deps.Rows.AddEvaluations(pt.judging, []sink.Evaluation{row}, func(err error) {
		var poison *sink.PoisonError
		if !errors.As(err, &poison) {
			u.settle(err)
			return
		}
		pt.pipeline.metrics.deadLetters.WithLabelValues(pt.topic, reasonRowRejected).Inc()
		// The server may quote the row.
		why, _ := pt.pipeline.privacy.redact(poison.Err.Error())
		u.refuse(fmt.Sprintf("check %s, interaction %s (element %d): %s", row.Check, row.InteractionID, row.Element, why))
		bare := rejected(row)
		// Not here: this is the sink's goroutine, which would have to make room for it.
		pt.letters.put(func() { pt.addRejected(u, bare) })
	})
	if err != nil {
		u.settle(err)
	}
}

// addRejected hands the bare row of a refused one to the sink. If that is refused too,
// the dead letter is all that is left of the judgement.
func (pt *partition) addRejected(u *unit, row sink.Evaluation) {
	err := pt.pipeline.deps.Rows.AddEvaluations(pt.judging, []sink.Evaluation{row}, func(err error) {
		var poison *sink.PoisonError
		if errors.As(err, &poison) {
			if pt.unstored.CompareAndSwap(false, true) { // the dead letters have the rest
				pt.log.Error("a judgement's row can never be stored, not even bare", "check", row.Check,
					"interaction", row.InteractionID, "offset", row.Offset, "element", row.Element, "err", err)
			}
			err = nil
		}
		u.settle(err)
	})
	if err != nil {
		u.settle(err)
	}
}
