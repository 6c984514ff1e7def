package main

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"assay/evaluators"
	"assay/internal/checks"
)

func (d *doctor) judges(ctx context.Context) {
	if d.file == nil {
		return
	}
	maker := newStacker(d.env, d.app.environ, prometheus.NewRegistry(), slog.New(slog.DiscardHandler))
	for _, c := range d.file.Judges {
		what := "judge " + c.Name
		st, err := maker.stack(c)
		if err != nil {
			d.fail(what, err, "correct the judge in "+d.file.Path)
			continue
		}
		if st.probe == nil {
			d.ok(what, c.Kind+": nothing to ask")
			continue
		}
		probing, cancel := context.WithTimeout(ctx, doctorWait)
		start := time.Now()
		err = st.probe(probing)
		took := time.Since(start)
		cancel()
		if err != nil {
			d.fail(what, err, fmt.Sprintf("check base_url, model, key and that the server can do method: %s", c.Method))
			continue
		}
		d.probed[c.Name] = took
		d.ok(what, fmt.Sprintf("%s at %s answers a question of known answer by %s in %s; %s", c.Model, c.BaseURL, c.Method, took.Round(time.Millisecond), bill(c)))
	}
}

// bill says what a judge may cost.
func bill(c checks.Judge) string {
	var parts []string
	if c.Price != nil {
		parts = append(parts, fmt.Sprintf("%g USD in and %g out a million tokens", c.Price.InputPerMillion, c.Price.OutputPerMillion))
	}
	if c.Budget.USDPerDay > 0 {
		parts = append(parts, fmt.Sprintf("at most %g USD a day", c.Budget.USDPerDay))
	}
	if c.Budget.CallsPerDay > 0 {
		parts = append(parts, fmt.Sprintf("at most %s calls a day", grouped(c.Budget.CallsPerDay)))
	}
	if c.Budget.TokensPerDay > 0 {
		parts = append(parts, fmt.Sprintf("at most %s tokens a day", grouped(c.Budget.TokensPerDay)))
	}
	return strings.Join(parts, ", ")
}

// load compares what comes with what the judges and the window can hold, by Little's
// law: so many judgements are under way as come in the time that one takes. What comes
// is the last hour's mean times each check's rate: filters can only make it less. A record
// is open as long as the slowest of the checks that selected it takes, and checks select
// apart from each other.
func (d *doctor) load() {
	if d.file == nil {
		return
	}
	var judged []checks.Check // the slowest first
	for _, c := range d.file.Checks {
		if c.Judge != "" {
			judged = append(judged, c)
		}
	}
	slices.SortStableFunc(judged, func(a, b checks.Check) int { return cmp.Compare(d.took(b.Judge), d.took(a.Judge)) })
	judgements, calls := make(map[string]float64), make(map[string]float64) // per second, by judge
	for _, l := range d.loads {
		if l.perSecond == 0 {
			continue
		}
		open, unselected := 0.0, 1.0
		for _, c := range judged {
			judgements[c.Judge] += l.perSecond * c.Sample.Rate
			calls[c.Judge] += l.perSecond * c.Sample.Rate * d.callsEach(c)
			open += l.perSecond * unselected * c.Sample.Rate * d.took(c.Judge).Seconds()
			unselected *= 1 - c.Sample.Rate
		}
		window := min(d.env.Consumer.Window*l.partitions, d.env.Consumer.Total)
		says := fmt.Sprintf("%.1f records/s, at most %.1f/s judged: %.1f records unresolved at a time, the window holds %s", l.perSecond, l.perSecond*(1-unselected), open, grouped(int64(window)))
		if open > float64(window) {
			d.warn("load of "+l.topic, says, "raise ASSAY_CONSUMER_WINDOW and ASSAY_CONSUMER_TOTAL, or lower sample.rate: the worker falls behind")
			continue
		}
		d.ok("load of "+l.topic, says)
	}
	for _, j := range d.file.Judges {
		perSecond := calls[j.Name]
		if perSecond == 0 || j.MaxInFlight == 0 {
			continue
		}
		what, day := "load of judge "+j.Name, 86400*perSecond
		running := judgements[j.Name] * d.took(j.Name).Seconds()
		says := fmt.Sprintf("at most %.1f judgements/s of %s each: %.1f under way of %d, %s requests a day", judgements[j.Name], d.took(j.Name).Round(time.Millisecond), running, j.MaxInFlight, grouped(int64(day)))
		switch {
		case running > float64(j.MaxInFlight):
			d.warn(what, says, "raise max_in_flight or requests_per_minute, or lower sample.rate: judging falls behind and the lag grows")
		case j.RequestsPerMinute > 0 && 60*perSecond > float64(j.RequestsPerMinute):
			d.warn(what, fmt.Sprintf("%s; requests_per_minute is %d", says, j.RequestsPerMinute), "raise requests_per_minute, or lower sample.rate")
		case j.Budget.CallsPerDay > 0 && day > float64(j.Budget.CallsPerDay):
			d.warn(what, fmt.Sprintf("%s; calls_per_day is %s", says, grouped(j.Budget.CallsPerDay)), "raise the budget, or lower sample.rate: the rest of each day is shed")
		default:
			d.ok(what, says)
		}
	}
}

// callsEach is how often a check asks its judge about one interaction, at most: votes, both
// orders, a question a claim.
func (d *doctor) callsEach(c checks.Check) float64 {
	ev, err := evaluators.New(c.Evaluator, c.Settings())
	if err != nil {
		return 1 // the checks file was loaded, so it can be made
	}
	j, _ := d.file.Judge(c.Judge)
	_, most := itemCalls(ev, j)
	return most
}

// took is how long a judge takes: by what is stored, else as it answered the doctor,
// else as long as it may.
func (d *doctor) took(name string) time.Duration {
	for _, known := range []map[string]time.Duration{d.stored, d.probed} {
		if t, ok := known[name]; ok {
			return t
		}
	}
	if i := slices.IndexFunc(d.file.Judges, func(j checks.Judge) bool { return j.Name == name && j.MaxInFlight == 0 }); i >= 0 {
		return 0 // it computes here
	}
	return d.env.Judge.Timeout
}
