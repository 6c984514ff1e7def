package openai

import (
	"math/rand/v2"
	"testing"
	"time"

	"assay/evaluators/judge"
)

func TestPatienceFollowsTheJudgesOwnLatency(t *testing.T) {
	p := newPatience(20 * time.Second)
	r := rand.New(rand.NewPCG(1, 2))
	for range patienceLeast - 1 {
		p.answered(time.Second)
	}
	if p.limit() != 20*time.Second {
		t.Errorf("limit %v before there is enough to go by", p.limit())
	}
	// 0.5% of the calls hang: the limit stays near four times the p99
	long := 0
	for range 20_000 {
		if r.IntN(200) == 0 {
			p.gaveUp(p.limit())
		} else {
			p.answered(time.Duration(800+r.IntN(400)) * time.Millisecond)
		}
		if p.limit() > 5*time.Second {
			long++
		}
	}
	if p.limit() > 5*time.Second || long > 2_000 {
		t.Errorf("limit %v, above 5s %d times of 20,000", p.limit(), long)
	}
}

// The judge becomes ten times slower for everyone. A limit that only learns from
// answers would cut all of them off for ever.
func TestPatienceDoesNotStarveASlowJudge(t *testing.T) {
	p := newPatience(20 * time.Second)
	for range patienceWindow {
		p.answered(time.Second)
	}
	if p.limit() != 4*time.Second {
		t.Fatalf("limit %v, want 4s", p.limit())
	}
	tries := 0
	for p.limit() < 10*time.Second {
		if tries++; tries > 50 {
			t.Fatalf("still %v after %d tries given up", p.limit(), tries)
		}
		p.gaveUp(p.limit())
	}
	for range 2 * patienceWindow {
		p.answered(10 * time.Second)
	}
	if p.limit() != 20*time.Second {
		t.Errorf("limit %v, want what is configured", p.limit())
	}
	// and it recovers
	for range 2 * patienceWindow {
		p.answered(100 * time.Millisecond)
	}
	if p.limit() != patienceFloor {
		t.Errorf("limit %v, want the floor", p.limit())
	}
}

func TestPatienceNeverPassesWhatIsConfigured(t *testing.T) {
	p := newPatience(time.Second)
	for range 3 * patienceWindow {
		p.answered(900 * time.Millisecond)
	}
	if p.limit() != time.Second {
		t.Errorf("limit %v, want 1s", p.limit())
	}
}

// A list of claims takes many times as long as a letter. Where it is asked for now and
// then, it may not be cut off by what letters take.
func TestPatienceWithLettersIsNotThatWithTexts(t *testing.T) {
	server := record(t, func(path string, _ map[string]any) (int, string) {
		if path == "/embeddings" {
			return 200, `{"data":[{"embedding":[1,2]}]}`
		}
		return 200, writes("A", "stop")
	})
	j := newJudge(t, server.URL, func(c *Config) { votes(c); embeds(c); c.Timeout = 30 * time.Second })
	for range patienceWindow {
		j.patience.answered(200 * time.Millisecond)
	}
	for q, want := range map[*judge.Question]time.Duration{
		new(boolean("x")): patienceFloor, new(draft()): 30 * time.Second, new(judge.VectorQuestion("x")): 30 * time.Second,
	} {
		if got := j.limit(*q); got != want {
			t.Errorf("%s: limit %v, want %v", q.Kind, got, want)
		}
		before := j.patience.fresh
		if _, err := j.Ask(t.Context(), *q); err != nil {
			t.Fatal(err)
		}
		if counted := j.patience.fresh != before; counted != q.Kind.HasOptions() {
			t.Errorf("%s: counted %t", q.Kind, counted)
		}
	}
}
