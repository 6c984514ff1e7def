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
	ledger   *sampler.Ledger
	answered map[sink.AnswerKey]struct{} // immutable
	queues   []*queue                    // by check; checks with one judge share it

	judging context.Context // of judgements and of the rows they hand over
	revoke  context.CancelCauseFunc

	// Of the partition loop alone, kept between records to save allocations.
	decisions []sampler.Decision
	cells     []sampler.Cell
}

func (p *Pipeline) newPartition(a consumer.Assignment, from int64, answered map[sink.AnswerKey]struct{}) *partition {
	judging, revoke := context.WithCancelCause(context.Background())
	pt := &partition{
		pipeline: p,
		topic:    a.Topic,
		id:       uint32(a.Partition),
		log:      p.deps.Log.With("topic", a.Topic, "partition", a.Partition),
		ledger:   sampler.NewLedger(a.Topic, a.Partition, p.deps.Checks.Hash, from),
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
	return pt
}

// Handle decodes a record, decides, counts, and starts what has to be judged. The
// ledger learns of the record before anything of it can be resolved, so a watermark
// never passes an offset that is not counted.
func (pt *partition) Handle(_ context.Context, d consumer.Delivery) {
	p, rec := pt.pipeline, d.Record
	res := p.decode(d)
	logMinute := minuteOf(rec.Time)
	pt.cells = pt.cells[:0]

	for _, reason := range res.Skips {
		pt.cells = append(pt.cells, sampler.Cell{Minute: logMinute, Decision: "no_interaction", Reason: reason})
	}
	for _, bad := range res.Bad {
		pt.cells = append(pt.cells, sampler.Cell{Minute: logMinute, Decision: "dead_lettered", Reason: bad.Reason})
	}
	u := &unit{delivery: d, outcome: consumer.NotNeeded}
	if len(res.Interactions) == 0 {
		u.outcome = consumer.NoInteraction
	}
	var jobs []job
	for i := range res.Interactions {
		jobs = pt.decide(&res.Interactions[i], d.Below, u, jobs)
	}
	if d.Below { // resolved by an earlier owner: counted again, nothing else
		pt.ledger.Count(rec.Offset, rec.Time, false, pt.cells)
		return
	}
	p.count(pt.topic, res, pt.cells)

	dead := pt.deadLetters(rec, res.Bad)
	open := len(jobs)+len(dead) > 0
	pt.ledger.Count(rec.Offset, rec.Time, open, pt.cells)
	if !open {
		d.Resolve(u.outcome)
		return
	}
	u.open(len(jobs), len(dead) > 0)
	if len(dead) > 0 { // a full buffer blocks here on purpose: fetching stops
		pt.addDeadLetters(u, dead)
	}
	for _, j := range jobs {
		pt.queues[j.check].put(func() { pt.judge(j) })
	}
}

// decode reads the record, unless handling it has panicked before.
func (p *Pipeline) decode(d consumer.Delivery) decode.Result {
	if d.Fault != "" {
		return decode.Result{
			Bad:     []decode.Bad{{Reason: d.Fault, Error: "handling this record panicked again and again; the log has the stack"}},
			Outcome: decode.DeadLetter,
		}
	}
	return p.deps.Decoder.Decode(d.Record)
}

// decide counts one interaction and collects the judgements it needs.
func (pt *partition) decide(it *interaction.Interaction, below bool, u *unit, jobs []job) []job {
	p := pt.pipeline
	minute := minuteOf(it.Time)
	pt.cells = append(pt.cells, sampler.Cell{Minute: minute, Decision: "interaction"})
	pt.decisions = p.sampler.Decide(it, pt.decisions[:0])
	first := true
	for i, d := range pt.decisions {
		c := &p.checks[d.Check]
		pt.cells = append(pt.cells, sampler.Cell{
			Minute: minute, Check: c.Name, Version: c.Version, Stratum: d.Stratum,
			Decision: d.Kind.String(), Reason: d.Reason, Pi: d.Pi, Epoch: d.Epoch,
		})
		if d.Kind != sampler.Selected || below {
			continue
		}
		key := sink.AnswerKey{Offset: uint64(it.Offset), Element: uint16(it.Element), Check: c.Name, Version: c.Version}
		if _, ok := pt.answered[key]; ok {
			p.metrics.recovered.WithLabelValues(c.Name).Inc()
			u.outcome = consumer.Durable
			continue
		}
		jobs = append(jobs, job{unit: u, it: it, check: d.Check, decision: pt.decisions[i], text: first})
		first = false
	}
	return jobs
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
	for _, q := range pt.queues {
		q.drop()
	}
	var cut error
	for _, q := range pt.queues {
		if err := q.wait(ctx); err != nil {
			cut = err
			break
		}
	}
	if cut == nil {
		return nil
	}
	pt.revoke(errRevoked)
	for _, q := range pt.queues {
		_ = q.wait(context.WithoutCancel(ctx)) // a cut-off judge returns at once
	}
	return cut
}

// FlushRows makes the rows of finished judgements durable.
func (pt *partition) FlushRows(ctx context.Context) error {
	return pt.pipeline.deps.Rows.Flush(ctx)
}

// Close ends what the partition still holds; nothing of it is resolved any more.
func (pt *partition) Close() {
	for _, q := range pt.queues {
		q.drop()
	}
	pt.revoke(errRevoked)
	for _, q := range pt.queues {
		_ = q.wait(context.Background())
	}
}

func minuteOf(t time.Time) int64 { return t.Unix() / 60 }

// unit is a record with rows on the way. It is resolved when all of them are durable,
// and never when one of them is not: the record is then read again.
type unit struct {
	delivery consumer.Delivery
	outcome  consumer.Outcome
	judging  atomic.Int32 // judgements that still need the record's bytes
	rows     atomic.Int32 // rows that are not durable yet
	failed   atomic.Bool
}

// open sets what the unit waits for, before any of it can end.
func (u *unit) open(jobs int, dead bool) {
	u.judging.Store(int32(jobs))
	n := jobs
	u.outcome = consumer.Durable
	if dead {
		n++
		if jobs == 0 {
			u.outcome = consumer.DeadLettered
		}
	}
	u.rows.Store(int32(n))
}

// judged gives the record's bytes back once nothing reads them any more.
func (u *unit) judged() {
	if u.judging.Add(-1) == 0 {
		u.delivery.Release()
	}
}

// settle takes the end of one row.
func (u *unit) settle(err error) {
	if err != nil {
		u.failed.Store(true)
	}
	if u.rows.Add(-1) == 0 && !u.failed.Load() {
		u.delivery.Resolve(u.outcome)
	}
}

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
