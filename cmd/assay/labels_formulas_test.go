package main

import (
	"cmp"
	"math"
	"slices"
	"testing"
	"time"

	"assay/internal/testkit"
)

// judgedRow is what the judge said of one answer, as its row holds it.
type judgedRow struct {
	at     time.Time
	app    string
	pi     float64
	passed bool
	agrees float64 // the probability of the option that passes
}

// judgedRows reads the answered judgements straight from their table, and which answers
// have a row at all.
func judgedRows(t *testing.T, engine *testkit.Engine) (judged map[string]judgedRow, withRow map[string]bool) {
	t.Helper()
	rows, err := engine.Conn(t).Query(t.Context(), `
		SELECT interaction_id, status, ts, slice['app'], pi, passed, option_names, option_probs
		FROM evaluations FINAL WHERE check = 'facts'`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	judged, withRow = make(map[string]judgedRow), make(map[string]bool)
	for rows.Next() {
		var id, status string
		var r judgedRow
		var passed *uint8
		var names []string
		var probs []float32
		if err := rows.Scan(&id, &status, &r.at, &r.app, &r.pi, &passed, &names, &probs); err != nil {
			t.Fatal(err)
		}
		withRow[id] = true
		if status == "ok" {
			r.passed, r.agrees = *passed == 1, float64(probs[slices.Index(names, "agree")])
			judged[id] = r
		}
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return judged, withRow
}

// An agreement is what should be exported of one slice, window and origin.
type agreement struct {
	labels                         int
	agreement, kappa, brier, error float64
}

// agreementOf computes it by the formulas alone, from rows and verdicts.
func agreementOf(judged map[string]judgedRow, verdicts []verdict, app, origin string, from, to time.Time) agreement {
	type item struct{ p, y, w, judge, people float64 }
	type votes struct{ n, passed, pi2 float64 }
	said := map[string]*votes{}
	for _, v := range verdicts {
		if v.origin != origin {
			continue
		}
		if said[v.id] == nil {
			said[v.id] = &votes{pi2: v.pi2}
		}
		said[v.id].n++
		if v.passed {
			said[v.id].passed++
		}
	}
	var items []item
	for id, s := range said {
		r, ok := judged[id]
		if !ok || r.at.Before(from) || !r.at.Before(to) || app != "" && r.app != app {
			continue
		}
		one := item{p: r.agrees, y: s.passed / s.n, w: 1 / (r.pi * s.pi2)}
		if r.passed {
			one.judge = 1
		}
		if one.y >= .5 {
			one.people = 1
		}
		items = append(items, one)
	}
	slices.SortFunc(items, func(a, b item) int {
		return cmp.Or(cmp.Compare(a.p, b.p), cmp.Compare(a.y, b.y), cmp.Compare(a.w, b.w))
	})
	out := agreement{labels: len(items)}
	n := len(items)
	if n < 10 {
		return out
	}
	var all, judge, people float64
	for _, i := range items {
		all += i.w
		judge += i.w * i.judge
		people += i.w * i.people
		if i.judge == i.people {
			out.agreement += i.w
		}
		out.brier += i.w * (i.p - i.y) * (i.p - i.y)
	}
	out.agreement, out.brier, judge, people = out.agreement/all, out.brier/all, judge/all, people/all
	chance := judge*people + (1-judge)*(1-people)
	out.kappa = (out.agreement - chance) / (1 - chance)

	// ten runs of equal size, the first n mod 10 one longer; a row is in the first bin
	// whose edge it does not pass
	var edges []float64
	for run, end := 0, 0; run < 9; run++ {
		end += n / 10
		if run < n%10 {
			end++
		}
		edges = append(edges, (items[end-1].p+items[end].p)/2)
	}
	bins := map[float64][]item{}
	for _, i := range items {
		edge := 1.
		for _, e := range edges {
			if i.p <= e {
				edge = e
				break
			}
		}
		bins[edge] = append(bins[edge], i)
	}
	squared := 0.
	for _, bin := range bins {
		var w, w2, p, y float64
		for _, i := range bin {
			w += i.w
			w2 += i.w * i.w
			p += i.w * i.p
			y += i.w * i.y
		}
		p, y = p/w, y/w
		if kish := w * w / w2; kish >= 2 {
			squared += w / all * ((p-y)*(p-y) - y*(1-y)/(kish-1))
		}
	}
	out.error = math.Sqrt(max(0, squared))
	return out
}
