package evaluators

import (
	"context"
	"fmt"

	"assay/evaluators/judge"
)

// statements is answer_correctness sentence by sentence: those of the output against
// the expected answer, and those of the expected answer against the output. Of several
// references the one with the best score counts.
type statements struct {
	asking
	questions  claimQuestions
	similarity *judged // nil unless it is blended in
}

func newStatements(spec Spec, v variant, s Settings) *statements {
	e := &statements{questions: newClaimQuestions(s)}
	v.template, v.text = e.questions.definition.Template, e.questions.definition.Text
	d := definitionOf(spec, v, s)
	d.Kind, d.Claims = judge.Choice, sentencesVersion
	if s.Similarity {
		other := answerSimilarity()
		e.similarity = newJudged(other, other.variants[0], Settings{PassLine: other.PassLine, MaxInputRunes: s.MaxInputRunes, Orders: s.Orders})
		d.Similar = e.similarity.definition.Template
	}
	e.asking = newAsking(spec, s, d)
	return e
}

// Questions implements Evaluator.
func (e *statements) Questions(it Item) ([]judge.Question, error) {
	if err := e.complete(it); err != nil {
		return nil, err
	}
	var list []judge.Question
	for _, reference := range it.texts(fieldExpected) {
		for _, side := range e.sides(it, reference) {
			list = append(list, e.questions.list([]string{side.against}, it.Input, side.whole, side.claims)...)
		}
	}
	if e.similarity != nil {
		list = append(list, e.similarity.question(it, nil))
	}
	return list, nil
}

// Evaluate implements Evaluator.
func (e *statements) Evaluate(ctx context.Context, j judge.Judge, it Item) (Result, error) {
	return e.run(it, nil, e.ruleClaims, func(r *Result) error { return e.judge(ctx, j, it, r) })
}

// A side is one text's claims and the text they are held against.
type side struct {
	claims  []claim
	all     int
	whole   string
	against string
}

func (e *statements) sides(it Item, reference string) [2]side {
	said, allSaid := claimsOf(*it.Output, e.settings.MaxClaims)
	known, allKnown := claimsOf(reference, e.settings.MaxClaims)
	return [2]side{{said, allSaid, *it.Output, reference}, {known, allKnown, reference, *it.Output}}
}

func (e *statements) judge(ctx context.Context, j judge.Judge, it Item, r *Result) error {
	var best *agreement
	for i, reference := range it.texts(fieldExpected) {
		c, ok, err := e.compare(ctx, j, it, reference, r)
		if err != nil || !ok {
			return err
		}
		c.reference = i
		if best == nil || c.f1() > best.f1() {
			best = &c
		}
	}
	if best.claims() == 0 {
		r.Status, r.Reason = NotApplicable, reasonNoStatements
		return nil
	}
	score := best.f1()
	r.Detail["tp"], r.Detail["fp"], r.Detail["fn"], r.Detail["f1"] = best.tp, best.fp, best.fn, score
	r.Detail["claims"], r.Detail["expected_claims"] = claimDetail(best.said), claimDetail(best.known)
	if len(it.texts(fieldExpected)) > 1 {
		r.Detail["reference"] = best.reference
	}
	if best.cut > 0 {
		r.Detail["claims_cut"] = best.cut
	}
	if e.similarity != nil {
		ok, err := e.blend(ctx, j, it, &score, r)
		if err != nil || !ok {
			return err
		}
	}
	r.fillClaims(e.definition, score, fmt.Sprintf("%d right, %d wrong, %d missing", best.tp, best.fp, best.fn), append(best.said, best.known...))
	return nil
}

// blend asks answer_similarity and mixes its score in.
func (e *statements) blend(ctx context.Context, j judge.Judge, it Item, score *float64, r *Result) (bool, error) {
	a, err := ask(ctx, j, e.similarity.question(it, nil), e.settings.Orders, r)
	if err != nil {
		return false, r.settleError(ctx, err)
	}
	m, err := e.similarity.definition.measure(a.Probabilities)
	if err != nil {
		r.malformed(a, err)
		return false, nil
	}
	w := e.settings.Weights
	*score = (w[0]**score + w[1]*m.score) / (w[0] + w[1])
	r.Detail["similarity"] = m.score
	return true, nil
}

// An agreement is how an output and one reference compare.
type agreement struct {
	tp, fp, fn  int // supported; not supported; of the reference and not in the output
	said, known []verdict
	cut         int // claims that were not asked about
	reference   int
}

func (a agreement) claims() int { return a.tp + a.fp + a.fn }

func (a agreement) f1() float64 {
	if a.tp == 0 {
		return 0
	}
	return float64(a.tp) / (float64(a.tp) + float64(a.fp+a.fn)/2)
}

// compare judges both sides. It returns false where r has become the result already.
func (e *statements) compare(ctx context.Context, j judge.Judge, it Item, reference string, r *Result) (agreement, bool, error) {
	var a agreement
	for i, s := range e.sides(it, reference) {
		verdicts, ok, err := e.questions.ask(ctx, j, []string{s.against}, it.Input, s.whole, s.claims, r)
		if err != nil || !ok {
			return agreement{}, ok, err
		}
		a.cut += s.all - len(s.claims)
		stated := counted(verdicts)
		if i == 0 {
			a.said, a.tp = verdicts, count(stated, claimSupports)
			a.fp = len(stated) - a.tp
		} else {
			a.known, a.fn = verdicts, len(stated)-count(stated, claimSupports)
		}
	}
	return a, true, nil
}
