package pipeline

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"assay/consumer"
	"assay/internal/interaction/decode"
	"assay/sampler"
	"assay/sink"
)

// seg is a segment of the ledger: counted from..upto under rules.
func seg(from, upto int64, rules string) sink.Segment {
	return sink.Segment{Block: uint64(from) / sampler.BlockSize, SegmentFrom: uint64(from), UptoOffset: uint64(upto), ChecksHash: rules}
}

func TestWhereCountingStarts(t *testing.T) {
	const b = sampler.BlockSize
	f := func(name string, committed, logStart int64, hash string, want int64, ledger ...sink.Segment) {
		t.Helper()
		a := consumer.Assignment{Committed: committed, LogStart: logStart, LogEnd: 10 * b}
		var segments []sink.Segment
		for _, s := range ledger {
			if s.Block >= uint64(committed)/b {
				segments = append(segments, s)
			}
		}
		if got := segmentStart(a, hash, ledger[len(ledger)-1], segments); got != want {
			t.Errorf("%s: starts at %d, want %d", name, got, want)
		}
	}

	f("same rules: the segment is counted again", 120, 0, "A", 100, seg(100, 119, "A"))
	f("nothing of the segment is committed", 100, 0, "A", 100, seg(100, 119, "A"))
	f("crash between ledger and commit", 110, 0, "A", 100, seg(100, 119, "A"))
	f("crash between them, over a block's border", b-5, 0, "A", 100, seg(100, b-1, "A"), seg(b, b+20, "A"))
	f("committed is the first of a block", b, 0, "A", b, seg(100, b-1, "A"))
	f("committed is the first of a block that is begun", b, 0, "A", b, seg(100, b-1, "A"), seg(b, b+20, "A"))
	f("an older block is of no interest", 2*b+50, 0, "A", 2*b, seg(100, b-1, "B"), seg(2*b, 2*b+49, "A"))

	f("new rules: past what is counted", 120, 0, "B", 120, seg(100, 119, "A"))
	f("new rules after a crash between ledger and commit", 110, 0, "B", 120, seg(100, 119, "A"))
	f("new rules, the ledger is a block ahead", b-5, 0, "B", b+21, seg(100, b-1, "A"), seg(b, b+20, "A"))
	f("new rules, a gap before the committed offset", 130, 0, "B", 120, seg(100, 119, "A"))
	f("new rules, and somebody set the offset forward", 5000, 0, "B", 5000, seg(100, 119, "A"))
	f("rules changed before in this block", 160, 0, "B", 120, seg(100, 119, "A"), seg(120, 159, "B"))
	f("and back", 220, 0, "A", 160, seg(100, 119, "A"), seg(120, 159, "B"), seg(160, 219, "A"))
	f("back before anything was counted under the new ones", 120, 0, "A", 100, seg(100, 119, "A"))
	f("back, and the commit was lost", 120, 0, "A", 160, seg(100, 119, "A"), seg(120, 159, "B"))
	f("a zombie under old rules counted further than the new owner", 130, 0, "C", 190, seg(100, 189, "A"), seg(120, 159, "B"))

	f("retention took the segment's first records", 120, 105, "A", 120, seg(100, 119, "A"))
	f("retention, and a crash between ledger and commit", 110, 105, "A", 120, seg(100, 119, "A"))
	f("retention up to the segment's start exactly", 120, 100, "A", 100, seg(100, 119, "A"))

	f("set back inside the segment", 105, 0, "A", 100, seg(100, 119, "A"))
	f("set back over whole blocks", 150, 0, "A", 100, seg(100, b-1, "A"), seg(b, 2*b-1, "A"), seg(2*b, 2*b+9, "A"))
	f("set back behind a change of rules", 105, 0, "B", 160, seg(100, 119, "A"), seg(120, 159, "B"))
	f("set back behind two changes", 105, 0, "A", 220, seg(100, 119, "A"), seg(120, 159, "B"), seg(160, 219, "A"))
	f("set back over a block under other rules", 105, 0, "A", 2*b+10, seg(100, b-1, "A"), seg(b, 2*b-1, "B"), seg(2*b, 2*b+9, "A"))
	f("set back behind a segment cut by retention", 105, 0, "A", 220, seg(100, 119, "A"), seg(120, 219, "A"))
	f("set back before all that is counted", 50, 0, "A", 50, seg(100, 119, "A"))
	f("a gap of markers before the committed offset", 500, 0, "A", 100, seg(100, 119, "A"))
	f("set forward: what lies between was never judged", 5000, 0, "A", 5000, seg(100, 119, "A"))
	f("set forward into another block", b+50, 0, "A", b+50, seg(100, 119, "A"))
}

// Nobody can have counted beyond the end of the log: the topic was made anew, and its
// first records must not pass for counted ones.
func TestAnotherLogIsReadFromItsStart(t *testing.T) {
	f := func(rules string, want int64) {
		t.Helper()
		a := consumer.Assignment{LogEnd: 100}
		if got := segmentStart(a, rules, seg(0, 5000, "A"), []sink.Segment{seg(0, 5000, "A")}); got != want {
			t.Errorf("rules %s: starts at %d, want %d", rules, got, want)
		}
	}
	f("A", 0)
	f("B", 0)

	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, oneCheck)
		old := w.fresh()
		for offset := range int64(20) {
			old.read(offset, item(fmt.Sprint("old-", offset)))
		}
		w.settle()
		if err := old.pt.Flush(t.Context(), 20); err != nil {
			t.Fatal(err)
		}
		old.pt.Close()

		w.judge.calls.Store(0)
		made := w.assign(w.p, consumer.Assignment{Topic: topic, LogEnd: 3})
		defer made.pt.Close()
		for offset := range int64(3) {
			made.read(offset, item(fmt.Sprint("new-", offset)))
		}
		w.settle()
		if w.judge.calls.Load() != 3 || len(made.resolved) != 3 {
			t.Errorf("%d of 3 new records were judged, %d resolved: the old log's answers stood in", w.judge.calls.Load(), len(made.resolved))
		}
		if !strings.Contains(w.log.String(), "the log is another one") {
			t.Error("nobody was told")
		}
	})
}

// Another decoder makes other interactions of the same records: what it counts must not
// be added to what the old one counted for the same offsets, nor replace half of it.
func TestAnotherDecoderStartsASegmentInMidBlock(t *testing.T) {
	f := func(name string, maxText int, want ...sink.Segment) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, oneCheck)
			old := w.fresh()
			for offset := range int64(10) {
				old.read(offset, item(fmt.Sprint("i-", offset)))
			}
			w.settle()
			if err := old.pt.Flush(t.Context(), 10); err != nil {
				t.Fatal(err)
			}
			old.revoke()
			old.pt.Close() // the crash, before all of it is committed

			p := w.pipeline(w.file, func(_ *Config, d *Deps) {
				limits := decode.Defaults()
				limits.MaxTextRunes = maxText
				decoder, err := decode.New(limits, d.Sources)
				if err != nil {
					t.Fatal(err)
				}
				d.Decoder = decoder
			})
			b := w.assign(p, consumer.Assignment{Topic: topic, Committed: 6, LogEnd: 100})
			defer b.pt.Close()
			for b.next < 15 {
				b.read(b.next, item(fmt.Sprint("i-", b.next)))
			}
			w.settle()
			if err := b.pt.Flush(t.Context(), 15); err != nil {
				t.Fatal(err)
			}
			if n, selected := w.store.counts("", "interaction"), w.store.counts("polite", "selected"); n != 15 || selected != 15 || len(w.store.evaluations) != 15 {
				t.Errorf("%s: counted %d interactions and %d selected, %d rows; want 15 of each", name, n, selected, len(w.store.evaluations))
			}
			got, err := w.store.Segments(t.Context(), topic, 0, 0)
			if err != nil || len(got) != len(want) {
				t.Fatalf("%s: segments %+v (%v), want %+v", name, got, err, want)
			}
			for i := range want {
				if got[i].SegmentFrom != want[i].SegmentFrom || got[i].UptoOffset != want[i].UptoOffset {
					t.Errorf("%s: segment %+v, want %+v", name, got[i], want[i])
				}
			}
			if len(got) > 1 && got[0].ChecksHash == got[1].ChecksHash {
				t.Errorf("%s: both segments stand under %s", name, got[0].ChecksHash)
			}
		})
	}
	f("the same decoder", decode.Defaults().MaxTextRunes, seg(0, 14, ""))
	f("another one", 500, seg(0, 9, ""), seg(10, 14, ""))
}

func TestARestartAsksNoQuestionThatIsAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, rules)
		a := w.fresh()
		a.read(1, item("i-1"))
		a.read(2, item("i-2"))
		synctest.Wait()
		// the second record's rows are durable, and of the first one all but one
		w.store.mu.Lock()
		for i, p := range w.store.pending {
			if e, ok := p.row.(sink.Evaluation); ok && e.Offset == 1 {
				w.store.pending = append(w.store.pending[:i], w.store.pending[i+1:]...)
				break
			}
		}
		w.store.mu.Unlock()
		w.settle()
		if len(w.store.evaluations) != 5 || a.outcome(1) != "" || a.outcome(2) != consumer.Durable {
			t.Fatalf("%d rows, outcomes %v", len(w.store.evaluations), a.resolved)
		}
		a.revoke()
		a.pt.Close() // the crash

		w.judge.calls.Store(0)
		p := w.pipeline(w.file)
		b := w.assign(p, consumer.Assignment{Topic: topic, Committed: 1, LogEnd: 100})
		defer b.pt.Close()
		b.read(1, item("i-1"))
		b.read(2, item("i-2"))
		w.store.texts = make(map[position]sink.Text)
		w.settle()
		if b.outcome(2) != consumer.Durable || len(w.store.texts) != 2 {
			t.Errorf("a record with all its answers is resolved as %q, %d texts are stored again", b.outcome(2), len(w.store.texts))
		}
		if b.outcome(1) != consumer.Durable || w.judge.calls.Load() != 1 || len(w.store.evaluations) != 6 {
			t.Errorf("outcome %q, %d questions, %d rows", b.outcome(1), w.judge.calls.Load(), len(w.store.evaluations))
		}
		skipped := 0.0
		for _, check := range []string{"polite", "right", "short"} {
			skipped += w.metric("assay_recovery_skipped_total", prometheus.Labels{"check": check})
		}
		if skipped != 5 {
			t.Errorf("%v skipped answers counted, want 5", skipped)
		}
	})
}

func TestAShedOrFailedJudgementIsNoAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, oneCheck)
		w.store.evaluations[evaluationKey{check: "polite"}] = sink.Evaluation{Check: "polite", CheckVersion: w.file.Checks[0].Version, Offset: 1, Status: "error"}
		a := w.fresh()
		defer a.pt.Close()
		a.read(1, item("i-1"))
		w.settle()
		if w.judge.calls.Load() != 1 {
			t.Errorf("%d questions, want 1", w.judge.calls.Load())
		}
	})
}

// fails answers the first calls and then fails.
type fails struct {
	*store
	after int
	since *time.Time
}

func (f *fails) next() error {
	if f.after--; f.after < 0 {
		return errDown
	}
	return nil
}

func (f *fails) LastSegment(ctx context.Context, topic string, partition uint32) (sink.Segment, bool, error) {
	return sink.Segment{UptoOffset: 5, InsertedAt: logTime}, true, f.next()
}

func (f *fails) Segments(ctx context.Context, topic string, partition uint32, block uint64) ([]sink.Segment, error) {
	return nil, f.next()
}

func (f *fails) Answered(_ context.Context, _ string, _ uint32, _ uint64, since time.Time) (map[sink.AnswerKey]struct{}, error) {
	*f.since = since
	return nil, f.next()
}

// Starting without the recovery scan would pay for every answer twice.
func TestAPartitionWaitsForClickHouse(t *testing.T) {
	var since time.Time
	for after := range 4 {
		w := newWorld(t, oneCheck, func(_ *Config, d *Deps) { d.Recovery = &fails{newStore(), after, &since} })
		_, _, err := w.p.Assign(t.Context(), consumer.Assignment{Topic: topic, Partition: 3, Committed: 7, LogEnd: 100, Reach: nothingBefore})
		if !errors.Is(err, errDown) || !strings.Contains(err.Error(), topic+"/3 at 7") {
			t.Errorf("after %d reads: %v", after, err)
		}
	}
	w := newWorld(t, oneCheck, func(_ *Config, d *Deps) { d.Recovery = &fails{newStore(), 4, &since} })
	if _, _, err := w.p.Assign(t.Context(), consumer.Assignment{Topic: topic, Committed: 7, LogEnd: 100, Reach: nothingBefore}); err != nil {
		t.Fatal(err)
	}
	if want := logTime.Add(-time.Minute - 10*time.Minute - 10*time.Minute); !since.Equal(want) {
		t.Errorf("answers since %s, want %s: the deadline, ten minutes and a half's wait before the last count", since, want)
	}
}
