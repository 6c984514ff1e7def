package sink

import (
	"context"
	"time"
)

// Spent is what a judge was asked and paid.
type Spent struct {
	USD    float64
	Calls  int64
	Tokens int64
}

// Spent returns what each judge of the checks file has used in rows that arrived since
// then. A judgement that was made twice was paid twice, so rows are not deduplicated;
// what was paid and never stored (a crash) is missing.
func (db *DB) Spent(ctx context.Context, since time.Time) (map[string]Spent, error) {
	type row struct {
		judge               string
		nanos, calls, token uint64
	}
	found, err := read(ctx, db, query{"spent", scan, `
		SELECT judge, sum(cost_nano_usd), sum(attempts), sum(input_tokens) + sum(output_tokens)
		FROM {{db}}.evaluations WHERE inserted_at >= {since:DateTime('UTC')} GROUP BY judge`},
		func(scan func(...any) error) (r row, err error) {
			return r, scan(&r.judge, &r.nanos, &r.calls, &r.token)
		}, atSecond("since", since))
	out := make(map[string]Spent, len(found))
	for _, r := range found {
		out[r.judge] = Spent{USD: float64(r.nanos) / 1e9, Calls: int64(r.calls), Tokens: int64(r.token)}
	}
	return out, err
}
