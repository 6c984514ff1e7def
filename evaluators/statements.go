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
	similarity similarity // nil unless it is blended in
}

// similarity is how near two whole texts are, from 0 to 1. It returns false where r has
// become the result already.
type similarity interface {
	Calls() Calls
	Questions(it Item) ([]judge.Question, error)
	similar(ctx context.Context, j judge.Judge, it Item, r *Result) (score float64, ok bool, err error)
}

func newStatements(spec Spec, v variant, s Settings) *statements {
	e := &statements{questions: newClaimQuestions(s)}
	v.template, v.text = e.questions.definition.Template, e.questions.definition.Text
	d := definitionOf(spec, v, s)
	d.Kind, d.Claims, d.Drafts = judge.Choice, e.questions.version(), e.questions.extracted
	if s.Similarity {
		other := answerSimilarity()
		settings := Settings{PassLine: other.PassLine, MaxInputRunes: s.MaxInputRunes, Orders: s.Orders}
		if v.dialect == dialectEmbeddings {
			e.similarity, d.Similar, d.Embeddings = newByVectors(other, other.variants[1], settings), other.variants[1].template, true
		} else {
			e.similarity, d.Similar = newJudged(other, other.variants[0], settings), other.variants[0].template
		}
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
			list = append(list, e.questions.list([]string{side.against}, it.Input, side.whole)...)
		}
	}
	if e.similarity != nil {
		whole, err := e.similarity.Questions(it)
		if err != nil {
			return nil, err
		}
		list = append(list, whole...)
	}
	return list, nil
}

// Evaluate implements Evaluator.
func (e *statements) Evaluate(ctx context.Context, j judge.Judge, it Item) (Result, error) {
	return e.run(it, nil, e.ruleClaims, func(r *Result) error { return e.judge(ctx, j, it, r) })
}

// A side is a text and the text that its claims are held against.
type side struct{ whole, against string }

func (e *statements) sides(it Item, reference string) [2]side {
	return [2]side{{*it.Output, reference}, {reference, *it.Output}}
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
		r.Detail["reference"] = best.reference + 1 // from 1, as rules count
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
	if model, ok := r.Detail["embedding_model"].(string); ok {
		r.Model += " + " + model // both make the number, as in relevancy by questions
	}
	return nil
}

// blend mixes in how similar the whole texts are.
func (e *statements) blend(ctx context.Context, j judge.Judge, it Item, score *float64, r *Result) (bool, error) {
	similar, ok, err := e.similarity.similar(ctx, j, it, r)
	if err != nil || !ok {
		return false, err
	}
	w := e.settings.Weights
	*score = (w[0]**score + w[1]*similar) / (w[0] + w[1])
	r.Detail["similarity"] = similar
	return true, nil
}

// similar implements similarity for answer_similarity by levels.
func (e *judged) similar(ctx context.Context, j judge.Judge, it Item, r *Result) (float64, bool, error) {
	a, err := ask(ctx, j, e.question(it, nil), e.settings.Orders, r)
	if err != nil {
		return 0, false, r.settleError(ctx, err)
	}
	m, err := e.definition.measure(a.Probabilities)
	if err != nil {
		r.malformed(a, err)
		return 0, false, nil
	}
	return m.score, true, nil
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
		claims, all, ok, err := e.questions.claims(ctx, j, it.Input, s.whole, r)
		if err != nil || !ok {
			return agreement{}, ok, err
		}
		verdicts, ok, err := e.questions.ask(ctx, j, []string{s.against}, it.Input, s.whole, claims, r)
		if err != nil || !ok {
			return agreement{}, ok, err
		}
		a.cut += all - len(claims)
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
