package monitor

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"assay/internal/checks"
	"assay/internal/stats"
	"assay/sink"
)

// integritySpan is how much of the closed log is checked.
const integritySpan = 24 * time.Hour

// ledgerDelay is how much later than its rows a ledger may count them, at least: the
// interaction's other judgements have their deadline and the block waits for a commit.
const ledgerDelay = 5 * time.Minute

// defaultJoinWait is the decoder's.
const defaultJoinWait = 10 * time.Minute

// uncountedFor is how long a row may be in the tables before the ledger counts it: half of
// a call keeps the ledger from what came after it until its wait is over.
func (m *Monitor) uncountedFor() time.Duration {
	wait := time.Duration(0)
	for _, s := range m.file.Sources {
		wait = max(wait, cmp.Or(s.JoinWait, defaultJoinWait))
	}
	return max(m.cfg.Lookback, ledgerDelay) + wait
}

// integrity compares the ledger with itself and with the rows, over the closed minutes
// of the last 24 hours: both identities of conservation and the sampling check. A
// check's rows are read raw, so this is done when the closed bound moved and not every
// round.
//
// Rows are durable before the ledger that counts them, also in closed minutes when
// events come late. So the ledger never counts a row that is not there yet, but a row
// may be there uncounted: it is a surplus only once it has lain for the ledger's delay.
func (m *Monitor) integrity(ctx context.Context, c checks.Check, v view) (*Integrity, error) {
	closed, settled := v.closed, v.server.Add(-m.uncountedFor())
	from := closed.Add(-integritySpan)
	if begun := m.begun[c.Name]; begun.After(from) {
		from = begun
	}
	r, err := m.compare(ctx, c.Name, from, closed, settled)
	if err != nil || r.Interactions == r.Decided {
		return r, err
	}
	// Interactions of before the check was in the file have no decision of it. Where
	// its decisions begin, workers took the new file up one after another.
	first, err := m.firstDecision(ctx, c.Name, from, closed)
	if err != nil || !first.After(from) {
		return r, err
	}
	begun := first.Add(2 * m.cfg.Grace).Truncate(time.Minute)
	m.begun[c.Name] = begun
	if !begun.Before(closed) {
		return nil, nil
	}
	return m.compare(ctx, c.Name, begun, closed, settled)
}

// compare counts both sides of each identity between from and to. Rows inserted since
// settled need not be in the ledger yet.
func (m *Monitor) compare(ctx context.Context, check string, from, to, settled time.Time) (*Integrity, error) {
	where := func(err error) error {
		return fmt.Errorf("integrity of check %s from %s to %s: %w", check, from, to, err)
	}
	interactions, err := m.store.PopulationSums(ctx, "", from, to)
	if err != nil {
		return nil, where(err)
	}
	decisions, err := m.store.PopulationSums(ctx, check, from, to)
	if err != nil {
		return nil, where(err)
	}
	rows, err := m.store.SelectedWeights(ctx, check, from, to, settled)
	if err != nil {
		return nil, where(err)
	}
	r := Integrity{From: from, To: to, Rows: rows.N}
	for _, p := range interactions {
		r.Interactions += p.Interactions
	}
	var population uint64
	for _, p := range decisions {
		r.Decided += decided(p)
		r.Selected += p.Selected
		population += p.Selected + p.SampledOut
	}
	r.Gap = apart(r.Interactions, r.Decided) + rows.Missing + rows.Surplus
	if population > 0 || rows.N > 0 {
		z, err := stats.SamplingZ(rows.SW, rows.VarSum, float64(population))
		if err != nil {
			return nil, where(err)
		}
		r.SamplingZ = &z
	}
	return &r, nil
}

func decided(p sink.PopulationSums) uint64 {
	return p.Filtered + p.NotApplicable + p.SampledOut + p.Selected
}

func apart(a, b uint64) uint64 { return max(a, b) - min(a, b) }

// firstDecision is the first minute in [from, to) that holds a decision of the check;
// to when none does. The ledger's readers sum, so it is searched by halves.
func (m *Monitor) firstDecision(ctx context.Context, check string, from, to time.Time) (time.Time, error) {
	lo, hi := 0, int(to.Sub(from)/time.Minute) // decisions lie in no prefix of lo minutes, in that of hi or nowhere
	for lo < hi {
		mid := (lo + hi) / 2
		end := from.Add(time.Duration(mid+1) * time.Minute)
		sums, err := m.store.PopulationSums(ctx, check, from, end)
		if err != nil {
			return time.Time{}, fmt.Errorf("first decision of check %s from %s to %s: %w", check, from, end, err)
		}
		var n uint64
		for _, p := range sums {
			n += decided(p)
		}
		if n > 0 {
			hi = mid
		} else {
			lo = mid + 1
		}
	}
	return from.Add(time.Duration(lo) * time.Minute), nil
}
