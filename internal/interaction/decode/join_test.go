package decode

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"assay/internal/interaction"
)

var joinStart = time.Date(2026, 5, 4, 10, 0, 0, 0, time.UTC)

// halfRecord is a batch of one log event of a call.
func halfRecord(offset int64, after time.Duration, span int, event, text string) interaction.Record {
	body := fmt.Sprintf(`{"content":%q}`, text)
	if event == choiceEvent {
		body = fmt.Sprintf(`{"index":0,"finish_reason":"stop","message":{"role":"assistant","content":%q}}`, text)
	}
	doc := fmt.Sprintf(`{"resourceLogs":[{"resource":{"attributes":[{"key":"service.name","value":{"stringValue":"desk"}}]},
		"scopeLogs":[{"logRecords":[{"timeUnixNano":"%d","eventName":%q,"traceId":"000102030405060708090a0b0c0d0e0f",
		"spanId":"%016x","body":{"stringValue":%q}}]}]}]}`, joinStart.Add(after).UnixNano(), event, span, body)
	return interaction.Record{Topic: "logs", Partition: 2, Offset: offset, Time: joinStart.Add(after), Value: []byte(doc)}
}

func askedIn(offset int64, after time.Duration, span int) interaction.Record {
	return halfRecord(offset, after, span, "gen_ai.user.message", fmt.Sprintf("Question %d?", span))
}

func answeredIn(offset int64, after time.Duration, span int) interaction.Record {
	return halfRecord(offset, after, span, choiceEvent, fmt.Sprintf("Answer %d.", span))
}

func testJoiner(t *testing.T, change func(*Config)) *Joiner {
	t.Helper()
	cfg := Defaults()
	if change != nil {
		change(&cfg)
	}
	d, err := New(cfg, []Source{{Topic: "logs", JoinWait: time.Minute}})
	if err != nil {
		t.Fatal(err)
	}
	return d.NewJoiner("logs")
}

func TestAHalfIsHeldUntilItsRestCompletesIt(t *testing.T) {
	j := testJoiner(t, nil)
	first := j.Decode(askedIn(10, 0, 1))
	if first.Outcome != Partial || first.Held != 1 || len(first.Interactions)+len(first.Released) != 0 {
		t.Fatalf("the question alone: %+v", first)
	}
	second := j.Decode(answeredIn(11, time.Second, 1))
	if second.Held != 0 || !slices.Equal(second.Released, []int64{10}) || len(second.Interactions) != 1 {
		t.Fatalf("the answer: %+v", second)
	}
	it := second.Interactions[0]
	if it.ID != "000102030405060708090a0b0c0d0e0f/0000000000000001" || *it.Input != "Question 1?" || *it.Output != "Answer 1." ||
		!it.Judgeable || !it.HasFlag("joined") || it.App != "desk" {
		t.Errorf("joined: %+v", it)
	}
	if it.Offset != 11 || !it.Time.Equal(joinStart) {
		t.Errorf("offset %d, time %s: it belongs to the record that completed it and happened when it began", it.Offset, it.Time)
	}
	if c := j.Counts(); c != (JoinCounts{Joined: 1}) {
		t.Errorf("counts %+v", c)
	}
}

func TestHalvesOfOneRecordNeedNoJoiner(t *testing.T) {
	d := newDecoder(t)
	rec := askedIn(1, 0, 7)
	rec.Value = append(append(rec.Value, '\n'), answeredIn(1, 0, 7).Value...)
	got := d.Decode(rec)
	if got.Outcome != Records || len(got.Interactions) != 1 || *got.Interactions[0].Output != "Answer 7." || got.Interactions[0].HasFlag("joined") {
		t.Fatalf("%+v", got)
	}
}

// What else a record carries does not change whose half it is.
func TestAHalfBesideOtherFormatsFindsItsRest(t *testing.T) {
	j := testJoiner(t, nil)
	rec := askedIn(10, 0, 1)
	rec.Value = append([]byte(`{"input":"a","output":"b"}`+"\n"), rec.Value...)
	if got := j.Decode(rec); got.Held != 1 || len(got.Interactions) != 1 || got.Outcome != Partial {
		t.Fatalf("%+v", got)
	}
	if got := j.Decode(answeredIn(11, 0, 1)); len(got.Interactions) != 1 || !slices.Equal(got.Released, []int64{10}) {
		t.Errorf("%+v", got)
	}
}

// Without a joiner a half is an incomplete interaction: visible, and no bad answer.
func TestWithoutAJoinerAHalfIsIncomplete(t *testing.T) {
	got := newDecoder(t).Decode(askedIn(1, 0, 7))
	if got.Outcome != Records || len(got.Interactions) != 1 || got.Held != 0 {
		t.Fatalf("%+v", got)
	}
	if it := got.Interactions[0]; it.Judgeable || it.Status != interaction.NoContent || it.SkipReason != incompleteHalf || *it.Input != "Question 7?" {
		t.Errorf("%+v", it)
	}
}

func TestAnExpiredHalfIsIncompleteAndReleased(t *testing.T) {
	j := testJoiner(t, nil)
	j.Decode(askedIn(10, 0, 1))
	if got := j.Decode(askedIn(11, time.Minute, 2)); len(got.Interactions) != 0 {
		t.Fatalf("expired within its wait: %+v", got)
	}
	got := j.Decode(askedIn(12, time.Minute+time.Second, 3))
	if len(got.Interactions) != 1 || !slices.Equal(got.Released, []int64{10}) || got.Held != 1 {
		t.Fatalf("after the wait: %+v", got)
	}
	if it := got.Interactions[0]; it.Offset != 10 || it.SkipReason != incompleteHalf || it.Output != nil {
		t.Errorf("%+v", it)
	}
	if c := j.Counts(); c.Expired != 1 || c.Waiting != 2 {
		t.Errorf("counts %+v", c)
	}
}

func TestTheRestOfAnExpiredHalfMakesItWholeLate(t *testing.T) {
	j := testJoiner(t, nil)
	j.Decode(askedIn(10, 0, 1))
	j.Decode(askedIn(11, 90*time.Second, 2))
	got := j.Decode(answeredIn(12, 91*time.Second, 1))
	if len(got.Interactions) != 1 || got.Held != 0 || len(got.Released) != 0 {
		t.Fatalf("%+v", got)
	}
	if it := got.Interactions[0]; !it.Judgeable || !it.HasFlag("late_join") || *it.Input != "Question 1?" {
		t.Errorf("%+v", it)
	}
}

// Some producers send updates after the end. They are no interaction of their own, and
// nothing waits for a rest that has come already.
func TestAPartAfterTheEndIsASkip(t *testing.T) {
	j := testJoiner(t, nil)
	j.Decode(askedIn(10, 0, 1))
	j.Decode(answeredIn(11, 0, 1))
	got := j.Decode(answeredIn(12, time.Second, 1))
	if got.Outcome != Skip || !slices.Equal(got.Skips, []string{lateHalf}) || got.Held != 0 {
		t.Errorf("%+v", got)
	}
}

// A record that holds two halves is released when both have found their rest.
func TestARecordIsReleasedWithItsLastHalf(t *testing.T) {
	j := testJoiner(t, nil)
	rec := askedIn(10, 0, 1)
	rec.Value = append(append(rec.Value, '\n'), askedIn(10, 0, 2).Value...)
	if got := j.Decode(rec); got.Held != 2 {
		t.Fatalf("%+v", got)
	}
	if got := j.Decode(answeredIn(11, 0, 2)); len(got.Released) != 0 || len(got.Interactions) != 1 {
		t.Fatalf("one of two: %+v", got)
	}
	if got := j.Decode(answeredIn(12, 0, 1)); !slices.Equal(got.Released, []int64{10}) {
		t.Fatalf("both: %+v", got)
	}
}

func TestOverItsBoundsTheJoinerGivesUpTheOldest(t *testing.T) {
	f := func(change func(*Config), want int) {
		t.Helper()
		j := testJoiner(t, change)
		var released []int64
		incomplete := 0
		for i := range 10 {
			got := j.Decode(askedIn(int64(i), time.Duration(i)*time.Millisecond, i+1))
			released = append(released, got.Released...)
			incomplete += len(got.Interactions)
		}
		if c := j.Counts(); c.Waiting != want || int(c.Early) != 10-want || incomplete != 10-want {
			t.Errorf("counts %+v, %d incomplete; want %d that wait", c, incomplete, want)
		}
		for i, offset := range released {
			if offset != int64(i) {
				t.Errorf("released %v: want the oldest first", released)
			}
		}
	}
	f(func(c *Config) { c.MaxHeld = 3 }, 3)
	f(func(c *Config) { c.MaxHeldBytes = 2 << 10 }, 6)
	f(func(c *Config) { c.MaxHeld = 0 }, 0)
}

func TestAtTheEndOfALogTheRestIsGivenUp(t *testing.T) {
	j := testJoiner(t, nil)
	j.Decode(askedIn(10, 0, 1))
	got := j.Rest()
	if len(got.Interactions) != 1 || !slices.Equal(got.Released, []int64{10}) || got.Interactions[0].Topic != "logs" || got.Interactions[0].Offset != 10 {
		t.Fatalf("%+v", got)
	}
	if got := j.Rest(); got.Outcome != Skip || len(got.Interactions) != 0 {
		t.Fatalf("again: %+v", got)
	}
}

// Pairs overlap: there may be no offset that none of them spans. A restart that begins
// early enough finds the same interactions at the same places all the same.
func TestARestartJoinsTheSame(t *testing.T) {
	var log []interaction.Record
	for i := range 120 {
		at := time.Duration(i) * 5 * time.Second
		log = append(log, askedIn(int64(len(log)), at, i+1))
		if i%3 == 0 && i >= 16 {
			log = append(log, answeredIn(int64(len(log)), at, i-5-i%2*10))
		}
	}
	// read decodes from an offset on, and tells what came of the records from another on
	// and which offset would have been committed before that.
	read := func(from, tell int) (out string, committed int) {
		j := testJoiner(t, nil)
		held := map[int64]bool{}
		for offset := from; offset < len(log); offset++ {
			if offset == tell {
				committed = offset
				for h := range held {
					committed = min(committed, int(h))
				}
			}
			res := j.Decode(log[offset])
			if res.Held > 0 {
				held[int64(offset)] = true
			}
			for _, h := range res.Released {
				delete(held, h)
			}
			for _, it := range res.Interactions {
				if offset >= tell {
					out += fmt.Sprintf("%d: %d %s %q %v\n", offset, it.Offset, it.ID, it.SkipReason, it.Flags)
				}
			}
		}
		return out, committed
	}
	for crash := 1; crash < len(log); crash += 5 {
		once, committed := read(0, crash)
		from := committed
		for from > 0 && log[from-1].Time.After(log[committed].Time.Add(-testJoiner(t, nil).Reach())) {
			from--
		}
		again, _ := read(from, crash)
		if again != once {
			t.Errorf("after a crash before %d, from %d on:\n%s\nwithout one:\n%s", crash, committed, again, once)
		}
		if crash == 1 && (!strings.Contains(once, "joined") || !strings.Contains(once, incompleteHalf)) {
			t.Errorf("nothing to compare: %s", once)
		}
	}
}

// What a record becomes does not depend on where a reader began, if that was early enough:
// whatever the log's order, its silences and what is said again. All that is said of one
// call lies within twice the wait.
func TestWhereverAReaderBeginsItJoinsTheSame(t *testing.T) {
	d, err := New(Defaults(), []Source{{Topic: "logs", JoinWait: time.Minute}})
	if err != nil {
		t.Fatal(err)
	}
	for seed := range uint64(12) {
		r := rand.New(rand.NewPCG(seed, 3))
		at := joinStart
		var log []interaction.Record
		for offset := range int64(150) {
			switch r.IntN(12) {
			case 0:
				at = at.Add(time.Duration(r.IntN(90)) * time.Second)
			case 1:
				at = at.Add(time.Duration(r.IntN(5)) * time.Hour)
			default:
				at = at.Add(time.Duration(r.IntN(9)) * time.Second)
			}
			trace, epoch := r.IntN(6), int(at.Sub(joinStart)/time.Minute)-r.IntN(2)
			call := fmt.Sprintf("g%d-%d", epoch, r.IntN(5))
			event := fmt.Sprintf(`{"type":"trace-create","body":{"id":"t%d","name":"app %d"}}`, trace, r.IntN(3))
			switch r.IntN(3) {
			case 0:
				event = fmt.Sprintf(`{"type":"generation-create","body":{"id":%q,"traceId":"t%d","input":"Question?"}}`, call, trace)
			case 1:
				event = fmt.Sprintf(`{"type":"generation-update","body":{"id":%q,"output":"Answer.","endTime":%q}}`, call, at.Format(time.RFC3339))
			}
			log = append(log, interaction.Record{Topic: "logs", Offset: offset, Time: at, Value: []byte(`{"batch":[` + event + `]}`)})
		}
		// read tells what each record becomes, from one on.
		read := func(from int) []string {
			j := d.NewJoiner("logs")
			out := make([]string, len(log))
			for i := from; i < len(log); i++ {
				res := j.Decode(log[i])
				out[i] = fmt.Sprint(res.Held, res.Skips, res.Bad)
				for _, it := range res.Interactions {
					out[i] += fmt.Sprintf(" %d/%d %s %q %q %v", it.Offset, it.Element, it.ID, it.App, it.SkipReason, it.Flags)
				}
			}
			return out
		}
		all := read(0)
		for first := 1; first < len(log); first++ {
			from := 0
			for log[from].Time.Before(log[first-1].Time.Add(-d.NewJoiner("logs").Reach())) {
				from++
			}
			if got := read(from); !slices.Equal(got[first:], all[first:]) {
				for i := first; i < len(log); i++ {
					if got[i] != all[i] {
						t.Fatalf("seed %d, read from %d for %d on: record %d becomes\n%s, from the start\n%s", seed, from, first, i, got[i], all[i])
					}
				}
			}
		}
	}
}

// A family's defect costs the one interaction and frees what waited for it.
func TestAPanicInAFamilyFreesWhatWaited(t *testing.T) {
	d := newDecoder(t)
	j := d.NewJoiner("logs")
	bad := &joint{format: "test", whole: func(p []value) bool { return len(p) == 2 }, read: func(*element, []value) { panic("boom") }}
	settle := func(offset int64) Result {
		r := &record{d: d, src: j.src, join: j, rec: interaction.Record{Topic: "logs", Offset: offset, Time: joinStart}}
		r.part(bad, "k", value(`{}`))
		j.settle(r)
		return r.finish()
	}
	if got := settle(1); got.Held != 1 {
		t.Fatalf("%+v", got)
	}
	got := settle(2)
	if got.Outcome != DeadLetter || got.Bad[0].Reason != decoderPanic || !slices.Equal(got.Released, []int64{1}) {
		t.Errorf("%+v", got)
	}
}
