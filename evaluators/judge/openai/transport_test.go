package openai

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"assay/evaluators/judge"
)

func serverOf(t *testing.T, h http.HandlerFunc) string {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(func() { s.CloseClientConnections(); s.Close() })
	return s.URL + "/v1"
}

func TestEveryStatusHasItsMeaning(t *testing.T) {
	f := func(status int, body, want string) {
		t.Helper()
		j := newJudge(t, serverOf(t, serve(status, "application/json", body)), nil)
		_, err := j.Ask(t.Context(), boolean("x"))
		if got := outcome(err); got != want {
			t.Errorf("%d %s: %s, want %s", status, body, got, want)
		}
	}

	f(429, `{"error":{"message":"slow down","code":"rate_limit_exceeded"}}`, "transient throttled")
	f(429, `{"error":{"message":"You exceeded your current quota","code":"insufficient_quota"}}`, "fatal")
	for _, status := range []int{408, 500, 502, 503, 504, 529} {
		f(status, `{"error":"later"}`, "transient unavailable")
	}
	for _, status := range []int{401, 402, 403} {
		f(status, `{"error":{"message":"no"}}`, "fatal")
	}
	f(404, `{"error":{"message":"The model does not exist","code":"model_not_found"}}`, "fatal")
	f(404, `{"detail":"Not Found"}`, "rejected")
	f(400, `{"error":{"message":"bad value"}}`, "rejected")
	f(422, `{"detail":[{"msg":"field required"}]}`, "rejected")
	f(413, ``, "too long")
	f(400, `{"error":{"message":"This model's maximum context length is 8192 tokens","code":"context_length_exceeded"}}`, "too long")
	f(400, `{"error":{"message":"the request exceeds the available context size"}}`, "too long")
	f(400, `{"error":{"message":"filtered","code":"content_filter"}}`, "unusable judge_refused")
	f(418, `not even JSON`, "rejected")
	// a gateway's way to say that the server behind it failed
	f(200, `{"error":{"message":"upstream is down","code":503}}`, "transient unavailable")
	f(200, `{"error":{"message":"slow down","code":429}}`, "transient throttled")
	f(200, `{"error":{"message":"who knows"}}`, "transient unavailable")
}

func TestA200ThatIsNoCompletionIsATransportFailure(t *testing.T) {
	f := func(contentType, body, want string) {
		t.Helper()
		j := newJudge(t, serverOf(t, serve(200, contentType, body)), func(c *Config) { c.MaxBody = 4096 })
		_, err := j.Ask(t.Context(), boolean("x"))
		if got := outcome(err); got != want {
			t.Errorf("%s %.30q: %s, want %s", contentType, body, got, want)
		}
		var transient *judge.TransientError
		if errors.As(err, &transient) && (transient.Usage.InputTokens == 0 || !transient.Usage.Estimated) {
			t.Errorf("%s %.30q: spent %+v, want the reserve: it may be billed", contentType, body, transient.Spent)
		}
	}
	whole := completionOf("A", position(listed("A", .9), listed("B", .1)))
	f("application/json", "", "transient garbage")
	f("application/json", whole[:len(whole)/2], "transient garbage")
	f("application/json", "A", "transient garbage")
	f("text/html", "<html>Answer: A</html>", "transient garbage")
	f("text/plain", whole, "transient garbage")
	f("application/json", `{"pad":"`+strings.Repeat("x", 5000)+`"}`, "transient garbage")
	f("application/json; charset=utf-8", whole, "ok")
	f("application/problem+json", whole, "ok")
}

// The server had begun to answer: what broke off on the way is billed all the same.
func TestABodyThatBreaksOffKeepsTheReserve(t *testing.T) {
	f := func(status int, reserved bool) {
		t.Helper()
		j := newJudge(t, serverOf(t, func(w http.ResponseWriter, r *http.Request) {
			io.Copy(io.Discard, r.Body)
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Content-Length", "1000")
			w.WriteHeader(status)
			io.WriteString(w, `{"choices":[`)
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		}), nil)
		q := boolean("x")
		_, err := j.Ask(t.Context(), q)
		var transient *judge.TransientError
		if !errors.As(err, &transient) || transient.Reason != judge.ReasonUnavailable || transient.Attempts != 1 {
			t.Fatalf("status %d: %v, want transient unavailable after one attempt", status, err)
		}
		want := judge.Usage{}
		if reserved {
			want = j.Estimate(q)
			want.Estimated = true
		}
		if transient.Usage != want {
			t.Errorf("status %d: spent %+v, want %+v", status, transient.Usage, want)
		}
	}
	f(200, true)
	f(500, false)
}

func TestRetryAfterIsReadInAllItsForms(t *testing.T) {
	f := func(header, value string, low, high time.Duration) {
		t.Helper()
		h := http.Header{}
		h.Set(header, value)
		if got := retryAfter(h); got < low || got > high {
			t.Errorf("%s: %s is %v, want %v to %v", header, value, got, low, high)
		}
	}
	f("Retry-After", "7", 7*time.Second, 7*time.Second)
	f("Retry-After", "0.5", 500*time.Millisecond, 500*time.Millisecond)
	f("Retry-After", time.Now().Add(time.Hour).UTC().Format(http.TimeFormat), 59*time.Minute, time.Hour)
	f("Retry-After", "yesterday", 0, 0)
	f("Retry-After", "-3", 0, 0)
	f("Retry-After-Ms", "1500", 1500*time.Millisecond, 1500*time.Millisecond)
}

func TestATryThatTakesTooLongIsATimeoutOfTheTry(t *testing.T) {
	release := make(chan struct{})
	url := serverOf(t, func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		select {
		case <-release:
		case <-r.Context().Done():
		}
	})
	defer close(release)
	j := newJudge(t, url, func(c *Config) { c.Timeout = 50 * time.Millisecond })
	_, err := j.Ask(t.Context(), boolean("x"))
	if got := outcome(err); got != "transient timeout" {
		t.Errorf("%s, want transient timeout", got)
	}
	if errors.Is(err, context.DeadlineExceeded) {
		t.Error("the try's limit passes for the caller's deadline: nobody would retry")
	}
}

func TestTheCallersContextComesBackAsItself(t *testing.T) {
	arrived := make(chan struct{}, 2)
	url := serverOf(t, func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		arrived <- struct{}{}
		<-r.Context().Done()
	})
	j := newJudge(t, url, nil)
	why := errors.New("drain")
	ctx, cancel := context.WithCancelCause(t.Context())
	go func() { <-arrived; cancel(why) }()
	_, err := j.Ask(ctx, boolean("x"))
	if !errors.Is(err, context.Canceled) || !errors.Is(err, why) || strings.HasPrefix(outcome(err), "transient") {
		t.Errorf("cancelled: %v", err)
	}
	late, stop := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer stop()
	if _, err := j.Ask(late, boolean("x")); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("deadline: %v", err)
	}
}

func TestARequestAsksAsItShould(t *testing.T) {
	var got map[string]any
	var header http.Header
	url := serverOf(t, func(w http.ResponseWriter, r *http.Request) {
		json.NewDecoder(r.Body).Decode(&got)
		header = r.Header.Clone()
		serve(200, "application/json", completionOf("A", position(listed("A", .9), listed("B", .1))))(w, r)
	})
	a, err := newJudge(t, url, nil).Ask(t.Context(), boolean("<b> & \u2028"))
	if err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]any{
		"model": "test-model", "logprobs": true, "top_logprobs": 20.0, "max_tokens": 4.0, "temperature": 1.0, "top_p": 1.0,
	} {
		if got[key] != want {
			t.Errorf("%s = %v, want %v", key, got[key], want)
		}
	}
	for _, key := range []string{"stop", "logit_bias", "presence_penalty", "response_format", "max_completion_tokens"} {
		if _, has := got[key]; has {
			t.Errorf("%s is set", key)
		}
	}
	if purpose := got["metadata"].(map[string]any)["purpose"]; purpose != "llm_judge" || header.Get("X-Assay-Purpose") != "llm_judge" {
		t.Errorf("marked as %v and %q: a logged judge call would be judged", purpose, header.Get("X-Assay-Purpose"))
	}
	if header.Get("Authorization") != "Bearer secret-key-1234" {
		t.Error("the key is not sent")
	}
	if a.Model != "m-1" || a.Attempts != 1 || a.Usage.InputTokens != 120 || a.Method != judge.Logprobs || a.Usage.Estimated {
		t.Errorf("answer %+v", a)
	}
}

func TestUsageThatNobodyStatedIsTheReserve(t *testing.T) {
	body := strings.Replace(completionOf("A", position(listed("A", .9), listed("B", .1))), `"usage"`, `"x"`, 1)
	j := newJudge(t, serverOf(t, serve(200, "application/json", body)), nil)
	a, err := j.Ask(t.Context(), boolean("x"))
	want := j.Estimate(boolean("x"))
	if err != nil || !a.Usage.Estimated || a.Usage.InputTokens != want.InputTokens || a.Detail["usage_estimated"] != true {
		t.Errorf("%+v, %v, want the reserve %+v, marked", a.Usage, err, want)
	}
}

// picky refuses what some servers refuse, and counts.
func picky(refuse func(body map[string]any) string, calls *int) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		*calls++
		var body map[string]any
		json.NewDecoder(r.Body).Decode(&body)
		if message := refuse(body); message != "" {
			data, _ := json.Marshal(map[string]any{"error": map[string]any{"message": message}})
			serve(400, "application/json", string(data))(w, r)
			return
		}
		serve(200, "application/json", completionOf("A", position(listed("A", .9), listed("B", .1))))(w, r)
	}
}

func TestTheFormOfARequestIsAdaptedOnce(t *testing.T) {
	f := func(name string, refuse func(map[string]any) string, first int) {
		t.Helper()
		calls := 0
		j := newJudge(t, serverOf(t, picky(refuse, &calls)), nil)
		if _, err := j.Ask(t.Context(), boolean("x")); err != nil || calls != first {
			t.Errorf("%s: %v after %d calls, want an answer after %d", name, err, calls, first)
		}
		if _, err := j.Ask(t.Context(), boolean("y")); err != nil || calls != first+1 {
			t.Errorf("%s: %v after %d calls, want what was learned to be kept", name, err, calls)
		}
	}
	f("completion tokens", func(b map[string]any) string {
		if _, has := b["max_tokens"]; has {
			return "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead."
		}
		return ""
	}, 2)
	f("metadata", func(b map[string]any) string {
		if _, has := b["metadata"]; has {
			return "The 'metadata' parameter is only allowed when 'store' is enabled."
		}
		return ""
	}, 2)
	f("a list of five", func(b map[string]any) string {
		if b["top_logprobs"].(float64) > 5 {
			return "Requested sample logprobs of 20, which is greater than max allowed: 5"
		}
		return ""
	}, 3)
}

func TestAServerThatCannotListEnoughIsRefused(t *testing.T) {
	calls := 0
	j := newJudge(t, serverOf(t, picky(func(b map[string]any) string {
		if b["top_logprobs"].(float64) > 5 {
			return "top_logprobs must be at most 5"
		}
		return ""
	}, &calls)), nil)
	_, err := j.Ask(t.Context(), five("x"))
	if got := outcome(err); got != "refused too_few_top_logprobs" {
		t.Errorf("five options on a list of five: %s", got)
	}
	never := 0
	j = newJudge(t, serverOf(t, picky(func(map[string]any) string { return "logprobs is not supported by this model" }, &never)), nil)
	if _, err := j.Ask(t.Context(), boolean("x")); outcome(err) != "fatal" {
		t.Errorf("no logprobs at all: %v, want fatal", err)
	}
}

func TestOurKeyIsInNoErrorAndNoRow(t *testing.T) {
	for _, h := range []http.HandlerFunc{
		serve(401, "application/json", `{"error":{"message":"wrong key secret-key-1234"}}`),
		serve(400, "application/json", `{"error":{"message":"bad secret-key-1234","code":"content_filter"}}`),
		serve(200, "application/json", `{"choices":[{"message":{"content":"key secret-key-1234"},"logprobs":{"content":[`+position(listed("key", 1))+`]}}]}`),
	} {
		_, err := newJudge(t, serverOf(t, h), nil).Ask(t.Context(), boolean("x"))
		var unusable *judge.UnusableError
		if err == nil || strings.Contains(err.Error(), "secret-key") || (errors.As(err, &unusable) && (strings.Contains(unusable.Raw, "secret-key") || unusable.Raw == "")) {
			t.Errorf("error %v (%+v)", err, unusable)
		}
	}
}
