package pipeline

import (
	"context"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"assay/consumer"
	"assay/evaluators/judge"
	"assay/internal/interaction"
	"assay/sampler"
	"assay/sink"
)

// crashRules differ in rate, filter, criteria and in a check that comes and goes.
var crashRules = []string{`
version: 1
sources: [{ topic: assistant.log, format: flat, fields: { expected: reference } }]
judges: { a: { kind: simulated } }
checks:
  - { name: polite, evaluator: closed_qa, criteria: { text: "Greets." }, judge: a, sample: { rate: 0.5 }, when: 'app != "internal"' }
  - { name: right, evaluator: factuality, reference: { field: expected }, judge: a, sample: { rate: 0.8, salt: s } }
`, `
version: 1
sources: [{ topic: assistant.log, format: flat, fields: { expected: reference } }]
judges: { a: { kind: simulated } }
checks:
  - { name: polite, evaluator: closed_qa, criteria: { text: "Greets." }, judge: a, sample: { rate: 0.2 } }
  - { name: right, evaluator: factuality, reference: { field: expected }, judge: a, sample: { rate: 0.8, salt: s } }
`, `
version: 1
sources: [{ topic: assistant.log, format: flat, fields: { expected: reference } }]
judges: { a: { kind: simulated } }
checks:
  - { name: right, evaluator: factuality, reference: { field: expected }, judge: a, sample: { rate: 1 } }
  - { name: polite, evaluator: closed_qa, criteria: { text: "Greets and says goodbye." }, judge: a, sample: { rate: 1 } }
`}

// sim is a partition of a log, its committed offset, and processes that come and go.
type sim struct {
	w         *world
	r         *rand.Rand
	log       []interaction.Record
	needs     []map[int64]need // by rules and offset
	committed int64
	logStart  int64
	end       int64
	zombies   []*assigned // evicted, and not yet aware of it
	calm      bool        // no crash any more
	caughtUp  bool        // the reader is told now and then that it has read to the end
	changing  bool        // the rules change between lives
}

// need is what one record causes under some rules.
type need struct {
	rows   []evaluationKey
	letter bool
}

func newSim(t *testing.T, seed uint64) *sim { return simOf(t, seed, (*sim).record, crashRules...) }

func simOf(t *testing.T, seed uint64, record func(s *sim, offset int64) interaction.Record, rules ...string) *sim {
	s := &sim{w: newWorld(t, rules[0]), r: rand.New(rand.NewPCG(seed, 7))}
	// a block's border lies inside the log
	offset := sampler.BlockSize - int64(s.r.IntN(80))
	s.committed, s.logStart = offset, offset
	for i := range 60 + s.r.IntN(60) {
		if i > 0 && s.r.IntN(12) == 0 {
			offset += int64(1 + s.r.IntN(4)) // markers, compaction
		}
		s.log = append(s.log, record(s, offset))
		offset++
	}
	s.end = offset
	s.w.judge.answer = s.answer
	for _, yaml := range rules {
		s.needs = append(s.needs, s.needed(s.w.pipeline(parse(t, yaml))))
	}
	return s
}

// record is of many kinds; one in five is a list.
func (s *sim) record(offset int64) interaction.Record {
	one := func(element int) string {
		switch n := s.r.IntN(10); {
		case n == 0:
			return "7"
		case n == 1:
			return `{"input":"q","output":"","reference":"r"}`
		case n == 2:
			return fmt.Sprintf(`{"id":"i-%d-%d","input":"q","output":"a%d","app":"internal"}`, offset, element, offset)
		default:
			return fmt.Sprintf(`{"id":"i-%d-%d","input":"q","output":"a%d","reference":"r"}`, offset, element, offset)
		}
	}
	rec := interaction.Record{Topic: topic, Offset: offset, Time: logTime.Add(time.Duration(offset%400) * time.Second)}
	switch s.r.IntN(10) {
	case 0: // a tombstone
	case 1, 2:
		rec.Value = []byte("[" + one(0) + "," + one(1) + "," + one(2) + "]")
	default:
		rec.Value = []byte(one(0))
	}
	return rec
}

// answer takes its time, and fails for some questions for ever.
func (s *sim) answer(ctx context.Context, q judge.Question) (judge.Answer, error) {
	h := fnv.New64a()
	for _, f := range q.Fields {
		_, _ = h.Write([]byte(f.Value))
	}
	n := h.Sum64()
	if _, err := slow(time.Duration(n%3000)*time.Millisecond)(ctx, q); err != nil {
		return judge.Answer{}, err
	}
	if n%11 == 0 {
		return judge.Answer{}, &judge.TransientError{Reason: judge.ReasonUnavailable, Err: errDown}
	}
	return certain(q), nil
}

// needed asks decoder and sampler, and counts with nothing of the pipeline's.
func (s *sim) needed(p *Pipeline) map[int64]need {
	all := make(map[int64]need)
	joiner := p.deps.Decoder.NewJoiner(topic)
	for _, rec := range s.log {
		res := joiner.Decode(rec)
		n := need{letter: len(res.Bad) > 0}
		for i := range res.Interactions {
			it := &res.Interactions[i]
			for _, d := range p.sampler.Decide(it, nil) {
				if d.Kind == sampler.Selected {
					c := p.checks[d.Check]
					n.rows = append(n.rows, evaluationKey{c.Name, c.Version, it.Time.Unix() / 60, it.ID, position{uint64(it.Offset), uint16(it.Element)}})
				}
			}
		}
		all[rec.Offset] = n
	}
	return all
}

// life is one assignment, from the recovery scan to its end. last reads everything.
func (s *sim) life(p *Pipeline, last bool) {
	s.calm = last
	// Retention takes what is committed; s.log keeps it for the oracle. Not under a
	// zombie: the next owner would count in another segment than it does.
	if len(s.zombies) == 0 && s.r.IntN(3) == 0 {
		// but nothing that a half waits for, and one record more, which shows that
		free, _ := s.reach(s.w.t.Context(), s.committed, p.deps.Decoder.NewJoiner(topic).Reach())
		free, _ = s.reach(s.w.t.Context(), free, 0)
		s.logStart += s.r.Int64N(free - s.logStart + 1)
	}
	a := s.w.assign(p, consumer.Assignment{Topic: topic, Committed: s.committed, LogStart: s.logStart, LogEnd: s.end, Reach: s.reach})
	at := 0
	for at < len(s.log) && s.log[at].Offset < a.next {
		at++
	}
	steps := 2 + s.r.IntN(25)
	for step := 0; last || step < steps; step++ {
		switch n := s.r.IntN(10); {
		case n < 4:
			for range 1 + s.r.IntN(10) {
				if at < len(s.log) && len(a.open)-len(a.held) < 25 {
					a.handle(s.w.t.Context(), s.log[at])
					at++
				}
			}
			if at == len(s.log) {
				a.next = s.end
			}
			if s.caughtUp && (at == len(s.log) || s.r.IntN(6) == 0) {
				a.pt.CaughtUp(time.Now().Add(time.Duration(s.r.IntN(90)) * time.Second))
			}
		case n < 6:
			time.Sleep(time.Duration(s.r.IntN(3000)) * time.Millisecond)
		case n < 8:
			for range s.r.IntN(12) {
				synctest.Wait()
				s.w.store.step(s.r.IntN)
			}
		case n < 9:
			if !s.commit(a) {
				return // the crash came between ledger and commit
			}
		default:
			s.bother()
		}
		if last && s.committed == s.end {
			break
		}
	}
	switch n := s.r.IntN(3); {
	case last || n == 0:
		s.drain(a)
	case n == 1:
		s.crash(a)
	default: // evicted: somebody else owns the partition and this one does not know
		s.zombies = append(s.zombies, a)
	}
}

// reach is the consumer's part of a restart.
func (s *sim) reach(_ context.Context, offset int64, back time.Duration) (int64, error) {
	var before time.Time
	for _, rec := range s.log {
		if rec.Offset >= s.logStart && rec.Offset < offset {
			before = rec.Time
		}
	}
	for _, rec := range s.log {
		if rec.Offset >= s.logStart && rec.Offset < offset && !rec.Time.Before(before.Add(-back)) {
			return rec.Offset, nil
		}
	}
	return offset, nil
}

// commit does what the committer does. It is false when the process has crashed.
func (s *sim) commit(a *assigned) bool {
	watermark := a.watermark()
	if watermark <= s.committed {
		return true
	}
	if s.r.IntN(8) == 0 {
		s.w.store.down = errDown
	}
	err := a.pt.Flush(s.w.t.Context(), watermark)
	s.w.store.down = nil
	if err != nil {
		return true
	}
	if !s.calm && s.r.IntN(8) == 0 {
		s.crash(a)
		return false
	}
	s.committed = watermark
	s.safe()
	return true
}

// bother lets a zombie store its ledger before the broker refuses its commit, and end.
func (s *sim) bother() {
	if len(s.zombies) == 0 {
		return
	}
	z := s.zombies[0]
	s.zombies = s.zombies[1:]
	if err := z.pt.Flush(s.w.t.Context(), z.watermark()); err != nil {
		s.w.t.Fatal(err)
	}
	z.revoke()
	z.pt.Close()
}

func (s *sim) drain(a *assigned) {
	ctx, cancel := context.WithTimeout(s.w.t.Context(), 2*time.Second)
	defer cancel()
	_ = a.pt.Drain(ctx) // what is cut off is read again
	if err := a.pt.FlushRows(s.w.t.Context()); err != nil {
		s.w.t.Fatal(err)
	}
	if !s.commit(a) {
		return
	}
	a.revoke()
	a.pt.Close()
}

// crash ends the process: rows on their way are stored or not.
func (s *sim) crash(a *assigned) {
	for _, dead := range append(s.zombies, a) {
		dead.revoke()
		dead.pt.Close()
	}
	s.zombies = nil
	s.w.store.crash(func() bool { return s.r.IntN(2) == 0 })
}

// safe checks that nothing below the committed offset is missing. What was resolved
// under one of the rules has its rows under those.
func (s *sim) safe() {
	s.w.t.Helper()
	for _, rec := range s.log {
		if rec.Offset >= s.committed {
			return
		}
		fine := false
		for _, needs := range s.needs {
			ok := true
			for _, k := range needs[rec.Offset].rows {
				if _, stored := s.w.store.evaluations[k]; !stored {
					ok = false
				} else if _, stored := s.w.store.texts[k.position]; !stored && !s.changing {
					// under changed rules the judgement that should have brought it may
					// no longer be wanted
					s.w.t.Fatalf("offset %d has a judgement without its text", rec.Offset)
				}
			}
			fine = fine || ok
		}
		if _, stored := s.w.store.letters[position{uint64(rec.Offset), 0}]; !fine || stored != s.needs[0][rec.Offset].letter {
			s.w.t.Fatalf("committed %d, and offset %d has lost rows (dead letter stored: %t)", s.committed, rec.Offset, stored)
		}
	}
}

// cellCount is a cell of the ledger without its place in the log.
type cellCount struct {
	minute                           int64
	check, version, decision, reason string
	pi                               float64
}

func (s *sim) told() map[cellCount]uint64 {
	sums := make(map[cellCount]uint64)
	for _, r := range s.w.store.population {
		sums[cellCount{r.Minute.Unix() / 60, r.Check, r.CheckVersion, r.Decision, r.Reason, r.Pi}] += r.N
	}
	return sums
}

// counted is what the ledger must say under rules that never changed.
func (s *sim) counted(p *Pipeline) map[cellCount]uint64 {
	sums := make(map[cellCount]uint64)
	joiner := p.deps.Decoder.NewJoiner(topic)
	for _, rec := range s.log {
		res := joiner.Decode(rec)
		kept := ""
		if res.Kept {
			kept = sink.ReasonKept
		}
		if res.Kept && len(res.Interactions) == 0 {
			sums[cellCount{minute: rec.Time.Unix() / 60, decision: "no_interaction", reason: kept}]++
		}
		for _, reason := range res.Skips {
			sums[cellCount{minute: rec.Time.Unix() / 60, decision: "no_interaction", reason: reason}]++
		}
		for _, bad := range res.Bad {
			sums[cellCount{minute: rec.Time.Unix() / 60, decision: "dead_lettered", reason: bad.Reason}]++
		}
		for i := range res.Interactions {
			it := &res.Interactions[i]
			sums[cellCount{minute: it.Time.Unix() / 60, decision: "interaction", reason: kept}]++
			for _, d := range p.sampler.Decide(it, nil) {
				c := p.checks[d.Check]
				sums[cellCount{it.Time.Unix() / 60, c.Name, c.Version, d.Kind.String(), d.Reason, d.Pi}]++
			}
		}
	}
	return sums
}

func compare(t testing.TB, got, want map[cellCount]uint64) {
	t.Helper()
	for k, n := range want {
		if got[k] != n {
			t.Errorf("the ledger says %d of %+v, the log holds %d", got[k], k, n)
		}
	}
	for k, n := range got {
		if _, ok := want[k]; !ok {
			t.Errorf("the ledger says %d of %+v, the log holds none", n, k)
		}
	}
}

func TestConservationIsExactAfterAnyCrashesAndRebalances(t *testing.T) {
	for seed := range uint64(120) {
		synctest.Test(t, func(t *testing.T) { newSim(t, seed).keeps(seed, crashRules[0]) })
	}
}

// keeps runs lives under rules that never change, and compares what is stored at the end
// with what the log holds.
func (s *sim) keeps(seed uint64, rules string) {
	t := s.w.t
	file := parse(t, rules)
	p := s.w.pipeline(file)
	lives := 1 + s.r.IntN(10)
	for range lives {
		s.life(p, false)
		if len(s.zombies) == 0 && s.r.IntN(2) == 0 {
			p = s.w.pipeline(file) // another process
		}
	}
	s.life(p, true)
	s.rest()

	compare(t, s.told(), s.counted(p))
	want := 0
	for _, n := range s.needs[0] {
		want += len(n.rows)
		for _, k := range n.rows {
			if _, stored := s.w.store.evaluations[k]; !stored {
				t.Errorf("no judgement %+v", k)
			}
		}
	}
	if len(s.w.store.evaluations) != want {
		t.Errorf("%d judgements, want %d", len(s.w.store.evaluations), want)
	}
	if t.Failed() {
		t.Fatalf("seed %d, %d lives", seed, lives)
	}
}

// With rules that change, rows of records that were judged under the old ones and not
// yet resolved may be left over. The ledger still has one decision for each interaction
// and check, and the rows of what it calls selected.
func TestTheLedgerStaysExactWhenRulesChange(t *testing.T) {
	for seed := range uint64(120) {
		synctest.Test(t, func(t *testing.T) { newSim(t, seed).changes(seed, []string{"polite", "right"}, crashRules...) })
	}
}

// changes runs lives under rules that change between them, all with these checks.
func (s *sim) changes(seed uint64, names []string, rules ...string) {
	t := s.w.t
	s.changing = true
	lives := 2 + s.r.IntN(10)
	var p *Pipeline
	for i := range lives {
		if p == nil || s.r.IntN(2) == 0 {
			s.rest() // a reload ends every partition first
			p = s.w.pipeline(parse(t, rules[s.r.IntN(len(rules))]))
		}
		s.life(p, i == lives-1)
	}
	s.rest()

	got, interactions := s.told(), make(map[int64]uint64)
	bare := make(map[cellCount]uint64) // without checks
	for k, n := range got {
		if k.check == "" {
			bare[k] = n
		}
		if k.decision == "interaction" {
			interactions[k.minute] += n
		}
	}
	want := s.counted(p)
	for k := range want {
		if k.check != "" {
			delete(want, k)
		}
	}
	compare(t, bare, want)
	for minute, n := range interactions {
		for _, check := range names {
			var sum uint64
			for k, m := range got {
				if k.check == check && k.minute == minute {
					sum += m
				}
			}
			if sum != n {
				t.Errorf("minute %d: %d decisions of %s about %d interactions", minute, sum, check, n)
			}
		}
	}
	rows := make(map[[2]string]uint64)
	for k := range s.w.store.evaluations {
		rows[[2]string{k.check, k.version}]++
	}
	selected := make(map[[2]string]uint64)
	for k, n := range got {
		if k.decision == "selected" {
			selected[[2]string{k.check, k.version}] += n
		}
	}
	for k, n := range selected {
		if rows[k] < n {
			t.Errorf("%v: %d selected, %d rows", k, n, rows[k])
		}
	}
	if t.Failed() {
		t.Fatalf("seed %d, %d lives", seed, lives)
	}
}

// rest ends every zombie and settles what is still on its way.
func (s *sim) rest() {
	for len(s.zombies) > 0 {
		s.bother()
	}
	s.w.settle()
}
