package decode

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// The share that the fast path takes is part of the test: a fast path that declines
// everything would agree with anything.
func TestTheFastPathAgreesWithDecodeOverTheBank(t *testing.T) {
	for i, probing := range probings() {
		taken, total := 0, 0
		families := map[string]int{}
		byTopic := map[string]readers{}
		for _, path := range sidecars(t) {
			_, rec := load(t, path)
			r, ok := byTopic[rec.Topic]
			if !ok {
				r = probing.open(t, rec.Topic)
				byTopic[rec.Topic] = r
			}
			total++
			if r.agree(t, rec) {
				taken++
				families[r.d.Decode(rec).Format]++
			}
		}
		t.Logf("probing %d: %d of %d records of the bank take the fast path: %v", i, taken, total, families)
		if probing.source.Format == "" && (families[flat] < 5 || families[openAIChat] < 2) {
			t.Errorf("probing %d: only %v took the fast path", i, families)
		}
	}
}

func TestTheFastPathAgreesWithDecodeOnMutatedRecords(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 11))
	seeds := fastSeeds()
	for _, path := range sidecars(t) {
		if _, rec := load(t, path); len(rec.Value) < 4096 && bytes.HasPrefix(rec.Value, []byte("{")) {
			seeds = append(seeds, string(rec.Value))
		}
	}
	m := newMutator(t, rng)
	var trees []*tree
	for _, s := range seeds {
		if tr, ok := parseTree(s); ok {
			trees = append(trees, tr)
		}
	}
	for i, probing := range probings() {
		r := probing.open(t, "t")
		taken, total := 0, 0
		for range 8_000 {
			var body []byte
			if rng.IntN(8) == 0 {
				body = m.bytes([]byte(seeds[rng.IntN(len(seeds))]))
			} else {
				tr := trees[rng.IntN(len(trees))].clone()
				for range 1 + rng.IntN(3) {
					m.mutate(tr)
				}
				body = tr.write(nil, m)
			}
			total++
			if r.agree(t, fastRecord(body)) {
				taken++
			}
		}
		t.Logf("probing %d: %d of %d mutated records took the fast path", i, taken, total)
		if probing.source.Format == "" && taken < total/20 {
			t.Errorf("probing %d: only %d of %d took the fast path", i, taken, total)
		}
	}
}

// The fast path knows other families by the first names of their signatures. Whatever
// two names stand beside each other in an object that it reads, the table of families
// must give the object to the same one.
func TestNoOtherFamilyClaimsWhatTheFastPathReads(t *testing.T) {
	r := probings()[0].open(t, "t")
	names, taken := knownNames(t), 0
	values := []string{`"x"`, `{"a":1}`, `[{"type":"a","body":{},"category":"c"}]`, `7`}
	for i, a := range names {
		for _, b := range names[i+1:] {
			for _, va := range values {
				body := fmt.Sprintf(`{"input":"q","output":"a",%q:%s,%q:%s}`, a, va, b, values[(i+len(b))%len(values)])
				if r.agree(t, fastRecord([]byte(body))) {
					taken++
				}
			}
		}
	}
	if taken < 1000 {
		t.Errorf("only %d objects took the fast path", taken)
	}
}

func FuzzProbe(f *testing.F) {
	for _, s := range fastSeeds() {
		f.Add([]byte(s))
	}
	var all []readers
	for _, probing := range probings() {
		all = append(all, probing.open(f, "t"))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, r := range all {
			r.agree(t, fastRecord(body))
		}
	})
}

func TestTheFastPathDeclinesWhatHasTwoReadings(t *testing.T) {
	r := probings()[0].open(t, "t")
	f := func(body string, want bool) {
		t.Helper()
		if got := r.agree(t, fastRecord([]byte(body))); got != want {
			t.Errorf("%s: taken %t, want %t", body, got, want)
		}
	}
	f(`{"input":"q","output":"a"}`, true)
	f(` {"input":"q","output":"a"}`, false)
	f(`{"input":"q","output":"a"}{"input":"q","output":"a"}`, false)
	f(`{"input":"q","input":"r","output":"a"}`, false)
	f(`{"Input":"q","output":"a"}`, false)
	f(`{"inp\u0075t":"q","output":"a"}`, false)
	f("{\"input\":\"q\",\"output\":\"a\xff\"}", false)
	f(`{"input":"q","output":"a","x":NaN}`, false)
	f(`{"input":"q","output":{"text":"a"}}`, false)
	f(`{"input":"q","output":"{\"error\":1}"}`, false)
	f(`{"input":"q","output":"{\"fine\":1}"}`, true)
	f(`{"input":"q","output":"a","metadata":{"purpose":"llm_judge"}}`, false)
	f(`[{"input":"q","output":"a"}]`, false)
	f(`{"input":"q","output":"`+strings.Repeat("a", 30_000)+`"}`, false)
	f(`{"input":"q","output":"a","criteria":["a"`+strings.Repeat(`,"a"`, 15_000)+`]}`, false)
	f(`{"input":[{"role":"user","content":[{"type":"text","text":"q"}]}],"output":"a"}`, true)
	f(`{"input":[{"role":"user","content":[{"type":"text","text":"q","image":{}}]}],"output":"a"}`, false)
	f(`{"input":[{"role":"user","content":[{"type":"text","text":"q","toolResult":{"content":"r"}}]}],"output":"a"}`, false)
	f(`{"input":[{"role":"user","content":[{"type":"image_url","toolResult":{"content":"r"}}]}],"output":"a"}`, false)
}

// What is declined again and again is not even tried, and what changes is noticed.
func TestTheFastPathRestsWhereItIsNotNeeded(t *testing.T) {
	p := probings()[0].open(t, "t").p
	other, good := fastRecord([]byte(`{"resourceSpans":[]}`)), fastRecord([]byte(`{"input":"q","output":"a"}`))
	for range 5000 {
		if _, ok := p.Probe(other); ok {
			t.Fatal("another family was taken")
		}
	}
	if p.pause == 0 {
		t.Error("5000 declined records later every record is still tried")
	}
	tries := 0
	for ok := false; !ok; tries++ {
		_, ok = p.Probe(good)
	}
	if tries > maxPause+1 {
		t.Errorf("the fast path came back after %d records, want at most %d", tries, maxPause+1)
	}
	if _, ok := p.Probe(good); !ok {
		t.Error("it rests again after a record that it took")
	}
}

// The ledger keeps labels for longer than a record's bytes live.
func TestNothingProbedPointsIntoTheRecord(t *testing.T) {
	r := probings()[2].open(t, "t")
	body := []byte(`{"id":"a-1","input":"q","output":"a","app":"parcels","model":"m-1","session_id":"s","tier":"gold"}`)
	rec := fastRecord(slices.Clone(body))
	res, ok := r.p.Probe(rec)
	if !ok {
		t.Fatal("declined")
	}
	before := fmt.Sprintf("%+v", res.Interactions[0].Attributes) + res.Interactions[0].ID + res.Interactions[0].App + res.Interactions[0].Model + res.Interactions[0].SessionID
	clear(rec.Value)
	after := fmt.Sprintf("%+v", res.Interactions[0].Attributes) + res.Interactions[0].ID + res.Interactions[0].App + res.Interactions[0].Model + res.Interactions[0].SessionID
	if before != after {
		t.Errorf("%q became %q with the record's bytes", before, after)
	}
}

func TestAProbeAllocatesLittle(t *testing.T) {
	r := probings()[1].open(t, "t")
	for _, body := range [][]byte{chatLog(), []byte(fastSeeds()[1])} {
		rec := fastRecord(body)
		if !r.agree(t, rec) {
			t.Fatalf("declined: %s", body)
		}
		if n := testing.AllocsPerRun(200, func() { r.p.Probe(rec) }); n > 5 {
			t.Errorf("%v allocations for %.60s, want at most 5", n, body)
		}
	}
}

// Short numbers take a way of their own to a time; with many zeros behind the point they
// take the exact one.
func TestShortTimesAreExact(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 5))
	f := func(text, exact string) {
		t.Helper()
		got, ok := unixTime(text)
		want, wantOK := unixTime(exact)
		if ok != wantOK || !got.Equal(want) {
			t.Errorf("%s: %v %t, want %v %t", text, got, ok, want, wantOK)
		}
	}
	for digits := 1; digits <= 20; digits++ {
		for range 50 {
			whole := strconv.Itoa(1 + rng.IntN(9))
			for len(whole) < digits {
				whole += strconv.Itoa(rng.IntN(10))
			}
			f(whole, whole+".000000000000")
			fraction := fmt.Sprintf("%09d", rng.IntN(1e9))[:1+rng.IntN(9)]
			f(whole+"."+fraction, whole+"."+fraction+"000000000000")
		}
		nines := strings.Repeat("9", digits)
		f(nines, nines+".000000000000")
		f(nines+".999999999", nines+".999999999000000000000")
	}
	f("0", "0.000000000000")
	f("012", "012.000000000000")
	f("1.2.3", "1.2.3.000000000")
	f("-5", "-5.000000000000")
}

func TestASourceThatIsNotFastHasNoProber(t *testing.T) {
	for _, s := range []Source{{Topic: "t", Format: "langfuse"}, {Topic: "t", Turn: firstUser}} {
		if newDecoder(t, s).Prober("t", Plan{}) != nil {
			t.Errorf("a prober for %+v", s)
		}
	}
	cfg := Defaults()
	cfg.Full = true
	d, err := New(cfg, []Source{{Topic: "t"}})
	if err != nil {
		t.Fatal(err)
	}
	if d.Prober("t", Plan{}) != nil {
		t.Error("a prober where every record is to be read in full")
	}
	if newDecoder(t, Source{Topic: "t"}).Prober("t", Plan{}) == nil {
		t.Error("no prober for a source that names nothing")
	}
}

// knownNames are the names that keyOf knows.
func knownNames(t testing.TB) []string {
	t.Helper()
	source, err := os.ReadFile("keys.go")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, m := range regexp.MustCompile(`"([^"]+)"[,:]`).FindAllSubmatch(source, -1) {
		if keyOf(m[1]) != noKey {
			names = append(names, string(m[1]))
		}
	}
	if len(names) < int(numKeys)-1 {
		t.Fatalf("%d names for %d keys", len(names), numKeys)
	}
	return names
}
