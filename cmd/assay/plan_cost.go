package main

import (
	"cmp"
	"fmt"
	"slices"

	"assay/evaluators"
	"assay/internal/checks"
	"assay/internal/stats"
)

// planned is what a checks file will do in a day.
type planned struct {
	Checks []plannedCheck `json:"checks"`
	Judges []plannedJudge `json:"judges"`
	Notes  []string       `json:"notes"`
}

// plannedCheck is one check's day.
type plannedCheck struct {
	Check        string  `json:"check"`
	Judge        string  `json:"judge,omitempty"`
	Interactions float64 `json:"interactions_per_day"`
	Share        float64 `json:"share_let_through"`
	ShareFrom    string  `json:"share_from"` // stated, measured, sample, assumed
	Rate         float64 `json:"rate"`
	Judged       float64 `json:"judged_per_day"`

	CallsMin     float64 `json:"calls_each_min"`
	CallsMax     float64 `json:"calls_each_max"`
	CallsPerDay  float64 `json:"calls_per_day"` // at CallsMax where it is a range
	TokensFrom   string  `json:"tokens_from"`   // measured, sample, assumed
	TokensIn     float64 `json:"input_tokens_per_day"`
	TokensOut    float64 `json:"output_tokens_per_day"`
	TokensPerDay float64 `json:"tokens_per_day"`
	USDPerDay    float64 `json:"usd_per_day"`

	// HalfWidth is half of the 95% interval of a day's pass rate; nil with fewer than 5
	// judgements.
	HalfWidth  *float64 `json:"half_width_24h"`
	AtPassRate float64  `json:"at_pass_rate"`
}

// plannedJudge is a judge's day, over its checks.
type plannedJudge struct {
	Judge        string         `json:"judge"`
	CallsPerDay  float64        `json:"calls_per_day"`
	TokensPerDay float64        `json:"tokens_per_day"`
	USDPerDay    float64        `json:"usd_per_day"`
	Limits       []plannedLimit `json:"limits"`
	First        string         `json:"reached_first,omitempty"` // the limit that is nearest to its end, or over it
	Fits         float64        `json:"rate_factor_that_fits"`   // 1 where all fits
}

type plannedLimit struct {
	Limit   string   `json:"limit"`
	Allowed float64  `json:"allowed"`
	Used    float64  `json:"used"`  // share of it
	Hours   *float64 `json:"hours"` // after which it is used up at an even pace; nil where the day ends before
}

func (l plannedLimit) when() string {
	if l.Hours == nil {
		return ""
	}
	return fmt.Sprintf(", up after %.3g h", *l.Hours)
}

func (c plannedCheck) callsEach() string {
	if c.CallsMin == c.CallsMax {
		return count(c.CallsMin)
	}
	return count(c.CallsMin) + " to " + count(c.CallsMax)
}

// fewest judgements that carry an interval.
const fewest = 5

// usualPassRate is what the interval is worked out for where no target is stated.
const usualPassRate = 0.9

func makePlan(file *checks.File, traffic []checkTraffic) (planned, error) {
	p := planned{Checks: []plannedCheck{}, Judges: []plannedJudge{}, Notes: []string{}}
	for i, c := range file.Checks {
		row, err := planCheck(file, c, traffic[i])
		if err != nil {
			return p, fmt.Errorf("check %s: %w", c.Name, err)
		}
		p.Checks = append(p.Checks, row)
		if row.ShareFrom == "assumed" {
			what := "all interactions have its fields"
			if c.When != nil {
				what = "its filter lets all through, and they have its fields"
			}
			p.Notes = append(p.Notes, fmt.Sprintf("%s: assumed that %s; --share %s=0.3 states it, --sample FILE measures it", c.Name, what, c.Name))
		}
		if row.TokensPerDay > 0 && row.TokensFrom == "assumed" {
			p.Notes = append(p.Notes, fmt.Sprintf("%s: tokens are those of texts of usual length (%d characters in all); --sample FILE goes by yours", c.Name, usualTexts))
		}
	}
	for _, j := range file.Judges {
		if row := planJudge(j, p.Checks); row.CallsPerDay > 0 {
			p.Judges = append(p.Judges, row)
		}
	}
	return p, nil
}

func planCheck(file *checks.File, c checks.Check, t checkTraffic) (plannedCheck, error) {
	row := plannedCheck{
		Check: c.Name, Judge: c.Judge, Interactions: t.perDay, Share: t.share, ShareFrom: t.shareFrom, Rate: c.Sample.Rate,
		Judged: t.perDay * t.share * c.Sample.Rate, TokensFrom: t.tokensFrom, AtPassRate: usualPassRate,
	}
	ev, err := evaluators.New(c.Evaluator, c.Settings())
	if err != nil {
		return row, err
	}
	j, _ := file.Judge(c.Judge)
	row.CallsMin, row.CallsMax = itemCalls(ev, j)
	each := row.CallsMax
	if t.calls > 0 {
		each = t.calls
	}
	row.CallsPerDay = row.Judged * each
	row.TokensIn, row.TokensOut = row.Judged*t.tokensIn, row.Judged*t.tokensOut
	row.TokensPerDay = row.TokensIn + row.TokensOut
	row.USDPerDay = usd(j, row.TokensIn, row.TokensOut)
	if c.Alert.Target > 0 {
		row.AtPassRate = c.Alert.Target
	}
	if row.Judged >= fewest {
		lo, hi, err := stats.Wilson(row.AtPassRate*row.Judged, row.Judged, confidence)
		if err != nil {
			return row, err
		}
		half := (hi - lo) / 2
		row.HalfWidth = &half
	}
	return row, nil
}

// itemCalls is how often a judge is asked about one item, from the least to the most.
func itemCalls(ev evaluators.Evaluator, j checks.Judge) (least, most float64) {
	calls := ev.Calls().Voted(j.Votes())
	return float64(calls.Min), float64(calls.Max + calls.Embeddings)
}

func planJudge(j checks.Judge, all []plannedCheck) plannedJudge {
	row := plannedJudge{Judge: j.Name, Limits: []plannedLimit{}, Fits: 1}
	for _, c := range all {
		if c.Judge == j.Name {
			row.CallsPerDay += c.CallsPerDay
			row.TokensPerDay += c.TokensPerDay
			row.USDPerDay += c.USDPerDay
		}
	}
	limit := func(name string, allowed, used float64) {
		if allowed <= 0 {
			return
		}
		l := plannedLimit{Limit: name, Allowed: allowed, Used: used / allowed}
		if l.Used > 1 {
			hours := 24 / l.Used
			l.Hours = &hours
		}
		row.Limits = append(row.Limits, l)
	}
	limit("budget.usd_per_day", j.Budget.USDPerDay, row.USDPerDay)
	limit("budget.calls_per_day", float64(j.Budget.CallsPerDay), row.CallsPerDay)
	limit("budget.tokens_per_day", float64(j.Budget.TokensPerDay), row.TokensPerDay)
	if len(row.Limits) > 0 {
		first := slices.MaxFunc(row.Limits, func(a, b plannedLimit) int { return cmp.Compare(a.Used, b.Used) })
		row.First, row.Fits = first.Limit, min(1, 1/max(first.Used, 1e-12))
	}
	limit("requests_per_minute", float64(j.RequestsPerMinute), row.CallsPerDay/1440)
	if last := len(row.Limits) - 1; last >= 0 && row.Limits[last].Limit == "requests_per_minute" {
		row.Limits[last].Hours = nil // it is a pace and is never used up
	}
	return row
}
