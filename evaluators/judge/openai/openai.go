package openai

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"assay/evaluators/judge"
)

// Deps are the parts a Judge works with; both are required.
type Deps struct {
	HTTP *http.Client // NewClient makes one; its Timeout stays unset, ours is per try
	Log  *slog.Logger
}

// Judge asks one model at one server.
type Judge struct {
	cfg    Config
	deps   Deps
	tagKey []byte // of this process: nobody outside can foresee a tag
	form   atomic.Pointer[form]

	patience *patience
}

// New checks cfg and starts nothing.
func New(cfg Config, deps Deps) (*Judge, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	cfg = cfg.withDefaults()
	j := &Judge{cfg: cfg, deps: deps, tagKey: make([]byte, 32), patience: newPatience(cfg.Timeout)}
	rand.Read(j.tagKey) // never fails
	j.form.Store(&form{topLogprobs: cfg.TopLogprobs})
	return j, nil
}

// NewClient returns a client that keeps one connection per question in flight.
// http.DefaultTransport keeps two and dials anew for the rest.
func NewClient(inFlight int) *http.Client {
	return &http.Client{Transport: &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           (&net.Dialer{Timeout: 5 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
		ForceAttemptHTTP2:     true,
		MaxIdleConns:          inFlight,
		MaxIdleConnsPerHost:   inFlight,
		IdleConnTimeout:       90 * time.Second,
		TLSHandshakeTimeout:   5 * time.Second,
		ExpectContinueTimeout: time.Second,
	}}
}

// Fingerprint identifies the judge as configured: what can change a verdict, and
// neither address nor key, which cannot.
func (j *Judge) Fingerprint() string {
	h := sha256.New()
	protocol := string(ChatCompletions)
	if j.cfg.messages() {
		protocol = string(Messages)
	}
	parts := []string{
		protocol, j.cfg.Model, string(j.cfg.Method), systemText(j.cfg.Method), SheetVersion,
		fmt.Sprintf("temperature=%g top_p=%g top_logprobs=%d min_inside=%g max_tokens=%d",
			temperature, topP, j.cfg.TopLogprobs, j.cfg.MinInside, j.cfg.MaxTokens),
	}
	if j.cfg.EmbeddingModel != "" {
		parts = append(parts, "embedding_model="+j.cfg.EmbeddingModel)
	}
	for _, part := range parts {
		fmt.Fprintf(h, "%d:%s", len(part), part)
	}
	return hex.EncodeToString(h.Sum(nil))[:16]
}

// Estimate returns the most that one try of q may use: what a budget reserves.
// Three bytes a token is on the safe side for every tokenizer in use.
func (j *Judge) Estimate(q judge.Question) judge.Usage {
	if q.Kind == judge.Vector {
		return judge.Usage{InputTokens: int64(len(vectorText(q))+2) / 3}
	}
	u := judge.Usage{
		InputTokens:  int64(sheetBytes(j.cfg.Method, q)+2) / 3,
		OutputTokens: int64(j.maxTokens(q)),
	}
	if j.cfg.messages() && j.cfg.Method == judge.Structured {
		u.InputTokens += toolTokens
	}
	return u
}

// maxTokens doubles for a question that is asked again: it may have been cut.
func (j *Judge) maxTokens(q judge.Question) int {
	n := j.cfg.MaxTokens
	if q.Kind == judge.Text {
		n = max(n, draftTokens+min(fieldBytes(q)/3, mostDraftTokens))
	}
	if q.Each != "" {
		n += tokensEach * len(q.FieldValues(q.Each)) * (len(q.Options) + 1)
	}
	if (j.cfg.Method == judge.Structured || q.Kind == judge.Text) && q.Reask > 0 {
		n *= 2
	}
	return n
}

// tokensEach is what one letter and its number take in an answer, with room to spare.
const tokensEach = 12

// CanAnswer tells whether this judge takes such a question, without a call.
func (j *Judge) CanAnswer(q judge.Question) error { return j.canAnswer(q, *j.form.Load()) }

func (j *Judge) canAnswer(q judge.Question, f form) error {
	switch {
	case q.Kind == judge.Vector && j.cfg.EmbeddingModel == "":
		return &judge.RefusedError{Reason: judge.NeedsEmbeddingModel}
	case !q.Kind.HasOptions():
		return nil
	case len(q.Options) < 2:
		return &judge.RefusedError{Reason: "no_options"}
	case q.Each != "" && j.cfg.Method != judge.Structured:
		return &judge.RefusedError{Reason: "needs_structured"}
	case len(q.Options) >= len(alphabet):
		return &judge.RefusedError{Reason: "too_many_options"}
	case j.cfg.Method == judge.Logprobs && f.topLogprobs < 2*len(q.Options):
		// With fewer listed tokens than twice the options, spellings of one
		// letter crowd the others out and a small probability reads as none.
		return &judge.RefusedError{Reason: "too_few_top_logprobs"}
	}
	return nil
}

// Ask implements judge.Judge: one try.
func (j *Judge) Ask(ctx context.Context, q judge.Question) (judge.Answer, error) {
	if err := j.CanAnswer(q); err != nil {
		return judge.Answer{}, err
	}
	if q.Kind == judge.Vector {
		return j.embed(ctx, q)
	}
	return j.ask(ctx, q, newSheet(q))
}

func (j *Judge) ask(ctx context.Context, q judge.Question, s sheet) (judge.Answer, error) {
	start := time.Now()
	c, err := j.complete(ctx, q, s)
	if err != nil {
		return judge.Answer{}, err
	}
	spent := judge.Spent{Usage: j.usage(c, q), Attempts: 1, Model: c.Model}
	if spent.Model == "" {
		spent.Model = j.cfg.Model
	}

	r, err := j.read(c, s)
	if unusable, ok := err.(*judge.UnusableError); ok {
		unusable.Method = j.cfg.Method
		unusable.Raw = j.masked(excerpt(c.text()))
		unusable.Spent = spent
	}
	if err != nil {
		return judge.Answer{}, err
	}
	if spent.Usage.Estimated {
		r.note("usage_estimated", true)
	}
	return judge.Answer{
		Probabilities: r.probabilities,
		Parts:         r.parts,
		Text:          r.text,
		Outside:       r.outside,
		Method:        j.cfg.Method,
		Model:         spent.Model,
		Usage:         spent.Usage,
		Latency:       time.Since(start),
		Attempts:      1,
		Detail:        r.detail,
	}, nil
}

// read reads what was asked for.
func (j *Judge) read(c *completion, s sheet) (reading, error) {
	switch {
	case s.q.Kind == judge.Text:
		return readDraft(c)
	case j.cfg.Method == judge.Logprobs:
		return readLogprobs(c, s, j.cfg.MinInside)
	case j.cfg.Method == judge.Votes:
		return readVote(c, s)
	}
	return readStructured(c, s, j.cfg.MinInside)
}

// usage is what the server stated, else the reserve.
func (j *Judge) usage(c *completion, q judge.Question) judge.Usage {
	if c.Usage == nil || c.Usage.Prompt < 0 || c.Usage.Completion < 0 || c.Usage.Prompt+c.Usage.Completion == 0 {
		u := j.Estimate(q)
		u.Estimated = true
		return u
	}
	return judge.Usage{InputTokens: c.Usage.Prompt, OutputTokens: c.Usage.Completion}
}
