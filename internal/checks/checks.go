package checks

import (
	"time"

	"assay/evaluators"
	"assay/internal/interaction"
)

// File is a valid checks file: what to judge, with what, and how often. It is
// immutable; a reload makes a new one.
type File struct {
	Path       string
	Dimensions []string            // names of the columns of every row's slice, in order
	Slices     []interaction.Slice // declared: exported and alarmed on, beside all
	Sources    []Source
	Judges     []Judge // in the file's order
	Checks     []Check // in the file's order
	Alerts     Alerts
	Privacy    Privacy
	Suites     []evaluators.Suite // the file's own, beside the built-in ones
	Hash       string             // of everything here that can change a decision: with the decoder's fingerprint the ledger's segments stand under it
}

// Source is a topic and how its records are read.
type Source struct {
	Topic  string
	Format string            // auto, or a format's name
	Fields map[string]string // field of the record -> dotted path

	Unit        string              // of a trace: leaf, root; empty is leaf
	ToolResults string              // context, ignore; empty is context
	Turn        string              // of a conversation, the input: last_user, first_user, transcript; empty is last_user
	Snapshots   string              // rows that a connector read at its start: judge, skip; empty is judge
	Rejudge     bool                // rows that were whole before a change are judged again
	JoinWait    time.Duration       // how long half of an interaction waits for its rest; 0 is the decoder's
	Feedback    map[string]Feedback `json:"-"` // by the name of a score in the log; it decides nothing, so it is in no hash

	SchemaRegistry SchemaRegistry
}

// Judge is a judge as configured.
type Judge struct {
	Name              string
	Kind              string // openai, anthropic, embedded, simulated
	BaseURL           string
	APIKeyEnv         string // the environment variable that holds the key
	Model             string
	Method            string // logprobs, structured, votes:N; as the kind allows
	MaxTokens         int    // of an answer; 0 is the kind's own
	EmbeddingModel    string // or empty: no evaluator by embeddings
	MaxInFlight       int    // 0 for embedded, as are the next three: it computes here and is free
	RequestsPerMinute int
	Price             *Price
	Budget            Budget
	AbstainLow        bool // embedded only: abstain: low_confidence
}

// Price is USD per million tokens.
type Price struct {
	InputPerMillion  float64
	OutputPerMillion float64
}

// Budget bounds what a judge may do in a UTC day; 0 means no such bound. A judge
// with a price has USDPerDay, one without has a limit of calls or tokens, unless it
// is ours and free (embedded, simulated).
type Budget struct {
	USDPerDay    float64
	CallsPerDay  int64
	TokensPerDay int64
}

// Check is a named evaluator with its settings, its filter and its sampling.
type Check struct {
	Name      string
	Version   string // hash of everything that can change a verdict
	Evaluator string
	Criteria  Text   // closed_qa, llm_judge
	Reference Text   // factuality and others that compare with an expected answer
	Coarse    bool   // factuality by agree/disagree
	Dialect   string // of evaluators that have several ways of judging

	Claims     string // of evaluators that take a text apart, as are the next four
	MaxClaims  int
	Count      string
	Similarity bool
	Weights    []float64
	Questions  int // answer_relevancy by embeddings: how many are written

	// Options are a deterministic evaluator's own settings, by their names.
	Options map[string]any

	When     *Filter  // nil: every interaction
	Judge    string   // a Judge's name; empty where the evaluator asks none
	PassLine *float64 // boolean and score questions
	Pass     []string // choice questions: the options that pass
	// What is done with an answer that is there but blank: not_applicable, or fail.
	EmptyOutput string
	Refusals    string // judge, not_applicable, fail
	Truncated   string // judge, not_applicable

	MaxInputRunes int // that a judge reads; 0 is the evaluator's default
	Orders        int // 2: asked with the options in both orders
	Sample        Sample
	Alert         Alert
}

// Text says where a check's criteria or reference come from: a fixed text, or a
// field of the record. Exactly one is set; the zero Text means the evaluator needs none.
type Text struct {
	Text  string
	Field string // criteria, expected, or attributes by name
}

// Sample is the sampling of a check. Its salt is its name's unless one is given;
// checks that share a salt share the sample.
type Sample struct {
	Rate float64 // inclusion probability, 0 to 1
	Salt string
}

// Alert is what a check's drift detector watches for.
type Alert struct {
	Off       bool
	Target    float64  // declared pass rate; 0 when none is declared
	Tolerance *float64 // nil: auto
	Severity  string   // page, ticket
	Labels    map[string]string
	Close     string // auto, manual
}

// Alerts is the file's promise about false alarms, shared out over checks and
// declared slices.
type Alerts struct {
	MaxFalseAlarmsPerYear float64
}

// Privacy says how much text of interactions is stored.
type Privacy struct {
	StoreText string   // full, excerpt, none
	Redact    []string // email, phone, card, secret
}

// Check returns the check of that name.
func (f *File) Check(name string) (Check, bool) {
	for _, c := range f.Checks {
		if c.Name == name {
			return c, true
		}
	}
	return Check{}, false
}

// Judge returns the judge of that name.
func (f *File) Judge(name string) (Judge, bool) {
	for _, j := range f.Judges {
		if j.Name == name {
			return j, true
		}
	}
	return Judge{}, false
}

// Topics returns the topics of the sources, in order.
func (f *File) Topics() []string {
	topics := make([]string, 0, len(f.Sources))
	for _, s := range f.Sources {
		topics = append(topics, s.Topic)
	}
	return topics
}

// DeclaredSlices returns `all` and the declared slices: what is exported and alarmed on.
func (f *File) DeclaredSlices() []interaction.Slice {
	return append([]interaction.Slice{{}}, f.Slices...)
}
