package evaluators

import (
	"context"

	"assay/evaluators/judge"
)

// A claimScore is a score over the verdicts about claims that state a fact, of which
// there is at least one, with its text for people.
type claimScore func(s Settings, claims []verdict) (score float64, label string)

// overClaims completes the row of an evaluator that holds the claims of an output
// against the context. All of them ask the same questions, so that a check of each
// costs one.
func overClaims(spec Spec, score claimScore) Spec {
	spec.Required = []string{fieldOutput, fieldContext}
	spec.Optional = []string{fieldInput}
	spec.Kind = judge.Choice
	spec.calls = "1 for each claim, up to max_claims; 1 in all where claims are batched; 1 more where they are extracted"
	spec.Settings = append(append(spec.Settings, claimsSetting(), maxClaimsSetting()), commonSettingsWith(NotApplicableItem)...)
	spec.refusals = NotApplicableItem
	spec.variants = []variant{{template: claimTemplate, text: claimText, options: claimOptions()}}
	spec.build = func(spec Spec, v variant, s Settings) Evaluator {
		questions := newClaimQuestions(s)
		v.template, v.text = questions.definition.Template, questions.definition.Text
		d := definitionOf(spec, v, s)
		d.Claims, d.Drafts = questions.version(), questions.extracted
		return &claimwise{newAsking(spec, s, d), questions, score}
	}
	return spec
}

// claimwise judges an output claim by claim.
type claimwise struct {
	asking
	questions claimQuestions
	score     claimScore
}

// Questions implements Evaluator.
func (e *claimwise) Questions(it Item) ([]judge.Question, error) {
	if err := e.complete(it); err != nil {
		return nil, err
	}
	documents, _ := it.fit(e.spec, e.settings.MaxInputRunes)
	return e.questions.list(documents, it.Input, *it.Output), nil
}

// Evaluate implements Evaluator.
func (e *claimwise) Evaluate(ctx context.Context, j judge.Judge, it Item) (Result, error) {
	return e.run(it, nil, e.ruleClaims, func(r *Result) error { return e.judge(ctx, j, it, r) })
}

func (e *claimwise) judge(ctx context.Context, j judge.Judge, it Item, r *Result) error {
	documents, _ := it.fit(e.spec, e.settings.MaxInputRunes)
	r.noteCut(it, e.spec, len(documents))
	claims, all, ok, err := e.questions.claims(ctx, j, it.Input, *it.Output, r)
	if err != nil || !ok {
		return err
	}
	if len(claims) < all {
		r.Detail["claims_cut"] = all - len(claims)
	}
	verdicts, ok, err := e.questions.ask(ctx, j, documents, it.Input, *it.Output, claims, r)
	if err != nil || !ok {
		return err
	}
	if len(verdicts) > 0 {
		r.Detail["claims"] = claimDetail(verdicts)
	}
	stated := counted(verdicts)
	if len(stated) == 0 {
		r.Status, r.Reason = NotApplicable, reasonNoStatements
		return nil
	}
	score, label := e.score(e.settings, stated)
	r.fillClaims(e.definition, score, label, stated)
	return nil
}
