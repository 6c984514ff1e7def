package judge

// Reasons of a *TransientError.
const (
	ReasonThrottled   = "throttled"   // 429
	ReasonTimeout     = "timeout"     // no answer within the try, or the deadline came
	ReasonUnavailable = "unavailable" // refused, reset, 5xx
	ReasonGarbage     = "garbage"     // 200 with something that is no answer: HTML, nothing, cut JSON
)

// Reasons of an *UnusableError. They are stored with the row.
const (
	ReasonOutsideOptions = "outside_options"
	ReasonProse          = "prose"
	ReasonEmptyAnswer    = "empty_answer"
	ReasonJudgeRefused   = "judge_refused"
	ReasonJudgeAbstained = "judge_abstained"
	ReasonCut            = "cut"
	ReasonMalformed      = "malformed"
	ReasonAmbiguous      = "ambiguous"
	ReasonTooFewVotes    = "too_few_votes" // less than half of the votes were answers
	ReasonNoVector       = "no_vector"     // an embedding that is missing or zero
)

// Reasons of a *ShedError.
const (
	ShedBudget  = "budget"
	ShedBreaker = "breaker"
)

// Reasons of a *RefusedError: what a judge would need for such a question.
const (
	NeedsLanguageModel  = "needs_language_model"  // one that writes
	NeedsEmbeddingModel = "needs_embedding_model" // embedding_model in the judge's settings
)
