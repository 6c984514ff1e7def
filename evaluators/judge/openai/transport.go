package openai

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"time"

	"assay/evaluators/judge"
)

// complete sends q and returns a response that is one, as far as the protocol goes.
// A server that refuses the form of the request is asked again at once in another:
// that costs nothing and happens once per process and quirk. What it then takes is the
// form from there on; a question that it takes in no form changes nothing for the others.
func (j *Judge) complete(ctx context.Context, q judge.Question, s sheet) (*completion, error) {
	f := *j.form.Load()
	for adapted := false; ; adapted = true {
		body, err := j.request(q, s, f)
		if err != nil {
			return nil, &judge.RejectedError{Err: err}
		}
		data, message, err := j.post(ctx, q, j.cfg.path(), body)
		var c *completion
		if err == nil {
			c, message, err = j.accepted(q, data)
		}
		var rejected *judge.RejectedError
		if !errors.As(err, &rejected) || j.cfg.messages() {
			if err == nil && adapted {
				j.settle(f)
			}
			return c, err
		}
		next, again, fatal := f.adapt(message)
		if fatal != nil {
			return nil, fatal
		}
		if !again {
			return nil, err
		}
		f = next
		if err := j.canAnswer(q, f); err != nil {
			return nil, err
		}
	}
}

// settle keeps a form that the server took.
func (j *Judge) settle(f form) {
	j.form.Store(&f)
	j.deps.Log.Info("judge asked for another form of request", "judge", j.cfg.Model,
		"completion_tokens", f.completionTokens, "metadata", !f.noMetadata, "top_logprobs", f.topLogprobs,
		"seed", !f.noSeed, "top_p", !f.noTopP, "temperature", !f.noTemperature)
}

// post makes one call and classifies how it ended: with JSON, as the server says, or
// with an error. message is the server's own.
func (j *Judge) post(ctx context.Context, q judge.Question, path string, body []byte) (data []byte, message string, err error) {
	limit := j.limit(q)
	try, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	start := time.Now()
	req, err := http.NewRequestWithContext(try, http.MethodPost, j.cfg.BaseURL+path, bytes.NewReader(body))
	if err != nil {
		return nil, "", &judge.RejectedError{Err: err}
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json")
	req.Header.Set("X-Assay-Purpose", mark)
	j.cfg.authorize(req.Header)

	res, err := j.deps.HTTP.Do(req)
	if err != nil {
		return nil, "", j.broken(ctx, try, limit, q, err)
	}
	defer res.Body.Close()
	data, err = io.ReadAll(io.LimitReader(res.Body, j.cfg.MaxBody+1))
	if err != nil {
		err = j.broken(ctx, try, limit, q, err)
		var transient *judge.TransientError
		if res.StatusCode == http.StatusOK && errors.As(err, &transient) {
			transient.Spent = j.reserved(q) // an answer was on its way, which is billed
		}
		return nil, "", err
	}
	if int64(len(data)) > j.cfg.MaxBody {
		return nil, "", j.garbage(q, fmt.Errorf("response over %d bytes", j.cfg.MaxBody))
	}
	if res.StatusCode != http.StatusOK {
		p := problemOf(data)
		return nil, p.message, j.refused(res.StatusCode, p, retryAfter(res.Header))
	}
	if q.Kind.HasOptions() {
		j.patience.answered(time.Since(start))
	}
	media, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type"))
	if media != "application/json" && !strings.HasSuffix(media, "+json") {
		return nil, "", j.garbage(q, fmt.Errorf("content type %q, want JSON", media))
	}
	return data, "", nil
}

// accepted looks into a 200, which is not yet an answer.
func (j *Judge) accepted(q judge.Question, data []byte) (*completion, string, error) {
	read := decode
	if j.cfg.messages() {
		read = decodeMessages
	}
	c, err := read(data)
	if err != nil {
		return nil, "", j.garbage(q, fmt.Errorf("%d bytes that are no response: %w", len(data), err))
	}
	if len(c.Choices) == 0 {
		if message, err := j.failed(c.Error, data); err != nil {
			return nil, message, err
		}
	}
	return c, "", nil
}

// failed is the failure of a server behind a gateway, which some of those report inside
// of a 200.
func (j *Judge) failed(raw json.RawMessage, data []byte) (message string, err error) {
	if len(raw) == 0 || string(raw) == "null" {
		return "", nil
	}
	p := problemOf(data)
	return p.message, j.refused(p.status, p, 0)
}

// broken is a call without a whole response. When the wait was ours to end, what was
// sent may be worked on and billed, so the reserve is kept.
func (j *Judge) broken(ctx, try context.Context, limit time.Duration, q judge.Question, err error) error {
	if ctx.Err() != nil {
		if cause := context.Cause(ctx); !errors.Is(cause, ctx.Err()) {
			return fmt.Errorf("%w: %w", ctx.Err(), cause)
		}
		return ctx.Err()
	}
	if try.Err() != nil {
		if q.Kind.HasOptions() {
			j.patience.gaveUp(limit)
		}
		return &judge.TransientError{
			Reason: judge.ReasonTimeout,
			Err:    fmt.Errorf("no answer within %s", limit),
			Spent:  j.reserved(q),
		}
	}
	// The text only: a dialer's own time limit wraps the error that callers
	// take for the end of their deadline.
	return &judge.TransientError{Reason: judge.ReasonUnavailable, Err: errors.New(j.masked(err.Error())), Spent: judge.Spent{Attempts: 1}}
}

func (j *Judge) garbage(q judge.Question, err error) error {
	return &judge.TransientError{Reason: judge.ReasonGarbage, Err: err, Spent: j.reserved(q)}
}

func (j *Judge) reserved(q judge.Question) judge.Spent {
	u := j.Estimate(q)
	u.Estimated = true
	return judge.Spent{Usage: u, Attempts: 1, Model: j.cfg.Model}
}

// A problem is a server's error object, in any of its shapes.
type problem struct {
	message string
	code    string // error.code, type and param in one, for matching
	status  int    // of an error inside a 200; 502 when it names none
}

func problemOf(data []byte) problem {
	var outer struct {
		Error   json.RawMessage `json:"error"`
		Message string          `json:"message"`
		Detail  any             `json:"detail"`
	}
	p := problem{status: http.StatusBadGateway}
	if json.Unmarshal(data, &outer) != nil {
		p.message = excerpt(string(data))
		return p
	}
	var inner struct {
		Message string `json:"message"`
		Code    any    `json:"code"`
		Type    string `json:"type"`
		Param   string `json:"param"`
	}
	var text string
	switch {
	case json.Unmarshal(outer.Error, &text) == nil:
		p.message = text
	case json.Unmarshal(outer.Error, &inner) == nil && len(outer.Error) > 0:
		p.message = inner.Message
		p.code = fmt.Sprint(inner.Code, " ", inner.Type)
		if inner.Param != "" && !strings.Contains(p.message, inner.Param) {
			p.message += " (" + inner.Param + ")"
		}
		if n, ok := inner.Code.(float64); ok && n >= 400 && n < 600 {
			p.status = int(n)
		}
	case outer.Message != "":
		p.message = outer.Message
	case outer.Detail != nil:
		p.message = fmt.Sprint(outer.Detail)
	}
	p.message = excerpt(p.message)
	return p
}

func (p problem) says(any ...string) bool {
	all := strings.ToLower(p.code + " " + p.message)
	for _, s := range any {
		if strings.Contains(all, s) {
			return true
		}
	}
	return false
}

// refused says what a status means. It is the only place that knows.
func (j *Judge) refused(status int, p problem, after time.Duration) error {
	err := fmt.Errorf("status %d", status)
	if p.message != "" {
		err = fmt.Errorf("status %d: %s", status, j.masked(p.message))
	}
	switch {
	case status == http.StatusUnauthorized, status == http.StatusPaymentRequired, status == http.StatusForbidden:
		return &judge.FatalError{Err: err}
	case status == http.StatusTooManyRequests && p.says("insufficient_quota", "billing"), p.says("credit balance is too low"):
		// Out of money looks like too fast, and no pause helps.
		return &judge.FatalError{Err: err}
	case status == http.StatusTooManyRequests:
		return &judge.TransientError{Reason: judge.ReasonThrottled, RetryAfter: after, Err: err, Spent: judge.Spent{Attempts: 1}}
	case status == http.StatusRequestTimeout, status >= 500:
		return &judge.TransientError{Reason: judge.ReasonUnavailable, RetryAfter: after, Err: err, Spent: judge.Spent{Attempts: 1}}
	case (status == http.StatusNotFound || status == http.StatusGone) && p.says("model"):
		return &judge.FatalError{Err: err}
	case status == http.StatusRequestEntityTooLarge,
		p.says("context_length", "context length", "maximum context", "context size", "context window", "prompt is too long", "too many tokens"):
		return &judge.TooLongError{Err: err}
	case p.says("content_filter", "content management policy"):
		return &judge.UnusableError{
			Reason: judge.ReasonJudgeRefused,
			Raw:    j.masked(p.message),
			Method: j.cfg.Method,
			Spent:  judge.Spent{Attempts: 1, Model: j.cfg.Model},
		}
	}
	return &judge.RejectedError{Err: err}
}

// retryAfter reads the header in seconds or as a date; 0 when there is none.
func retryAfter(h http.Header) time.Duration {
	if ms, err := strconv.ParseFloat(h.Get("Retry-After-Ms"), 64); err == nil && ms > 0 && ms < 1e9 {
		return time.Duration(ms * float64(time.Millisecond))
	}
	v := h.Get("Retry-After")
	if s, err := strconv.ParseFloat(v, 64); err == nil && s > 0 && s < 1e6 {
		return time.Duration(s * float64(time.Second))
	}
	if at, err := http.ParseTime(v); err == nil {
		return max(0, time.Until(at))
	}
	return 0
}

// masked takes our key out of a text: providers quote it back.
func (j *Judge) masked(s string) string {
	if len(j.cfg.APIKey) < 8 {
		return s
	}
	return strings.ReplaceAll(s, j.cfg.APIKey, "[key]")
}

// excerpt returns the first 200 characters.
func excerpt(s string) string {
	n := 0
	for i := range s {
		if n == 200 {
			return s[:i]
		}
		n++
	}
	return s
}
