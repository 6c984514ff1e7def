package openai

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"assay/evaluators/judge"
)

// Config is a judge as the checks file states it. Zero values of the lower half take
// the defaults.
type Config struct {
	Protocol Protocol

	BaseURL string // up to and including /v1
	APIKey  string // or empty: none is sent
	Model   string
	Method  judge.Method // judge.Logprobs, judge.Structured or judge.Votes, of which one is asked for

	EmbeddingModel string // or empty: no vectors

	Timeout     time.Duration // of one try at most, less once latencies are known; 20s
	TopLogprobs int           // asked for at each position; 20
	MinInside   float64       // least mass on the options for an answer to count; 0.5
	MaxTokens   int           // of an answer; 4 for logprobs, 500 for structured, 1000 for votes
	MaxBody     int64         // bytes of a response; 4 MiB
}

func (c Config) withDefaults() Config {
	if c.Timeout == 0 {
		c.Timeout = 20 * time.Second
	}
	if c.TopLogprobs == 0 {
		c.TopLogprobs = 20
	}
	if c.MinInside == 0 {
		c.MinInside = 0.5
	}
	if c.MaxTokens == 0 {
		switch c.Method {
		case judge.Structured:
			c.MaxTokens = 500
		case judge.Votes:
			// One letter, and before it whatever a model that reasons thinks; the
			// others stop by themselves.
			c.MaxTokens = 1000
		default:
			c.MaxTokens = 4
		}
	}
	if c.MaxBody == 0 {
		c.MaxBody = 4 << 20
	}
	c.BaseURL = strings.TrimRight(c.BaseURL, "/")
	return c
}

// Validate reports every fault, by the names of the checks file.
func (c Config) Validate() error {
	c = c.withDefaults()
	var errs []error
	if u, err := url.Parse(c.BaseURL); err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" {
		errs = append(errs, fmt.Errorf("base_url %q: want http(s)://host/v1", c.BaseURL))
	} else if u.RawQuery != "" || u.User != nil {
		errs = append(errs, errors.New("base_url: want no query and no user; the key comes by api_key_env"))
	}
	if strings.ContainsAny(c.APIKey, "\r\n\t ") {
		errs = append(errs, errors.New("api key: holds white space"))
	}
	if c.Model == "" {
		errs = append(errs, errors.New("model: want the name the server knows"))
	}
	if c.Method != judge.Logprobs && c.Method != judge.Structured && c.Method != judge.Votes {
		errs = append(errs, fmt.Errorf("method %q: want logprobs, structured or votes", c.Method))
	}
	if c.Protocol != "" && c.Protocol != ChatCompletions && !c.messages() {
		errs = append(errs, fmt.Errorf("protocol %q: want %s or %s", c.Protocol, ChatCompletions, Messages))
	}
	if c.messages() && c.Method == judge.Logprobs {
		errs = append(errs, errors.New("method logprobs: this API states no token probabilities; want votes:5 or structured"))
	}
	if c.messages() && c.EmbeddingModel != "" {
		errs = append(errs, errors.New("embedding_model: this API has no embeddings"))
	}
	if c.Timeout < 0 {
		errs = append(errs, fmt.Errorf("timeout %s: want more than 0", c.Timeout))
	}
	if c.TopLogprobs < 2 || c.TopLogprobs > 100 {
		errs = append(errs, fmt.Errorf("top_logprobs %d: want 2 to 100", c.TopLogprobs))
	}
	if !(c.MinInside > 0 && c.MinInside <= 1) {
		errs = append(errs, fmt.Errorf("min_inside %g: want above 0, up to 1", c.MinInside))
	}
	if c.MaxTokens < 1 || c.MaxTokens > 100_000 {
		errs = append(errs, fmt.Errorf("max_tokens %d: want 1 to 100000", c.MaxTokens))
	}
	if c.MaxBody < 1024 {
		errs = append(errs, fmt.Errorf("max_body %d: want 1024 or more", c.MaxBody))
	}
	return errors.Join(errs...)
}
