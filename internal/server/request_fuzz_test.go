package server

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/prometheus/client_golang/prometheus"

	"assay/evaluators/judge"
)

// Whatever a body holds, it is understood or refused with 400 and its faults.
func FuzzAnEvaluateRequest(f *testing.F) {
	for _, seed := range []string{
		`{"evaluators":["factuality"],"output":"o","expected":["a","b"],"options":{"factuality":{"pass":["C"],"orders":2}}}`,
		`{"suite":"everything","items":[{"id":"1","output":"","context":"c"},{"latency_ms":1e400}],"dry_run":true}`,
		`{"evaluators":["valid_json","contains"],"options":{"valid_json":{"schema":{"type":7}},"contains":{"any":[""]}},"attributes":{"a":null}}`,
		`{"evaluators":[],"input":"\ud800","input":"x"} trailing`,
		`[]`, ``, `{"judge":{}}`,
	} {
		f.Add([]byte(seed))
	}
	reg := prometheus.NewRegistry()
	s, err := New(Config{Addr: "127.0.0.1:0", MaxBody: 1 << 20, ReadTimeout: time.Second, EvaluateTime: time.Minute, PerRequest: 1, InFlight: 1}, Deps{
		Log: slog.New(slog.DiscardHandler), Reg: reg, Gatherer: reg, Checks: parseChecks(f, checksFile),
		Judges: map[string]judge.Judge{"main": sure(.9)}, Store: &memory{}, Ready: func(context.Context) error { return nil }, Deadline: time.Second,
	})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		req, err := s.parse(body)
		var problem *huma.ErrorModel
		switch {
		case err == nil:
			if len(req.evaluators) == 0 || len(req.items) == 0 || len(req.items) > maxItems || !req.batch && len(req.items) != 1 {
				t.Errorf("%q is understood as %+v", body, req)
			}
		case !errors.As(err, &problem) || problem.Status != 400 || problem.Detail == "" || len(problem.Errors) == 0 || len(problem.Errors) > maxFaults:
			t.Errorf("%q: %v", body, err)
		}
	})
}
