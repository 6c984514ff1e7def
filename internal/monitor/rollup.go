package monitor

import (
	"context"
	"fmt"
	"time"

	"assay/sink"
)

// wholeStatement is how many minutes a rollup surely takes as one statement.
const wholeStatement = 1440

// rollUp recomputes every minute that got rows since the cursor, whole and from
// deduplicated rows, and returns how many (check, minute) pairs those were. Minutes of
// checks that are no longer in the file count too: their series stay right.
//
// The cursor of a new process is the newest computed_at of the ledger's empty check,
// which is rolled up last: a crash in the middle leaves it behind what was done, and
// the next process does that again.
func (m *Monitor) rollUp(ctx context.Context, started time.Time) (int, error) {
	if !m.cursorKnown {
		at, err := m.store.LastRollup(ctx)
		if err != nil {
			return 0, fmt.Errorf("last rollup: %w", err)
		}
		m.cursor, m.cursorKnown = at, true
	}
	since := m.cursor.Add(-m.cfg.Lookback)
	if since.Before(time.Unix(0, 0)) {
		since = time.Unix(0, 0)
	}
	quality, err := m.store.DirtyQuality(ctx, since)
	if err != nil {
		return 0, fmt.Errorf("dirty minutes of evaluations since %s: %w", since, err)
	}
	population, err := m.store.DirtyPopulation(ctx, since)
	if err != nil {
		return 0, fmt.Errorf("dirty minutes of the ledger since %s: %w", since, err)
	}
	n := 0
	for _, d := range quality {
		if err := m.store.RollupQuality(ctx, d.Check, d.Minutes, started); err != nil {
			return n, rollupError("quality_1m", d, err)
		}
		n += len(d.Minutes)
	}
	var interactions sink.DirtyMinutes
	for _, d := range population {
		n += len(d.Minutes)
		if d.Check == "" {
			interactions = d
			continue
		}
		if err := m.store.RollupPopulation(ctx, d.Check, d.Minutes, started); err != nil {
			return n, rollupError("population_1m", d, err)
		}
	}
	if err := m.rollUpInteractions(ctx, interactions, started); err != nil {
		return n, rollupError("population_1m", interactions, err)
	}
	m.cursor = started
	return n, nil
}

// rollUpInteractions ends a round. Where the minutes are too many for one statement,
// all but the last are stamped just after the old mark, so that no crash between two
// statements can leave a new mark over minutes that were not done.
func (m *Monitor) rollUpInteractions(ctx context.Context, d sink.DirtyMinutes, started time.Time) error {
	minutes := d.Minutes
	if n := len(minutes); n > wholeStatement {
		if err := m.store.RollupPopulation(ctx, d.Check, minutes[:n-1], m.mark()); err != nil {
			return err
		}
		minutes = minutes[n-1:]
	}
	if len(minutes) == 0 {
		return nil
	}
	return m.store.RollupPopulation(ctx, d.Check, minutes, started)
}

// mark is the moment just after the cursor: newer than every row of finished rounds.
func (m *Monitor) mark() time.Time {
	if m.cursor.Before(time.Unix(0, 0)) {
		return time.UnixMilli(1)
	}
	return m.cursor.Add(time.Millisecond)
}

func rollupError(table string, d sink.DirtyMinutes, err error) error {
	return fmt.Errorf("%s: check %q, %d minutes: %w", table, d.Check, len(d.Minutes), err)
}
