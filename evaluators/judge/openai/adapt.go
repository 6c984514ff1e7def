package openai

import (
	"errors"
	"strings"

	"assay/evaluators/judge"
)

// A form is how a server wants a request written. It starts as the protocol has it
// and is changed by what the server refuses; the meaning of a question never is.
type form struct {
	completionTokens bool // max_completion_tokens for max_tokens
	noMetadata       bool // the provider takes metadata only for stored calls
	noSeed           bool
	noTopP           bool // models that reason take no nucleus and no temperature: theirs are 1
	noTemperature    bool
	topLogprobs      int
}

// fewestTopLogprobs serves a boolean question; a server with less cannot do logprobs.
const fewestTopLogprobs = 4

// adapt returns the form to try next after a rejection that said message, and whether
// there is one. A server that refuses logprobs altogether is a fault of the
// configuration.
func (f form) adapt(message string) (form, bool, error) {
	m := strings.ToLower(message)
	switch {
	case strings.Contains(m, "max_completion_tokens") && !f.completionTokens:
		f.completionTokens = true
		return f, true, nil
	case strings.Contains(m, "metadata") && !f.noMetadata:
		f.noMetadata = true
		return f, true, nil
	case strings.Contains(m, "top_p") && !f.noTopP:
		f.noTopP = true
		return f, true, nil
	case strings.Contains(m, "temperature") && !f.noTemperature:
		f.noTemperature = true
		return f, true, nil
	case strings.Contains(m, "seed") && !f.noSeed:
		f.noSeed = true
		return f, true, nil
	case strings.Contains(m, "logprobs") && f.topLogprobs > fewestTopLogprobs:
		// Limits in use are 20, 10 and 5.
		f.topLogprobs = max(f.topLogprobs/2, fewestTopLogprobs)
		return f, true, nil
	case strings.Contains(m, "logprobs"):
		return f, false, &judge.FatalError{Err: errors.New(
			"the server refuses token probabilities (" + message + "): choose a model that gives them, or method votes:5 or structured")}
	}
	return f, false, nil
}
