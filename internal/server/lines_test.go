package server

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"assay/evaluators/judge"
)

func (w *world) lines(body string) answer {
	w.t.Helper()
	return w.do("POST", "/api/v1/evaluate", body, "Content-Type", "application/json", "Accept", ndjson)
}

// The first item's answer is read while the second one's judge still thinks.
func TestItemsComeLineByLineAsTheyAreDone(t *testing.T) {
	slow := make(chan struct{})
	w := start(t, withJudge(judgeFunc(func(ctx context.Context, q judge.Question) (judge.Answer, error) {
		if output, _ := q.Field("output"); output == "slow" {
			select {
			case <-slow:
			case <-ctx.Done():
				return judge.Answer{}, ctx.Err()
			}
		}
		return sure(.9)(ctx, q)
	})))
	req, err := http.NewRequestWithContext(t.Context(), "POST", w.url+"/api/v1/evaluate",
		strings.NewReader(`{"evaluators":["factuality","noncommittal"],"items":[{"id":"s","output":"slow","expected":"x"},{"id":"f","output":"fast","expected":"x"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Accept", "application/json;q=0.5, application/x-ndjson")
	res, err := w.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if res.StatusCode != 200 || res.Header.Get("Content-Type") != ndjson {
		t.Fatalf("%d %s", res.StatusCode, res.Header.Get("Content-Type"))
	}
	in := bufio.NewScanner(res.Body)
	next := func(v any) {
		t.Helper()
		if !in.Scan() {
			t.Fatalf("no further line: %v", in.Err())
		}
		if err := json.Unmarshal(in.Bytes(), v); err != nil {
			t.Fatalf("%v in %s", err, in.Bytes())
		}
	}
	var first, second lineBody
	next(&first)
	if first.Index != 1 || first.ID != "f" || len(first.Results) != 2 || first.Results[0].Status != "ok" {
		t.Errorf("%+v", first)
	}
	close(slow)
	next(&second)
	if second.Index != 0 || second.ID != "s" {
		t.Errorf("%+v", second)
	}
	var last lastLine
	next(&last)
	if last.Judge != "main" || last.Items != 2 || len(last.Aggregates) != 2 || last.Aggregates[0].PassRate.N != 2 {
		t.Errorf("%+v", last)
	}
	if in.Scan() {
		t.Errorf("one more line: %s", in.Bytes())
	}
}

func TestLinesThatNothingComesOfHaveTheirOwnStatus(t *testing.T) {
	w := start(t, withJudge(judgeFunc(func(ctx context.Context, q judge.Question) (judge.Answer, error) {
		if output, _ := q.Field("output"); output == "fine" {
			return sure(.9)(ctx, q)
		}
		return judge.Answer{}, &judge.ShedError{Reason: judge.ShedBudget, RetryAfter: time.Minute}
	})))
	a := w.lines(`{"evaluators":["factuality"],"items":[{"output":"o","expected":"x"},{"output":"p","expected":"x"}]}`)
	if a.status != 429 || a.header.Get("Retry-After") != "60" || !strings.HasPrefix(a.header.Get("Content-Type"), "application/problem+json") {
		t.Errorf("%d %v %s", a.status, a.header, a.body)
	}
	// One that is fine, and all lines are there.
	a = w.lines(`{"evaluators":["factuality"],"items":[{"output":"o","expected":"x"},{"output":"fine","expected":"x"},{"output":"p","expected":"x"}]}`)
	if n := strings.Count(string(a.body), "\n"); a.status != 200 || n != 4 {
		t.Errorf("%d, %d lines: %s", a.status, n, a.body)
	}
	if a := w.lines(`{"evaluators":["nothing"]}`); a.status != 400 {
		t.Errorf("%d %s", a.status, a.body)
	}
}

func TestASingleItemAndADryRunComeAsLinesToo(t *testing.T) {
	w := start(t)
	a := w.lines(`{"evaluators":["factuality"],"output":"o","expected":"x"}`)
	lines := strings.Split(strings.TrimSpace(string(a.body)), "\n")
	if a.status != 200 || len(lines) != 2 || !strings.HasPrefix(lines[0], `{"index":0,"results":[`) || !strings.Contains(lines[1], `"items":1`) {
		t.Errorf("%d %s", a.status, a.body)
	}
	a = w.lines(`{"dry_run":true,"evaluators":["factuality"],"output":"o","expected":"x"}`)
	if a.status != 200 || !strings.HasPrefix(string(a.body), `{"index":0,"dry_run":[`) || strings.Contains(string(a.body), "aggregates") {
		t.Errorf("%d %s", a.status, a.body)
	}
}

func TestAClientThatStopsReadingLinesStopsTheJudge(t *testing.T) {
	asked, stopped := make(chan struct{}, 64), make(chan struct{}, 64)
	w := start(t, withJudge(judgeFunc(func(ctx context.Context, q judge.Question) (judge.Answer, error) {
		if output, _ := q.Field("output"); output == "fast" {
			return sure(.9)(ctx, q)
		}
		asked <- struct{}{}
		<-ctx.Done()
		stopped <- struct{}{}
		return judge.Answer{}, ctx.Err()
	})))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, "POST", w.url+"/api/v1/evaluate",
		strings.NewReader(`{"evaluators":["factuality"],"items":[{"output":"fast","expected":"x"},{"output":"slow","expected":"x"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Accept", ndjson)
	res, err := w.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if line, err := bufio.NewReader(res.Body).ReadString('\n'); err != nil || !strings.Contains(line, `"index":0`) {
		t.Fatalf("%q %v", line, err)
	}
	<-asked
	cancel()
	<-stopped
}

// Lines end with a problem when the process stops in the middle: no aggregates of half.
func TestLinesCutByAStopEndWithAProblem(t *testing.T) {
	asked := make(chan struct{})
	w := start(t, func(c *Config, _ *Deps) { c.Grace = 50 * time.Millisecond },
		withJudge(judgeFunc(func(ctx context.Context, q judge.Question) (judge.Answer, error) {
			if output, _ := q.Field("output"); output == "fast" {
				return sure(.9)(ctx, q)
			}
			close(asked)
			<-ctx.Done()
			return judge.Answer{}, ctx.Err()
		})))
	req, err := http.NewRequestWithContext(t.Context(), "POST", w.url+"/api/v1/evaluate",
		strings.NewReader(`{"evaluators":["factuality"],"items":[{"output":"fast","expected":"x"},{"output":"slow","expected":"x"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Accept", ndjson)
	res, err := w.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	in := bufio.NewScanner(res.Body)
	if !in.Scan() || !strings.Contains(in.Text(), `"index":0`) {
		t.Fatalf("%q %v", in.Text(), in.Err())
	}
	<-asked
	ended := make(chan error, 1)
	go func() { ended <- w.stop() }()
	var last problemLine
	if !in.Scan() || json.Unmarshal(in.Bytes(), &last) != nil || last.Problem == nil || last.Problem.Status != 503 {
		t.Errorf("%q %v", in.Text(), in.Err())
	}
	if err := <-ended; err != nil {
		t.Errorf("the server ended with %v", err)
	}
}

func TestOnlyWhoAsksForLinesGetsThem(t *testing.T) {
	f := func(accept string, want bool) {
		t.Helper()
		if got := wantsLines(accept); got != want {
			t.Errorf("%q: %v", accept, got)
		}
	}
	f("", false)
	f("*/*", false)
	f("application/json", false)
	f("application/x-ndjson", true)
	f("application/x-ndjson;q=0", false)
	f("text/html, Application/X-NDJSON; q=0.8", true)
	f("application/x-ndjson;q=", false)
	f(";;,", false)
}
