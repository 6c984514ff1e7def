package main

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"

	"assay/evaluators/judge/embedded"
)

// report measures a model on the held-out questions, keeps the figures in it and
// prints them.
func report(w io.Writer, m *embedded.Model, questions []question) {
	var heldOut []row
	for _, r := range rows(questions) {
		if embedded.HeldOut(questions[r.question].text) {
			heldOut = append(heldOut, r)
		}
	}
	verdicts := judged(m, heldOut)
	m.Figures = embedded.Figures{
		Short:     figure(only(verdicts, short)),
		Sentences: figure(only(verdicts, sentence)),
		Traps:     figure(only(verdicts, trap)),
	}
	fmt.Fprintf(w, "model %s: %d features, trained on %d short, %d sentence and %d trap rows\n",
		m.Version, len(m.Features), m.Origin.Short, m.Origin.Sentences, m.Origin.Traps)
	fmt.Fprintln(w, "held-out questions (agreement with people, 95% interval over questions; sure: p outside .2 to .8):")
	line(w, "short references", m.Figures.Short)
	for _, name := range assistants() {
		line(w, "  "+name, figure(by(verdicts, name)))
	}
	line(w, "sentence references", m.Figures.Sentences)
	line(w, "made traps", m.Figures.Traps)
	reasons := map[embedded.Reason]int{}
	for _, v := range only(verdicts, short) {
		if v.abstained != "" {
			reasons[v.abstained]++
		}
	}
	fmt.Fprintf(w, "abstentions on short references: %v\n", reasons)

	improper := judged(m, improperRows(questions))
	line(w, "improper, with verdict", figure(improper))

	heavy := slices.Clone(m.Features)
	slices.SortStableFunc(heavy, func(a, b embedded.Feature) int { return cmp.Compare(math.Abs(b.Weight), math.Abs(a.Weight)) })
	fmt.Fprintln(w, "heaviest features:")
	for _, f := range heavy[:12] {
		fmt.Fprintf(w, "  %-26s %+.3f\n", f.Name, f.Weight)
	}
}

func line(w io.Writer, name string, f embedded.Figure) {
	fmt.Fprintf(w, "%-22s n %5d, abstained %3d: %.3f [%.3f, %.3f], ECE %.3f (%.3f before clipping); sure %.3f of them, right %.3f\n",
		name, f.Rows, f.Abstained, f.Agreement, f.Low, f.High, f.ECE, f.RawECE, f.Sure, f.SureRight)
}

func only(verdicts []verdict, k kind) []verdict {
	return slices.DeleteFunc(slices.Clone(verdicts), func(v verdict) bool { return v.row.kind != k })
}

func by(verdicts []verdict, assistant string) []verdict {
	return slices.DeleteFunc(only(verdicts, short), func(v verdict) bool { return v.row.assistant != assistant })
}

// improperRows are the verdicts that exist on questions marked improper.
func improperRows(questions []question) []row {
	var out []row
	for i, q := range questions {
		if !q.improper {
			continue
		}
		q.improper = false
		for _, r := range rows([]question{q}) {
			if r.kind == short {
				r.question = i
				out = append(out, r)
			}
		}
	}
	return out
}

// folds of the cross-validation by which settings and features were chosen, so that
// the held-out questions stayed unseen until the end.
const folds = 5

func crossValidate(w io.Writer, questions []question) error {
	var all []verdict
	for fold := range folds {
		inFold := func(q question) bool { return pick(q.text+"\x00fold", folds) == fold }
		m, err := train(questions, func(q question) bool { return !inFold(q) })
		if err != nil {
			return fmt.Errorf("fold %d: %w", fold, err)
		}
		var test []row
		for _, r := range rows(questions) {
			q := questions[r.question]
			if !embedded.HeldOut(q.text) && inFold(q) {
				test = append(test, r)
			}
		}
		all = append(all, judged(m, test)...)
	}
	fmt.Fprintln(w, "five-fold over training questions:")
	line(w, "short references", figure(only(all, short)))
	for _, name := range assistants() {
		line(w, "  "+name, figure(by(all, name)))
	}
	line(w, "sentence references", figure(only(all, sentence)))
	line(w, "made traps", figure(only(all, trap)))
	return nil
}
