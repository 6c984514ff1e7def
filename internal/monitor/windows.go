package monitor

import (
	"context"
	"fmt"
	"slices"
	"time"

	"assay/internal/checks"
	"assay/internal/interaction"
	"assay/internal/stats"
	"assay/sink"
)

// span is a window's name, as labels carry it, and its length.
type span struct {
	name   string
	length time.Duration
}

// spans are the windows that are estimated each round.
var spans = [...]span{
	{"5m", 5 * time.Minute},
	{"1h", time.Hour},
	{"6h", 6 * time.Hour},
	{"24h", 24 * time.Hour},
}

// dataSpan is the window whose emptiness is called no_data.
const dataSpan = "1h"

// liveFor is how long a check version stays in the snapshot after its last row.
const liveFor = 7 * 24 * time.Hour

// thinNEff marks estimates that are shown but not to be relied on.
const thinNEff = 5

// windowEnd is where the windows of a round end: now, moved up to a whole minute, so
// that the newest rows count and every window is whole minutes.
func windowEnd(now time.Time) time.Time {
	end := now.UTC().Truncate(time.Minute)
	if end.Before(now) {
		end = end.Add(time.Minute)
	}
	return end
}

// sums are one version's sums over a window of a slice; without rows, zero sums.
func (m *Monitor) sums(ctx context.Context, check, version string, slice interaction.Slice, from, to time.Time) (sink.QualitySums, error) {
	all, err := m.store.Quality(ctx, check, slice, from, to)
	if err != nil {
		return sink.QualitySums{}, fmt.Errorf("quality of %s on %s from %s to %s: %w", check, slice, from, to, err)
	}
	return ofVersion(all, version), nil
}

func ofVersion(all []sink.QualitySums, version string) sink.QualitySums {
	for _, s := range all {
		if s.CheckVersion == version {
			return s
		}
	}
	return sink.QualitySums{CheckVersion: version}
}

// estimates are a check's states, one per version that had rows in the last seven days,
// the current one last. The current one is there even without rows.
func (m *Monitor) estimates(ctx context.Context, c checks.Check, now time.Time) ([]Check, error) {
	if now.IsZero() {
		return []Check{m.emptyCheck(c, c.Version)}, nil
	}
	end := windowEnd(now)
	lately, err := m.store.Quality(ctx, c.Name, nil, end.Add(-liveFor), end)
	if err != nil {
		return nil, fmt.Errorf("versions of check %s: %w", c.Name, err)
	}
	var states []Check
	for _, s := range lately {
		if s.CheckVersion != c.Version {
			states = append(states, m.emptyCheck(c, s.CheckVersion))
		}
	}
	states = append(states, m.emptyCheck(c, c.Version))
	for i := range states {
		if s := ofVersion(lately, states[i].Version); s.N > 0 {
			states[i].LastJudged = &s.LastMinute
		}
	}
	for _, w := range spans {
		from := end.Add(-w.length)
		population, err := m.store.PopulationSums(ctx, c.Name, from, end)
		if err != nil {
			return nil, fmt.Errorf("population of check %s from %s to %s: %w", c.Name, from, end, err)
		}
		for j, slice := range m.file.DeclaredSlices() {
			byVersion, err := m.store.Quality(ctx, c.Name, slice, from, end)
			if err != nil {
				return nil, fmt.Errorf("quality of %s on %s from %s to %s: %w", c.Name, slice, from, end, err)
			}
			for i := range states {
				s := ofVersion(byVersion, states[i].Version)
				var exact *float64
				if len(slice) == 0 {
					n := eligible(population, states[i].Version)
					exact = &n
				}
				window, err := estimateWindow(w.name, from, end, s, exact)
				if err != nil {
					return nil, fmt.Errorf("check %s version %s on %s: %w", c.Name, states[i].Version, slice, err)
				}
				state := &states[i].Slices[j]
				state.Windows = append(state.Windows, window)
				if s.N > 0 {
					state.LastJudged = &s.LastMinute // the longest window comes last
				}
			}
		}
	}
	return states, nil
}

// emptyCheck is the state of a version before anything is known of it.
func (m *Monitor) emptyCheck(c checks.Check, version string) Check {
	s := Check{Name: c.Name, Version: version, Evaluator: c.Evaluator, Current: version == c.Version, Severity: c.Alert.Severity}
	if c.Alert.Target != 0 {
		s.Target = &c.Alert.Target
	}
	for _, slice := range m.file.DeclaredSlices() {
		s.Slices = append(s.Slices, Slice{Slice: slice})
	}
	return s
}

// eligible is the ledger's count of interactions that a check version applied to.
func eligible(population []sink.PopulationSums, version string) float64 {
	var n uint64
	for _, p := range population {
		if p.CheckVersion == version {
			n += p.Selected + p.SampledOut
		}
	}
	return float64(n)
}

// estimateWindow is the window of the sums s. exact is the ledger's population where
// it counts this slice; nil elsewhere, and the sum of weights stands for it.
func estimateWindow(name string, from, to time.Time, s sink.QualitySums, exact *float64) (Window, error) {
	missing := missingWeight(s)
	out := Window{
		Name: name, From: from, To: to, N: s.N,
		Missing: s.NUnscored + s.NShed + s.NError, NotApplicable: s.NNotApplicable,
		Population:   s.SW + missing,
		InputTokens:  s.InputTokens,
		OutputTokens: s.OutputTokens,
		CostNanoUSD:  s.CostNanoUSD,
		Options:      optionShares(s),
	}
	var err error
	if out.PassRate, err = rate(verdicts(s).PassRate); err != nil {
		return out, fmt.Errorf("pass rate of %s: %w", name, err)
	}
	if out.MeanScore, err = rate(scores(s).MeanScore); err != nil {
		return out, fmt.Errorf("mean score of %s: %w", name, err)
	}
	out.LowConfidence = out.PassRate.NEff < thinNEff
	if b, err := verdicts(s).MissingBounds(missing, level95); err != nil {
		return out, fmt.Errorf("bounds of %s: %w", name, err)
	} else if b != nil {
		out.MissingShare, out.Bounds = &b.Share, &Bounds{b.Lo, b.Hi, b.LimitLo, b.LimitHi}
	}
	if exact != nil {
		out.Population, out.PopulationExact = *exact, true
	}
	if out.Population > 0 {
		judged := min(1, float64(s.N)/out.Population)
		out.JudgedShare = &judged
	}
	if target := out.Population - notApplicableWeight(s); target > 0 {
		covered := min(1, s.SW/target)
		out.Coverage = &covered
	}
	return out, nil
}

func missingWeight(s sink.QualitySums) float64 { return s.SWUnscored + s.SWShed + s.SWError }

// notApplicableWeight is about how many of the population were found not applicable
// while they were judged, and so lie outside the target. The sums hold their number and
// not their weight; it is taken as that of the other rows.
func notApplicableWeight(s sink.QualitySums) float64 {
	if s.NNotApplicable == 0 {
		return 0
	}
	if n := s.N + s.NUnscored + s.NShed + s.NError; n > 0 {
		return float64(s.NNotApplicable) * (s.SW + missingWeight(s)) / float64(n)
	}
	if s.PiMin > 0 {
		return float64(s.NNotApplicable) / s.PiMin
	}
	return 0
}

// rate asks an estimator for both confidences.
func rate(estimator func(conf float64) (stats.Estimate, error)) (Rate, error) {
	e, err := estimator(level95)
	if err != nil {
		return Rate{}, err
	}
	wide, err := estimator(level999)
	if err != nil {
		return Rate{}, err
	}
	return Rate{Value: e.Mean, NEff: e.NEff, Lower: e.Lo, Upper: e.Hi, Lower999: wide.Lo, Upper999: wide.Hi}, nil
}

// optionShares is the weighted share of each chosen option, in the question's order.
func optionShares(s sink.QualitySums) []OptionShare {
	if s.SW == 0 || len(s.ChosenW) != len(s.OptionNames) {
		return nil
	}
	shares := make([]OptionShare, 0, len(s.OptionNames))
	for i, name := range s.OptionNames {
		shares = append(shares, OptionShare{name, s.ChosenW[i] / s.SW})
	}
	return slices.Clip(shares)
}
