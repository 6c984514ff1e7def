package server

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"assay/evaluators/judge"
)

func TestAJudgementThatPanicsIsAnErrorAndTheOthersGoOn(t *testing.T) {
	w := start(t, withJudge(judgeFunc(func(ctx context.Context, q judge.Question) (judge.Answer, error) {
		if output, _ := q.Field("output"); output == "boom" {
			panic("a bug")
		}
		return sure(.9)(ctx, q)
	})))
	a := w.evaluate(`{"evaluators":["factuality"],"items":[{"output":"boom","expected":"x"},{"output":"o","expected":"x"}]}`)
	var got evaluateBody
	a.into(t, &got)
	if a.status != 200 || got.Items[0].Results[0].Status != "error" || *got.Items[0].Results[0].Reason != "panic" || got.Items[1].Results[0].Status != "ok" {
		t.Errorf("%d %s", a.status, a.body)
	}
	if !strings.Contains(w.logs.String(), "an evaluator panicked") {
		t.Error("nothing is logged")
	}
}

func TestAHandlerThatPanicsIsA500WithItsTraceInTheLog(t *testing.T) {
	w := start(t)
	f := func(h http.HandlerFunc) (res *httptest.ResponseRecorder, panicked any) {
		res = httptest.NewRecorder()
		defer func() { panicked = recover() }()
		w.server.recovering(h).ServeHTTP(&statusWriter{ResponseWriter: res, status: 200}, httptest.NewRequest("GET", "/x", nil))
		return res, nil
	}
	res, panicked := f(func(http.ResponseWriter, *http.Request) { panic("a bug") })
	if panicked != nil || res.Code != 500 || !strings.HasPrefix(res.Header().Get("Content-Type"), "application/problem+json") {
		t.Errorf("%v, %d %s", panicked, res.Code, res.Body)
	}
	if logs := w.logs.String(); !strings.Contains(logs, "a handler panicked") || !strings.Contains(logs, "panic_test.go") {
		t.Errorf("%s", logs)
	}
	// Of half an answer only the end of the connection tells.
	if _, panicked := f(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("half")); panic("a bug") }); panicked != http.ErrAbortHandler {
		t.Errorf("%v", panicked)
	}
}
