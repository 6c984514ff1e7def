package interaction

import (
	"math"
	"strings"
	"time"
	"unicode"
)

// Status says how the logged call itself ended. It is not the status of a
// judgement.
type Status string

// The statuses of an interaction.
const (
	OK        Status = "ok"
	ToolCall  Status = "tool_call"
	Refusal   Status = "refusal"
	Filtered  Status = "filtered"
	Truncated Status = "truncated"
	Errored   Status = "error"
	Empty     Status = "empty"
	Cancelled Status = "cancelled"
	Redacted  Status = "redacted"
	NoContent Status = "no_content"
)

// Position is where an interaction stands in the log. Element is its index in a
// record that carries several, else 0.
type Position struct {
	Topic     string
	Partition int
	Offset    int64
	Element   int
}

// Interaction is one logged request to an assistant and its answer: the unit that
// is judged. A nil text was not in the log; an empty one was there and is blank.
type Interaction struct {
	Position

	ID   string
	Time time.Time // start of the request, UTC, to the nanosecond

	Input    *string
	Output   *string
	Expected []string // one or more references, any of which is right
	Criteria *string
	Context  []string
	Messages []Message // history, bounded by the decoder

	App           string
	Model         string
	Route         string
	PromptVersion string
	Tenant        string
	Environment   string
	SessionID     string
	UserID        string
	TraceID       string

	InputTokens  *int64
	OutputTokens *int64
	LatencyMS    *float64 // with the fractions that the log has
	Feedback     *Feedback

	Status     Status
	Judgeable  bool
	SkipReason string // set exactly when Judgeable is false
	Flags      []string
	Error      *ProviderError
	Attributes map[string]string
}

// Message is one turn of the history.
type Message struct {
	Role string `json:"role"`
	Text string `json:"text"`
}

// Feedback is a user's reaction that came with the record; its scale is untouched.
type Feedback struct {
	Name    string  `json:"name"`
	Value   float64 `json:"value"`
	Label   string  `json:"label,omitempty"`
	Comment string  `json:"comment,omitempty"`
	Source  string  `json:"source,omitempty"`
}

// ProviderError is what the provider said when the logged call failed.
type ProviderError struct {
	Code    string `json:"code,omitempty"`
	Type    string `json:"type,omitempty"`
	Message string `json:"message,omitempty"`
}

// HasFlag reports whether the decoder set flag.
func (it *Interaction) HasFlag(flag string) bool {
	for _, f := range it.Flags {
		if f == flag {
			return true
		}
	}
	return false
}

// WholeLatency is the latency in whole milliseconds, as rows and filters have it.
func (it *Interaction) WholeLatency() *int64 {
	if it.LatencyMS == nil {
		return nil
	}
	ms := int64(math.Round(*it.LatencyMS))
	return &ms
}

// Blank reports whether text has nothing to read: only white space and
// zero-width runes. A judge never sees a blank reference or criterion.
func Blank(text string) bool {
	return strings.IndexFunc(text, func(r rune) bool {
		return !unicode.IsSpace(r) && !zeroWidth(r)
	}) < 0
}

func zeroWidth(r rune) bool {
	switch r {
	case '\u200b', '\u200c', '\u200d', '\u2060', '\ufeff', '\u00ad', '\u180e':
		return true
	}
	return false
}
