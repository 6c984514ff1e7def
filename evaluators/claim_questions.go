package evaluators

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"assay/evaluators/judge"
)

// claimQuestions asks what claim_supported asks: about one claim, or about all of a
// text in one call. The claims are the text's sentences, or what the judge lists.
type claimQuestions struct {
	definition Definition
	orders     int
	most       int // claims of a text
	batched    bool
	extracted  bool
}

func newClaimQuestions(s Settings) claimQuestions {
	q := claimQuestions{
		definition: Definition{Evaluator: "claim_supported", Template: claimTemplate, Kind: judge.Choice, Text: claimText, Options: claimOptions()},
		orders:     s.Orders,
		most:       s.MaxClaims,
		batched:    s.Claims == claimsBatched,
		extracted:  s.Claims == claimsExtracted,
	}
	if q.batched {
		q.definition.Template, q.definition.Text = claimsTemplate, claimsText
	}
	return q
}

// version names how a text is taken apart.
func (q claimQuestions) version() string {
	if q.extracted {
		return sentencesVersion + "+" + extractTemplate
	}
	return sentencesVersion
}

// claims takes a text apart. It returns false where r has become the result already. all
// is how many claims there were.
func (q claimQuestions) claims(ctx context.Context, j judge.Judge, input *string, whole string, r *Result) (claims []claim, all int, ok bool, err error) {
	if q.extracted {
		return q.extract(ctx, j, input, whole, q.most, r)
	}
	claims, all = claimsOf(whole, q.most)
	return claims, all, true, nil
}

// list lays out the questions about a text: all of them, or the one that takes it apart.
func (q claimQuestions) list(documents []string, input *string, whole string) []judge.Question {
	if q.extracted {
		question, pieces := extraction(input, whole)
		if pieces == 0 || pieces > mostSentences {
			return nil
		}
		return []judge.Question{question}
	}
	claims, _ := claimsOf(whole, q.most)
	if q.batched && len(claims) > 0 {
		return []judge.Question{q.batch(documents, input, whole, claims)}
	}
	list := make([]judge.Question, len(claims))
	for i, c := range claims {
		list[i] = q.question(documents, input, c)
	}
	return list
}

// batch lays out all claims as one question. What they mean where they stand is seen
// from the whole text.
func (q claimQuestions) batch(documents []string, input *string, whole string, claims []claim) judge.Question {
	out := q.question(documents, input, claim{})
	out.Each = fieldClaim
	out.Fields = append(out.Fields, judge.Field{Name: fieldOutput, Value: whole})
	for _, c := range claims {
		out.Fields = append(out.Fields, judge.Field{Name: fieldClaim, Value: c.text})
	}
	return out
}

// question lays out one claim. The documents come first and the claim last, so that
// all claims of an answer share a prefix.
func (q claimQuestions) question(documents []string, input *string, c claim) judge.Question {
	out := q.definition.question()
	add := func(name, text string) {
		if text != "" {
			out.Fields = append(out.Fields, judge.Field{Name: name, Value: text})
		}
	}
	for _, d := range documents {
		add(fieldContext, d)
	}
	if given(input) {
		add(fieldInput, *input)
	}
	add("before", c.before)
	add("after", c.after)
	add(fieldClaim, c.text)
	return out
}

// ask asks about every claim and puts the cost into r. It returns false where one of
// them has no answer: r then has that one's status and reason, since a share of the
// claims that happened to be answered is no share of the claims.
func (q claimQuestions) ask(ctx context.Context, j judge.Judge, documents []string, input *string, whole string, claims []claim, r *Result) ([]verdict, bool, error) {
	if q.batched && len(claims) > 0 {
		return q.askBatch(ctx, j, q.batch(documents, input, whole, claims), claims, r)
	}
	verdicts := make([]verdict, len(claims))
	var mu sync.Mutex // guards what is spent in r
	one := func(i int) bool {
		v := q.verdict(ctx, j, q.question(documents, input, claims[i]), func(s judge.Spent) {
			mu.Lock()
			defer mu.Unlock()
			r.spend(s)
		})
		v.claim = claims[i].text
		verdicts[i] = v
		return v.failed == nil && v.canceled == nil
	}
	inTurn(len(claims), one)
	return r.answered(verdicts)
}

// askBatch asks about all claims at once.
func (q claimQuestions) askBatch(ctx context.Context, j judge.Judge, question judge.Question, claims []claim, r *Result) ([]verdict, bool, error) {
	a, err := ask(ctx, j, question, 1, r)
	if err != nil {
		return nil, false, r.settleError(ctx, err)
	}
	if len(a.Parts) != len(claims) {
		r.malformed(a, fmt.Errorf("%d answers for %d claims", len(a.Parts), len(claims)))
		return nil, false, nil
	}
	verdicts := make([]verdict, len(claims))
	for i, p := range a.Parts {
		m, err := q.definition.measure(p)
		if err != nil {
			r.malformed(a, fmt.Errorf("claim %d: %w", i+1, err))
			return nil, false, nil
		}
		verdicts[i] = verdict{
			claim: claims[i].text, option: m.option, p: slices.Clone(p), largest: m.confidence,
			outside: a.Outside, method: a.Method, model: a.Model,
		}
	}
	return verdicts, true, nil
}

// verdict asks one question.
func (q claimQuestions) verdict(ctx context.Context, j judge.Judge, question judge.Question, spent func(judge.Spent)) verdict {
	r := Result{Detail: make(map[string]any)}
	defer func() { spent(judge.Spent{Usage: r.Usage, Attempts: r.Attempts}) }()
	a, err := ask(ctx, j, question, q.orders, &r)
	if err != nil {
		if err := r.settleError(ctx, err); err != nil {
			return verdict{canceled: err}
		}
		return verdict{failed: &r}
	}
	m, err := q.definition.measure(a.Probabilities)
	if err != nil {
		r.malformed(a, err)
		return verdict{failed: &r}
	}
	gap, _ := r.Detail["order_gap"].(float64)
	return verdict{
		option: m.option, p: slices.Clone(a.Probabilities), largest: m.confidence,
		outside: a.Outside, method: a.Method, model: a.Model, gap: gap,
	}
}
