package evaluators

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"unicode/utf8"

	"assay/evaluators/judge"
	"assay/internal/interaction"
)

// mostCitations of a sentence are looked at; more are an evasion, not a proof.
const mostCitations = 3

const reasonNoCitations = "no_citations"

// overCitations completes the row of an evaluator that holds each sentence of an output
// against the documents it cites: [1] is the first document of the context.
func overCitations(spec Spec, score citationScore, precise bool) Spec {
	spec.Required = []string{fieldOutput, fieldContext}
	spec.Optional = []string{fieldInput}
	spec.Kind = judge.Choice
	spec.calls = "1 for each sentence that cites, up to max_claims"
	if precise {
		spec.calls += fmt.Sprintf("; for one that cites several documents up to %d more", 2*mostCitations)
	}
	spec.PassLine = new(.75)
	spec.Settings = append([]Setting{passLevel(.75), maxClaimsSetting()}, commonSettingsWith(NotApplicableItem)...)
	spec.refusals = NotApplicableItem
	spec.variants = []variant{{template: claimTemplate, text: claimText, options: claimOptions()}}
	spec.build = func(spec Spec, v variant, s Settings) Evaluator {
		d := definitionOf(spec, v, s)
		d.Claims = sentencesVersion
		return &citing{newAsking(spec, s, d), newClaimQuestions(s), score, precise}
	}
	return spec
}

// A citationScore is a score over cited sentences, of which there is at least one.
type citationScore func(list []cited) (score float64, label string)

// citing judges sentences by what they cite.
type citing struct {
	asking
	questions claimQuestions
	score     citationScore
	precise   bool // also ask what each single citation is worth
}

// cited is a sentence with its citations and what became of them.
type cited struct {
	claim     claim
	refs      []int // 0-based, as they stand there; the first mostCitations
	unknown   bool  // one of them names no document
	supported bool  // by the documents together
	credits   int   // citations that are worth something
	verdicts  []verdict
}

// Questions implements Evaluator. They are the first one of each sentence; whether
// single citations are asked about depends on the answers.
func (e *citing) Questions(it Item) ([]judge.Question, error) {
	if err := e.complete(it); err != nil {
		return nil, err
	}
	var list []judge.Question
	sentences, _ := e.sentences(it)
	for _, c := range sentences {
		if len(c.refs) > 0 && !c.unknown {
			list = append(list, e.questions.question(documentsOf(it, c.refs), it.Input, c.claim))
		}
	}
	return list, nil
}

// Evaluate implements Evaluator.
func (e *citing) Evaluate(ctx context.Context, j judge.Judge, it Item) (Result, error) {
	return e.run(it, nil, e.ruleClaims, func(r *Result) error { return e.judge(ctx, j, it, r) })
}

// sentences takes the output apart. What a judge reads of a sentence has no marks: the
// documents it sees are not numbered as the answer numbers them.
func (e *citing) sentences(it Item) (list []cited, all int) {
	claims, all := claimsOf(*it.Output, e.settings.MaxClaims)
	for _, c := range claims {
		s := cited{refs: citationsIn(c.text)}
		s.unknown = slices.ContainsFunc(s.refs, func(ref int) bool { return ref < 0 || ref >= len(it.Context) || interaction.Blank(it.Context[ref]) })
		if !s.unknown && len(s.refs) > mostCitations {
			s.refs = s.refs[:mostCitations]
		}
		s.claim = claim{text: withoutMarks(c.text), before: withoutMarks(c.before), after: withoutMarks(c.after)}
		list = append(list, s)
	}
	return list, all
}

func (e *citing) judge(ctx context.Context, j judge.Judge, it Item, r *Result) error {
	list, all := e.sentences(it)
	if len(list) == 0 {
		r.Status, r.Reason = NotApplicable, reasonNoStatements
		return nil
	}
	if len(list) < all {
		r.Detail["claims_cut"] = all - len(list)
	}
	if slices.ContainsFunc(list, func(c cited) bool { return e.tooLong(it, c) }) {
		r.Status, r.Reason = NotApplicable, reasonTooLong
		return nil
	}
	var mu sync.Mutex // guards what is spent in r
	spent := func(s judge.Spent) {
		mu.Lock()
		defer mu.Unlock()
		r.spend(s)
	}
	inTurn(len(list), func(i int) bool { return e.hold(ctx, j, it, &list[i], spent) })
	var verdicts []verdict
	for _, c := range list {
		verdicts = append(verdicts, c.verdicts...)
	}
	if _, ok, err := r.answered(verdicts); err != nil || !ok {
		return err
	}
	r.Detail["sentences"] = e.detail(list)
	score, label := e.score(list)
	if len(verdicts) == 0 { // nothing cited that could be asked about
		verdicts = []verdict{{largest: 1, method: judge.None}}
		r.Detail["rule"] = reasonNoCitations
	}
	r.fillClaims(e.definition, score, label, verdicts)
	return nil
}

// hold asks about one sentence; it returns false where an answer is missing.
func (e *citing) hold(ctx context.Context, j judge.Judge, it Item, c *cited, spent func(judge.Spent)) bool {
	if len(c.refs) == 0 || c.unknown {
		return true
	}
	ask := func(refs []int) (supported, ok bool) {
		v := e.questions.verdict(ctx, j, e.questions.question(documentsOf(it, refs), it.Input, c.claim), spent)
		c.verdicts = append(c.verdicts, v)
		return v.option == claimSupports, v.failed == nil && v.canceled == nil
	}
	var ok bool
	if c.supported, ok = ask(c.refs); !ok {
		return false
	}
	switch {
	case !c.supported || !e.precise:
		return true
	case len(c.refs) == 1:
		c.credits = 1
		return true
	}
	// A citation of several counts if it supports the sentence by itself, or if the
	// others do not without it.
	for i, ref := range c.refs {
		alone, ok := ask([]int{ref})
		if !ok {
			return false
		}
		if !alone {
			others, ok := ask(slices.Delete(slices.Clone(c.refs), i, i+1))
			if !ok {
				return false
			}
			if others {
				continue
			}
		}
		c.credits++
	}
	return true
}

// tooLong reports whether a judge would read too much about one sentence.
func (e *citing) tooLong(it Item, c cited) bool {
	if c.unknown {
		return false
	}
	runes := utf8.RuneCountInString(c.claim.text) + utf8.RuneCountInString(c.claim.before) + utf8.RuneCountInString(c.claim.after)
	for _, text := range append(documentsOf(it, c.refs), it.texts(fieldInput)...) {
		runes += utf8.RuneCountInString(text)
	}
	return runes > e.settings.MaxInputRunes
}

// documentsOf returns the documents that are cited, each once and in the order of the
// context, so that equal sets are equal questions.
func documentsOf(it Item, refs []int) []string {
	var documents []string
	for _, i := range slices.Compact(slices.Sorted(slices.Values(refs))) {
		documents = append(documents, it.Context[i])
	}
	return documents
}

// detail is what a row keeps of the sentences.
func (e *citing) detail(list []cited) []any {
	out := make([]any, len(list))
	for i, c := range list {
		refs := make([]any, len(c.refs))
		for k, ref := range c.refs {
			refs[k] = ref + 1
		}
		kept := map[string]any{"text": c.claim.text, "citations": refs, "supported": c.supported}
		if c.unknown {
			kept["unknown_document"] = true
		}
		if e.precise {
			kept["credits"] = c.credits
		}
		out[i] = kept
	}
	return out
}

func citedLabel(n, of int) string { return fmt.Sprintf("%d of %d", n, of) }
