package server

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"assay/internal/interaction"
	"assay/internal/monitor"
)

// What a chart shows unless told otherwise.
const (
	chartSpan = 24 * time.Hour
	chartStep = 30 * time.Minute
)

// The states of what the monitor says.
const (
	stateOK      = "ok"
	stateLoading = "loading" // no round has ended yet
	stateStale   = "stale"   // the last one ended too long ago
	stateAbsent  = "absent"  // this process has no monitor
)

type qualityOutput struct {
	Body qualityBody
}

type qualityBody struct {
	State        string            `json:"state" enum:"ok,loading,stale,absent" doc:"What to think of the snapshot: loading until the first round has ended, stale when the last one ended too long ago, absent where the process has no monitor"`
	AgeSeconds   *float64          `json:"age_seconds" doc:"Since the snapshot was made"`
	StaleSeconds float64           `json:"stale_seconds" doc:"Age at which it is called stale"`
	Mode         string            `json:"mode" doc:"What this process runs on"`
	Version      string            `json:"version"`
	Snapshot     *monitor.Snapshot `json:"snapshot,omitempty"`
}

type seriesInput struct {
	Check   string `query:"check" required:"true" doc:"A check of the checks file"`
	Version string `query:"version" doc:"A check version; default: the current one"`
	Slice   string `query:"slice" doc:"name=value, several separated by commas, of the file's dimensions; default: all"`
	From    string `query:"from" format:"date-time" doc:"RFC 3339; default: 24 hours before to"`
	To      string `query:"to" format:"date-time" doc:"RFC 3339, exclusive; default: where the snapshot's windows end"`
	Step    string `query:"step" doc:"Whole minutes as a duration; default: 30m" example:"30m"`
}

type seriesOutput struct {
	Body seriesBody
}

type seriesBody struct {
	Check       string            `json:"check"`
	Version     string            `json:"version"`
	Slice       interaction.Slice `json:"slice"`
	StepSeconds int               `json:"step_seconds"`
	Points      []monitor.Point   `json:"points" nullable:"false" doc:"One per step; a step without judged rows has a null rate"`
}

func (s *Server) addQuality(api huma.API) {
	op := get(api, "get-quality", "/api/v1/quality", "The newest snapshot",
		"Checks with their slices, windows and detectors, alarms, and how far the log was read. Numbers are estimates with intervals.")
	huma.Register(api, op, func(context.Context, *struct{}) (*qualityOutput, error) {
		return &qualityOutput{Body: s.quality(time.Now())}, nil
	})
	op = get(api, "get-quality-series", "/api/v1/quality/series", "Estimates over time",
		"A slice's estimates for every step of a span, by the same formulas as the snapshot's windows.")
	huma.Register(api, op, s.series)
	for _, p := range api.OpenAPI().Paths[op.Path].Get.Parameters {
		if p.Name == "check" {
			p.Schema.Enum = enum(checkNames(s.deps.Checks))
		}
	}
}

func (s *Server) snapshot() *monitor.Snapshot {
	if s.deps.Monitor == nil {
		return nil
	}
	return s.deps.Monitor.Snapshot()
}

func (s *Server) quality(now time.Time) qualityBody {
	b := qualityBody{
		State: stateOK, StaleSeconds: s.deps.Stale.Seconds(), Mode: s.deps.Mode, Version: s.deps.Version,
		Snapshot: s.snapshot(),
	}
	switch {
	case s.deps.Monitor == nil:
		b.State = stateAbsent
	case b.Snapshot == nil:
		b.State = stateLoading
	default:
		age := max(0, now.Sub(b.Snapshot.At).Seconds())
		b.AgeSeconds = &age
		if age > s.deps.Stale.Seconds() {
			b.State = stateStale
		}
	}
	return b
}

func (s *Server) series(ctx context.Context, in *seriesInput) (*seriesOutput, error) {
	var f faults
	q := s.seriesOf(&f, in, time.Now())
	if err := f.problem(); err != nil {
		return nil, err
	}
	points, err := monitor.Series(ctx, s.deps.Store, q.check, q.version, q.slice, q.from, q.to, q.step)
	if err != nil {
		return nil, s.unavailable(ctx, "series", err)
	}
	return &seriesOutput{Body: seriesBody{
		Check: q.check, Version: q.version, Slice: q.slice, StepSeconds: int(q.step.Seconds()), Points: points,
	}}, nil
}

type seriesQuery struct {
	check, version string
	slice          interaction.Slice
	from, to       time.Time
	step           time.Duration
}

// maxSteps is what monitor.Series takes at most.
const maxSteps = 2000

func (s *Server) seriesOf(f *faults, in *seriesInput, now time.Time) seriesQuery {
	q := seriesQuery{check: in.Check, version: in.Version, step: chartStep}
	var names []string
	for _, c := range s.deps.Checks.Checks {
		names = append(names, c.Name)
	}
	c, known := s.deps.Checks.Check(in.Check)
	switch {
	case in.Check == "":
		f.add("check", "missing; want one of %s", strings.Join(names, ", "))
	case !known:
		f.add("check", "unknown check %s; want one of %s%s", quoted(in.Check), strings.Join(names, ", "), didYouMean(in.Check, names))
	case q.version == "":
		q.version = c.Version
	}
	q.slice = s.sliceOf(f, in.Slice)
	if in.Step != "" {
		step, err := time.ParseDuration(in.Step)
		if err != nil || step < time.Minute || step%time.Minute != 0 {
			f.add("step", "%s: want whole minutes, such as 30m or 1h", quoted(in.Step))
		} else {
			q.step = step
		}
	}
	q.to = s.windowEnd(now)
	f.instant("to", in.To, &q.to)
	q.from = q.to.Add(-chartSpan)
	f.instant("from", in.From, &q.from)
	switch {
	case !q.from.Before(q.to):
		f.add("from", "%s is not before to (%s)", q.from.Format(time.RFC3339), q.to.Format(time.RFC3339))
	case q.to.Sub(q.from.Truncate(q.step))/q.step >= maxSteps:
		f.add("step", "%v gives over %d steps from %s to %s; want a longer step", q.step, maxSteps, q.from.Format(time.RFC3339), q.to.Format(time.RFC3339))
	}
	return q
}

// windowEnd is where a chart ends: where the snapshot's windows do, so that both show
// the same rows.
func (s *Server) windowEnd(now time.Time) time.Time {
	end := now
	if snap := s.snapshot(); snap != nil && !snap.Now.IsZero() {
		end = snap.Now
	}
	if whole := end.UTC().Truncate(time.Minute); whole.Before(end) {
		return whole.Add(time.Minute)
	}
	return end.UTC()
}

func (f *faults) instant(name, text string, to *time.Time) {
	if text == "" {
		return
	}
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		f.add(name, "%s: want a time as in 2026-08-01T12:00:00Z", quoted(text))
		return
	}
	*to = t.UTC()
}

// sliceOf reads a slice as it is written. Declared slices come first: their values may
// hold what separates the parts.
func (s *Server) sliceOf(f *faults, text string) interaction.Slice {
	for _, declared := range s.deps.Checks.DeclaredSlices() {
		if text == declared.String() {
			return declared
		}
	}
	slice := interaction.Slice{}
	if text == "" {
		return slice
	}
	for part := range strings.SplitSeq(text, ",") {
		name, value, ok := strings.Cut(part, "=")
		known := s.deps.Checks.Dimensions
		switch {
		case !ok:
			f.add("slice", "%s: want name=value", quoted(part))
		case !slices.Contains(known, name):
			f.add("slice", "unknown dimension %s; want some of %s%s", quoted(name), strings.Join(known, ", "), didYouMean(name, known))
		default:
			if _, twice := slice[name]; twice {
				f.add("slice", "dimension %s twice", name)
			}
			slice[name] = value
		}
	}
	return slice
}
