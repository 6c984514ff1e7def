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
)

// Reasons of a *ShedError.
const (
	ShedBudget  = "budget"
	ShedBreaker = "breaker"
)
