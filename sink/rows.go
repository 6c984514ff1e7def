package sink

import "time"

// Evaluation is one check on one interaction of the log: a row of evaluations. Its
// identity (check, version, minute of Time, interaction, position, repeat) is a pure
// function of the log and the checks file, so a replay writes the same row again.
type Evaluation struct {
	Check         string
	CheckVersion  string
	Time          time.Time // the interaction's, never the clock's
	InteractionID string
	Repeat        uint8
	Topic         string
	Partition     uint32
	Offset        uint64
	Element       uint16

	Tenant        string
	App           string
	Model         string
	Route         string
	PromptVersion string
	Environment   string
	SliceID       uint64
	Slice         map[string]string // the full slice: every configured dimension
	Attributes    map[string]string
	Stratum       string
	Pi            float64
	Epoch         uint32

	Status        string // ok, unscored, not_applicable, shed, error
	Reason        string // empty exactly when Status is ok
	Score         *float32
	Passed        *bool
	Confidence    *float32
	Option        string // the chosen key
	OptionNames   []string
	OptionProbs   []float32
	Outside       float32
	Method        string
	Judge         string
	JudgeModel    string
	Attempts      uint8
	LatencyMS     uint32
	InputTokens   uint32
	OutputTokens  uint32
	CostNanoUSD   uint64
	Excerpt       string // of the input
	AnswerExcerpt string // of the output
	Detail        string // JSON
	EvaluatedAt   time.Time
	Worker        string
}

// Answered reports whether the row holds a judge's answer: it then wins over shed
// and error rows of the same identity, and a restart does not ask again.
func (e Evaluation) Answered() bool { return e.Status != "shed" && e.Status != "error" }

// Text is the judged interaction's text as far as privacy allows: a row of
// interactions.
type Text struct {
	Time          time.Time
	InteractionID string
	Topic         string
	Partition     uint32
	Offset        uint64
	Element       uint16
	Input         string
	Output        string
	Expected      []string
	Criteria      string
	Context       []string
	Messages      string // JSON
	Tenant        string
	App           string
	Model         string
	Route         string
	PromptVersion string
	Environment   string
	SessionID     string
	UserID        string
	TraceID       string
	InputTokens   uint32
	OutputTokens  uint32
	LatencyMS     uint32
	Feedback      *float32
	Status        string
	Flags         []string
	Attributes    map[string]string
	Store         string // full, excerpt, none
	Redactions    uint16
}

// Population is one cell of the ledger: a row of population. Its version is
// UptoOffset: the count is cumulative from SegmentFrom (or the block's start) to there.
type Population struct {
	Topic        string
	Partition    uint32
	Block        uint64
	SegmentFrom  uint64
	Minute       time.Time
	Check        string // empty for interaction, no_interaction and dead_lettered
	CheckVersion string
	Stratum      string
	Decision     string // filtered, sampled_out, not_applicable, dead_lettered, selected, no_interaction, interaction
	Reason       string
	Pi           float64 // 0 where no rate was applied
	Epoch        uint32
	N            uint64
	UptoOffset   uint64
	LogTime      time.Time // Kafka timestamp of the record at UptoOffset
	ChecksHash   string
}

// DeadLetter is a record that could not be used: a row of dead_letters.
type DeadLetter struct {
	Topic        string
	Partition    uint32
	Offset       uint64
	LogTime      time.Time
	Reason       string
	Error        string // first 500 characters
	Attempts     uint16
	FirstFailure time.Time
	AssayVersion string
	Headers      map[string]string
	Key          []byte
	Body         []byte
	BodyBytes    uint64
	BodySHA256   [32]byte
	Stub         bool // the body was left out: too large, or privacy
}

// CheckVersion describes what a version of a check was: a row of check_versions.
type CheckVersion struct {
	Check            string
	Version          string
	Evaluator        string
	QuestionKind     string // none, boolean, choice, score
	OptionNames      []string
	OptionScores     []*float32
	PassLine         *float64
	PassOptions      []string
	Judge            string
	JudgeFingerprint string
	Definition       string // JSON
	FirstSeen        time.Time
}

// DetectorState is a drift detector after a closed minute: a row of detector_state.
type DetectorState struct {
	Check        string
	CheckVersion string
	SliceID      uint64
	Slice        map[string]string
	Detector     string
	Minute       time.Time
	Samples      uint64 // since the last reset
	NullRate     float64
	Tolerance    float64
	Threshold    float64
	WMax         float64
	R            []float64
	EValue       float64
	Latched      bool
	Baseline     string // JSON
	InputsDigest [16]byte
	ComputedAt   time.Time
}

// Alarm is one revision of an alarm: a row of alarms.
type Alarm struct {
	ID           string
	Check        string
	CheckVersion string
	SliceID      uint64
	Slice        map[string]string
	Detector     string
	OpenedAt     time.Time
	Revision     uint64
	State        string // open, acknowledged, closed
	UpdatedAt    time.Time
	ClosedAt     *time.Time
	By           string
	Note         string
	Summary      string
	Evidence     string // JSON
}
