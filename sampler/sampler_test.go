package sampler

import (
	"strings"
	"testing"
	"time"

	"assay/internal/interaction"
)

func TestDecisionsComeInTheOrderFilterApplicabilitySampling(t *testing.T) {
	f := func(rate float64, it interaction.Interaction, facts, gold string) {
		t.Helper()
		it.Time = time.Unix(7200+59, 0)
		s := New(file(t, rate), func(_ int, it *interaction.Interaction) (string, bool) {
			if it.Output == nil {
				return "missing:output", false
			}
			return "", true
		})
		got := s.Decide(&it, nil)
		for i, want := range []string{facts, gold} {
			d := got[i]
			text := d.Kind.String() + " " + d.Reason
			if strings.TrimSpace(text) != want || d.Check != i || d.Epoch != 2 || d.Stratum != "" {
				t.Errorf("check %d: %+v, want %s", i, d, want)
			}
			if hasRate := d.Kind == Selected || d.Kind == SampledOut; hasRate != (d.Pi > 0 || rate == 0 && i == 0 && hasRate) {
				t.Errorf("check %d: %s with pi %v", i, d.Kind, d.Pi)
			}
		}
	}
	text := "a"
	gold, silver := map[string]string{"tier": "gold"}, map[string]string{"tier": "silver"}

	f(1, interaction.Interaction{ID: "1", Output: &text, Attributes: gold}, "selected", "selected")
	f(0, interaction.Interaction{ID: "1", Output: &text, Attributes: silver}, "sampled_out", "filtered when")
	// a filter without an answer filters, and says so
	f(1, interaction.Interaction{ID: "1", Output: &text}, "selected", "filtered filter_error")
	// what cannot be judged is so at any rate
	f(0, interaction.Interaction{ID: "1", Attributes: gold}, "not_applicable missing:output", "not_applicable missing:output")
	f(1, interaction.Interaction{ID: "1", Attributes: silver}, "not_applicable missing:output", "filtered when")
}

func TestUpstreamRatesThatMakeNoSenseAreIgnored(t *testing.T) {
	for _, flag := range []string{"upstream_sampling:0", "upstream_sampling:2", "upstream_sampling:x", "upstream_sampling:NaN", "upstream_sampling:"} {
		if got := upstreamRate(&interaction.Interaction{Flags: []string{flag}}); got != 1 {
			t.Errorf("%s: %v", flag, got)
		}
	}
}

func TestSaltsAreIndependent(t *testing.T) {
	both := 0
	for i := range 20_000 {
		id := time.Unix(int64(i), 0).String()
		if U("a", id) < 0.1 && U("b", id) < 0.1 {
			both++
		}
	}
	// 200 expected, standard deviation 14
	if both < 130 || both > 270 {
		t.Errorf("%d ids in both 10%% samples, want about 200", both)
	}
}

func BenchmarkDecide(b *testing.B) {
	s := New(file(b, 0.05), everything)
	it := &interaction.Interaction{ID: "2f1c2b1e-7d0a-4c34-9f0e-5f4a4a1f0001", Attributes: map[string]string{"tier": "silver"}}
	var decisions []Decision
	b.ReportAllocs()
	for b.Loop() {
		decisions = s.Decide(it, decisions[:0])
	}
}
