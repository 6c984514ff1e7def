package pipeline

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"assay/consumer"
	"assay/internal/interaction"
	"assay/internal/interaction/decode"
	"assay/internal/testkit"
)

// Every reason a decision can have stands in these rules.
const probeRules = `
version: 1
dimensions: [app, region]
sources: [{ topic: assistant.log, fields: { expected: metadata.reference, tenant: "header:tenant" } }]
judges: { a: { kind: simulated } }
checks:
  - { name: polite, evaluator: closed_qa, criteria: { text: "Greets." }, judge: a, sample: { rate: 0.1 } }
  - { name: facts, evaluator: factuality, reference: { field: expected }, judge: a, when: 'app != "app 1" && status != "error"', sample: { rate: 0.05 } }
  - { name: own, evaluator: closed_qa, criteria: { field: criteria }, judge: a, refusals: not_applicable, empty_output: fail, sample: { rate: 0.2, salt: s } }
  - { name: tier, evaluator: closed_qa, criteria: { text: "Is kind." }, judge: a, when: 'attributes.tier == "gold"', truncated: not_applicable, sample: { rate: 0.3 } }
  - { name: dear, evaluator: exact_match, reference: { field: attributes.gold }, when: 'output_tokens > 20 || user_id == "u 1"', sample: { rate: 0.1 } }
  - { name: quick, evaluator: latency, max: 500, when: 'model.startsWith("m") && time > timestamp("2026-01-01T00:00:00Z")', sample: { rate: 0 } }
`

// twin is one record after another through two partitions under the same rules: one with
// the fast path and one without.
type twin struct{ fast, full *assigned }

func newTwin(t *testing.T, rules string, committed int64) (*world, twin) {
	t.Helper()
	w := newWorld(t, rules)
	if w.p.plan == nil {
		t.Fatalf("no plan: %s", w.log)
	}
	slow := w.pipeline(w.file)
	slow.plan = nil
	at := consumer.Assignment{Topic: topic, Committed: committed, LogEnd: 1 << 40}
	w.reg = w.p.deps.Reg.(*prometheus.Registry)
	return w, twin{w.assign(w.p, at), w.assign(slow, at)}
}

func (tw twin) close() { tw.fast.pt.Close(); tw.full.pt.Close() }

// read hands a record to both and compares what they count about it.
func (tw twin) read(t *testing.T, rec interaction.Record) {
	t.Helper()
	ctx := t.Context()
	tw.fast.handle(ctx, rec)
	tw.full.handle(ctx, rec)
	if !reflect.DeepEqual(tw.fast.pt.cells, tw.full.pt.cells) {
		t.Fatalf("record %s\ncounts with the fast path\n%+v\nwithout\n%+v", rec.Value, tw.fast.pt.cells, tw.full.pt.cells)
	}
	synctest.Wait()
	tw.fast.w.settle()
	if a, b := tw.fast.outcome(rec.Offset), tw.full.outcome(rec.Offset); a != b {
		t.Fatalf("record %s: %q with the fast path, %q without", rec.Value, a, b)
	}
}

// probeRecord is a log of one call, in shapes that differ from one to the next.
func probeRecord(rng *rand.Rand, i int) string {
	pick := func(of ...string) string { return of[rng.IntN(len(of))] }
	common := fmt.Sprintf(`"id":"i-%d","app":"app %d","model":%q,"user_id":"u %d","latency_ms":%d,"metadata":{"tier":%q,"region":"r%d"%s},"timestamp":"2026-03-01T%02d:00:00Z"`,
		i, rng.IntN(3), pick("m-1", "n-1"), rng.IntN(3), rng.IntN(900), pick("gold", "tin", ""), rng.IntN(2),
		pick("", `,"reference":"two days"`, `,"gold":"yes"`), rng.IntN(24))
	common += pick("", `,"criteria":"Is short."`, `,"criteria":" "`, `,"status":"error"`, `,"output_tokens":30`, `,"feedback":1`, `,"tags":["a"]`)
	answer := pick("In two days.", "I'm sorry, but I can't help with that.", "", "\u200b", "Line one.\nLine two.", "FILTERED", `{"eta":2}`, `{"error":{"message":"down"}}`,
		strings.Repeat("A long answer. ", 3000))
	if rng.IntN(2) == 0 {
		return fmt.Sprintf(`{%s,"input":%q,"output":%q}`, common, pick("When?", "", "[REDACTED]"), answer)
	}
	return fmt.Sprintf(`{%s,"request":{"model":"m-2","messages":[{"role":"user","content":%q}]},"response":{"object":"chat.completion","created":1772359200,"model":%q,"choices":[{"message":{"role":"assistant","content":%q%s},"finish_reason":%q}],"usage":{"completion_tokens":%d}}}`,
		common, pick("When?", " "), pick("m-3", "n-3"), answer, pick("", "", `,"tool_calls":[{"id":"x"}]`), pick("stop", "length", "content_filter"), rng.IntN(40))
}

func TestTheFastPathCountsWhatTheFullDecodeCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, tw := newTwin(t, probeRules, 0)
		defer tw.close()
		rng := rand.New(rand.NewPCG(1, 2))
		offset := int64(0)
		read := func(rec interaction.Record) {
			rec.Topic, rec.Offset, rec.Time = topic, offset, logTime
			offset++
			tw.read(t, rec)
		}
		for i := range 3000 {
			read(interaction.Record{Value: []byte(probeRecord(rng, i)), Headers: []interaction.Header{{Key: "tenant", Value: []byte("north")}}})
		}
		// A broken clock of the broker leaves no bound for the producer's.
		tw.read(t, interaction.Record{Topic: topic, Offset: offset, Time: time.Unix(0, 0).UTC(), Value: []byte(`{"id":"far","input":"q","output":"a","time":"2200-01-01T00:00:00Z"}`)})
		if minute := tw.full.pt.cells[0].Minute; minute != 0 {
			t.Fatalf("a time that no table holds is counted in minute %d, want the log's", minute)
		}
		result := func(r string) float64 {
			return w.metric("assay_decode_fast_total", prometheus.Labels{"topic": topic, "result": r})
		}
		t.Logf("read %v, selected %v, declined %v of %d", result(fastRead), result(fastSelected), result(fastDeclined), offset)
		if result(fastRead) < 1000 || result(fastSelected) < 50 || result(fastDiffers) != 0 {
			t.Errorf("read %v, selected %v, differs %v", result(fastRead), result(fastSelected), result(fastDiffers))
		}
		same(t, tw)
	})
}

// Each folder of the bank is a log of its own: in one log, halves of one format would keep
// the fast path away from the others.
func TestTheFastPathCountsWhatTheFullDecodeCountsOverTheBank(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		taken := 0.0
		for _, bodies := range bankRecords(t) {
			w, tw := newTwin(t, probeRules, 0)
			for i, body := range bodies {
				tw.read(t, interaction.Record{Topic: topic, Offset: int64(i), Time: logTime, Value: body})
			}
			for _, r := range []string{fastRead, fastSelected} {
				taken += w.metric("assay_decode_fast_total", prometheus.Labels{"topic": topic, "result": r})
			}
			same(t, tw)
			tw.close()
		}
		if taken < 20 {
			t.Errorf("%v records of the bank took the fast path", taken)
		}
	})
}

// same compares all counters of the two processes but the fast path's own.
func same(t *testing.T, tw twin) {
	t.Helper()
	gather := func(a *assigned) map[string]string {
		families, err := a.pt.pipeline.deps.Reg.(*prometheus.Registry).Gather()
		if err != nil {
			t.Fatal(err)
		}
		all := make(map[string]string)
		for _, f := range families {
			for _, m := range f.GetMetric() {
				if f.GetName() != "assay_decode_fast_total" && m.GetCounter().GetValue() != 0 {
					all[fmt.Sprint(f.GetName(), m.GetLabel())] = fmt.Sprint(m.GetCounter().GetValue())
				}
			}
		}
		return all
	}
	fast, full := gather(tw.fast), gather(tw.full)
	if !reflect.DeepEqual(fast, full) || len(full) == 0 {
		t.Errorf("counters with the fast path\n%v\nwithout\n%v", fast, full)
	}
}

// bankRecords are the JSON records of the bank of formats, by folder.
func bankRecords(t *testing.T) map[string][][]byte {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(testkit.Cases(t), "formats", "*", "*.json"))
	if err != nil || len(paths) < 100 {
		t.Fatalf("%d records of the bank: %v", len(paths), err)
	}
	all := make(map[string][][]byte)
	for _, path := range paths {
		if strings.HasSuffix(path, ".want.json") {
			continue
		}
		body, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		all[filepath.Dir(path)] = append(all[filepath.Dir(path)], body)
	}
	return all
}

// Records that an earlier owner has resolved are counted again, and nothing else is done
// about them, whatever is selected.
func TestTheFastPathCountsAgainBelowTheCommittedOffset(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, tw := newTwin(t, probeRules, 50)
		defer tw.close()
		rng := rand.New(rand.NewPCG(4, 2))
		for i := range int64(50) {
			rec := interaction.Record{Topic: topic, Offset: i, Time: logTime, Value: []byte(probeRecord(rng, int(i)))}
			tw.fast.handle(t.Context(), rec)
			tw.full.handle(t.Context(), rec)
			if !reflect.DeepEqual(tw.fast.pt.cells, tw.full.pt.cells) {
				t.Fatalf("record %s\ncounts with the fast path\n%+v\nwithout\n%+v", rec.Value, tw.fast.pt.cells, tw.full.pt.cells)
			}
		}
		if n := w.metric("assay_interactions_total", prometheus.Labels{"topic": topic}); n != 0 {
			t.Errorf("%v interactions are counted as read", n)
		}
	})
}

// A half that waits may be due with any record: all of them are told to the joiner.
func TestTheFastPathRestsWhileHalvesWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, strings.Replace(joinRules, "rate: 1 }", "rate: 0 }", 1))
		a := w.fresh()
		defer a.pt.Close()
		read := func() float64 {
			return w.metric("assay_decode_fast_total", prometheus.Labels{"topic": topic, "result": fastRead})
		}
		a.read(0, `{"id":"f-0","input":"q","output":"a","app":"app 1"}`)
		if read() != 1 {
			t.Fatalf("%v records were read by the fast path, want 1", read())
		}
		a.read(1, events(begun("g-1")))
		a.read(2, `{"id":"f-2","input":"q","output":"a","app":"app 1"}`)
		if read() != 1 {
			t.Error("the fast path went on beside a half that waits")
		}
		w.settle()
	})
}

// The full decode counts where the two differ, and the difference is seen.
func TestADifferenceOfTheFastPathIsCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, tw := newTwin(t, strings.Replace(probeRules, "rate: 0.1 }", "rate: 0.4 }", 1), 0)
		defer tw.close()
		// A plan that forgets a filter's field stands for a defect of the fast path.
		tw.fast.pt.prober.fast = w.p.deps.Decoder.Prober(topic, decode.Plan{TextBytes: decode.Unbounded})
		rng := rand.New(rand.NewPCG(8, 8))
		for i := range int64(300) {
			tw.fast.handle(t.Context(), interaction.Record{Topic: topic, Offset: i, Time: logTime, Value: []byte(probeRecord(rng, int(i)))})
			w.settle()
		}
		if n := w.metric("assay_decode_fast_total", prometheus.Labels{"topic": topic, "result": fastDiffers}); n == 0 || !strings.Contains(w.log.String(), "the fast path decided otherwise") {
			t.Errorf("%v differences; log %s", n, w.log)
		}
	})
}

func TestARecordThatOnlyTheFastPathReadsIsADifference(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, tw := newTwin(t, strings.Replace(probeRules, "rate: 0.1 }", "rate: 0.4 }", 1), 0)
		defer tw.close()
		// Another source's settings stand for a defect of the fast path.
		other, err := decode.New(decode.Defaults(), []decode.Source{{Topic: topic, Fields: map[string]string{"input": "asked", "output": "said"}}})
		if err != nil {
			t.Fatal(err)
		}
		tw.fast.pt.prober.fast = other.Prober(topic, decode.Plan{TextBytes: decode.Unbounded})
		for i := range int64(20) {
			tw.fast.handle(t.Context(), interaction.Record{Topic: topic, Offset: i, Time: logTime, Value: fmt.Appendf(nil, `{"id":"i-%d","asked":"q","said":"a"}`, i)})
			w.settle()
		}
		selected := w.metric("assay_decode_fast_total", prometheus.Labels{"topic": topic, "result": fastSelected})
		differs := w.metric("assay_decode_fast_total", prometheus.Labels{"topic": topic, "result": fastDiffers})
		if selected == 0 || differs != selected {
			t.Errorf("%v selected, %v differences; want the same", selected, differs)
		}
	})
}
