package evaluators

import "fmt"

// Settings of the evaluators that judge a text claim by claim.
const (
	defaultMaxClaims = 8
	mostClaims       = 50 // each is a call of the judge

	claimsSingle    = "single"
	claimsBatched   = "batched"
	claimsExtracted = "extracted"

	countUnsupported  = "unsupported"
	countContradicted = "contradicted"
)

func maxClaimsSetting() Setting {
	return Setting{Name: "max_claims", Type: "number", Default: defaultMaxClaims,
		Help: fmt.Sprintf("claims of a text that are judged at most, one call each, up to %d; of a longer text they are taken evenly from beginning to end", mostClaims)}
}

func claimsSetting() Setting {
	return Setting{Name: "claims", Type: "text", Values: []string{claimsSingle, claimsBatched, claimsExtracted}, Default: claimsSingle,
		Help: "single asks about each sentence by itself; batched about all in one call, for a fraction of the cost, and needs a judge with method structured; extracted has the judge list the claims first, in one call more"}
}

// settleClaims checks the settings of claims and fills in their defaults. A setting
// that this evaluator does not take is a fault and not ignored.
func settleClaims(s *Settings, spec Spec, fault func(format string, args ...any)) {
	statements := spec.takes("similarity") && (s.Dialect == dialectStatements || s.Dialect == dialectEmbeddings)
	if statements && s.Dialect == dialectEmbeddings {
		s.Similarity = true
	}
	claims := spec.takes("max_claims") && (!spec.takes("similarity") || statements)
	switch {
	case !spec.takes("max_claims") && s.MaxClaims != 0:
		fault("max_claims: this evaluator does not take a text apart")
	case !claims && s.MaxClaims != 0:
		fault("max_claims: only dialects %s and %s take a text apart", dialectStatements, dialectEmbeddings)
	}
	if s.MaxClaims < 0 || s.MaxClaims > mostClaims {
		fault("max_claims: %d: want 1 to %d", s.MaxClaims, mostClaims)
	}
	switch {
	case !spec.takes("claims") && s.Claims != "":
		fault("claims: this evaluator has one way of asking")
	case !claims && s.Claims != "":
		fault("claims: only dialects %s and %s take a text apart", dialectStatements, dialectEmbeddings)
	case spec.takes("claims") && claims && s.Claims == "":
		s.Claims = claimsSingle
	case s.Claims != "" && s.Claims != claimsSingle && s.Claims != claimsBatched && s.Claims != claimsExtracted:
		fault("claims: %q: want %s or %s or %s", s.Claims, claimsSingle, claimsBatched, claimsExtracted)
	case s.Claims == claimsBatched && s.Orders == 2:
		fault("orders: 2 goes with claims: %s only", claimsSingle)
	}
	if claims && s.MaxClaims == 0 {
		s.MaxClaims = defaultMaxClaims
	}

	switch {
	case !spec.takes("count") && s.Count != "":
		fault("count: this evaluator has one way of counting")
	case spec.takes("count") && s.Count == "":
		s.Count = countUnsupported
	case s.Count != "" && s.Count != countUnsupported && s.Count != countContradicted:
		fault("count: %q: want %s or %s", s.Count, countUnsupported, countContradicted)
	}

	switch {
	case s.Similarity && !statements:
		fault("similarity: only answer_correctness with dialect %s or %s blends it in", dialectStatements, dialectEmbeddings)
	case s.Weights != nil && !s.Similarity:
		fault("weights: of statements and similarity; they need similarity: true")
	case s.Similarity && s.Weights == nil:
		s.Weights = []float64{.75, .25}
	case s.Weights != nil:
		if len(s.Weights) != 2 || !weight(s.Weights[0]) || !weight(s.Weights[1]) || s.Weights[0]+s.Weights[1] == 0 {
			fault("weights: %v: want two numbers of at least 0, not both 0", s.Weights)
		}
	}
}

func weight(w float64) bool { return w >= 0 && w <= 1e6 }
