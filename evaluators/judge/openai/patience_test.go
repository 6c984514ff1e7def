package openai

import (
	"math/rand/v2"
	"testing"
	"time"
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
