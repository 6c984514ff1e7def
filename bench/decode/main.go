// Command decode measures what it costs to read records on one core: chat logs that no
// check selects, the same decoded in full, and batches of spans; beside encoding/json
// into structs on the same bytes, in the same run. It counts the process's CPU time, so
// that neighbours on the machine weigh less: still, quote ratios.
//
//	go run ./bench/decode
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"runtime"
	"syscall"
	"time"

	"assay/internal/checks"
	"assay/internal/interaction"
	"assay/internal/interaction/decode"
	"assay/sampler"
)

const topic = "bench"

func main() {
	rounds := flag.Int("rounds", 5, "times that everything is measured, in turn; the best counts")
	each := flag.Duration("each", 500*time.Millisecond, "CPU time of one measurement")
	flag.Parse()
	runtime.GOMAXPROCS(1)
	if err := run(*rounds, *each); err != nil {
		fmt.Fprintln(os.Stderr, "decode:", err)
		os.Exit(1)
	}
}

// A way is something that reads one record.
type way struct {
	name string
	unit string // what is counted
	n    int    // of it in a record
	peer int    // index of the way that it is compared with
	read func() error
	best cost
}

type cost struct {
	cpu    time.Duration // of one record
	allocs float64
}

func run(rounds int, each time.Duration) error {
	chat, spans, spansJSON := chatLog(), protoBatch(), jsonBatch()
	file, decoder, prober, err := rules()
	if err != nil {
		return err
	}
	decide := sampler.New(file, func(int, *interaction.Interaction) (string, bool) { return "", true })
	var decisions []sampler.Decision
	rec := func(value []byte) interaction.Record {
		return interaction.Record{Topic: topic, Time: time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC), Value: value}
	}
	probe := func() (*interaction.Interaction, error) {
		res, ok := prober.Probe(rec(chat))
		if !ok {
			return nil, errors.New("the fast path declined the chat log")
		}
		return &res.Interactions[0], nil
	}
	whole := func(value []byte, want int) func() error {
		return func() error {
			if got := len(decoder.Decode(rec(value)).Interactions); got != want {
				return fmt.Errorf("%d interactions, want %d", got, want)
			}
			return nil
		}
	}
	ways := []*way{
		{name: "encoding/json into structs", unit: "messages", n: 1, peer: 0, read: func() error { return json.Unmarshal(chat, new(loggedChat)) }},
		{name: "sampled out: fast path", unit: "messages", n: 1, peer: 0, read: func() error {
			_, err := probe()
			return err
		}},
		{name: "sampled out: fast path and two decisions", unit: "messages", n: 1, peer: 0, read: func() error {
			it, err := probe()
			if err == nil {
				decisions = decide.Decide(it, decisions[:0])
			}
			return err
		}},
		{name: "selected: full decode", unit: "messages", n: 1, peer: 0, read: whole(chat, 1)},
		{name: "encoding/json into structs, OTLP JSON", unit: "spans", n: spansInBatch, peer: 4, read: func() error { return json.Unmarshal(spansJSON, new(loggedSpans)) }},
		{name: "OTLP JSON", unit: "spans", n: spansInBatch, peer: 4, read: whole(spansJSON, callsInBatch)},
		{name: "OTLP Protobuf", unit: "spans", n: spansInBatch, peer: 4, read: whole(spans, callsInBatch)},
	}
	for range rounds {
		for _, w := range ways {
			c, err := measure(w.read, each)
			if err != nil {
				return fmt.Errorf("%s: %w", w.name, err)
			}
			if w.best.cpu == 0 || c.cpu < w.best.cpu {
				w.best = c
			}
		}
	}
	fmt.Printf("one core, CPU time; chat logs of %d bytes, batches of %d spans (%d bytes Protobuf, %d JSON)\n", len(chat), spansInBatch, len(spans), len(spansJSON))
	for _, w := range ways {
		perUnit := w.best.cpu / time.Duration(w.n)
		fmt.Printf("%-42s %9.0f %-8s/s %7.2f us %5.0f allocations a record   %5.1f times encoding/json\n",
			w.name, float64(time.Second)/float64(perUnit), w.unit, float64(perUnit)/1000, w.best.allocs, float64(ways[w.peer].best.cpu)/float64(w.best.cpu))
	}
	return nil
}

// rules are two checks over two slices, one with a filter; both sample one in a hundred.
func rules() (*checks.File, *decode.Decoder, *decode.Prober, error) {
	file, err := checks.Parse("bench.yaml", []byte(`
version: 1
dimensions: [app, model]
sources: [{ topic: `+topic+`, fields: { expected: metadata.reference } }]
judges: { small: { kind: embedded } }
checks:
  - { name: facts, evaluator: factuality, coarse: true, reference: { field: expected }, judge: small, sample: { rate: 0.01 } }
  - { name: gold, evaluator: factuality, coarse: true, reference: { field: expected }, judge: small, when: app == "parcels" && user_id != "", sample: { rate: 0.01 } }
`))
	if err != nil {
		return nil, nil, nil, err
	}
	decoder, err := decode.New(decode.Defaults(), []decode.Source{{Topic: topic, Fields: file.Sources[0].Fields}})
	if err != nil {
		return nil, nil, nil, err
	}
	plan, err := file.Plan()
	if err != nil {
		return nil, nil, nil, err
	}
	return file, decoder, decoder.Prober(topic, plan), nil
}

// measure repeats read for a while and returns the cost of one call.
func measure(read func() error, each time.Duration) (cost, error) {
	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	start, calls := cpuTime(), 0
	for {
		for range 500 {
			if err := read(); err != nil {
				return cost{}, err
			}
		}
		calls += 500
		if took := cpuTime() - start; took >= each {
			runtime.ReadMemStats(&after)
			return cost{took / time.Duration(calls), float64(after.Mallocs-before.Mallocs) / float64(calls)}, nil
		}
	}
}

func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
