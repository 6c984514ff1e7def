package main

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"runtime"
	"strings"
	"sync"

	"assay/evaluators/judge/embedded"
)

// Settings of the fit, chosen by five-fold cross-validation on training questions; where
// that was indifferent, by the hand-made pairs of the judge's tests.
const (
	l2             = 0.001
	sentenceWeight = 1
	trapWeight     = 0.5
)

const splitRule = "questions by SHA-256, one tenth held out (embedded.HeldOut)"

// train fits a model on the training questions that use lets through. Held-out
// questions are seen by nothing here, the word frequencies included.
func train(questions []question, use func(question) bool) (*embedded.Model, error) {
	trained := func(q question) bool { return !embedded.HeldOut(q.text) && use(q) }
	var documents []string
	for _, q := range questions {
		if trained(q) {
			documents = append(documents, document(q))
		}
	}
	m := &embedded.Model{Schema: embedded.Schema, IDF: embedded.CountIDF(documents)}
	m.Origin.Split, m.Origin.L2 = splitRule, l2

	var kept []row
	for _, r := range rows(questions) {
		if trained(questions[r.question]) {
			kept = append(kept, r)
		}
	}
	samples := samplesOf(m, kept)
	var err error
	if m.Features, m.Bias, err = fit(samples, embedded.FeatureNames(), l2); err != nil {
		return nil, err
	}
	m.Version = version(m)
	return m, nil
}

// document is what word frequencies are counted over: a question with all that was
// said to it.
func document(q question) string {
	parts := append([]string{q.text}, q.golds...)
	for _, a := range q.answers {
		parts = append(parts, a.text)
	}
	return strings.Join(parts, "\n")
}

// samplesOf computes features, leaves out what the judge would abstain from, and
// counts what is left.
func samplesOf(m *embedded.Model, rows []row) []sample {
	j := embedded.FromModel(m, embedded.Config{})
	all := make([]sample, len(rows))
	parallel(len(rows), func(i int) {
		values, reason := j.Features(rows[i].pair)
		if reason != "" {
			return
		}
		s := sample{values: values, weight: 1}
		if rows[i].agree {
			s.agree = 1
		}
		switch rows[i].kind {
		case sentence:
			s.weight = sentenceWeight
		case trap:
			s.weight = trapWeight
		}
		all[i] = s
	})
	var samples []sample
	o := &m.Origin
	o.Short, o.Sentences, o.Traps = 0, 0, 0
	for i, s := range all {
		if s.values == nil {
			continue
		}
		samples = append(samples, s)
		switch rows[i].kind {
		case short:
			o.Short++
		case sentence:
			o.Sentences++
		case trap:
			o.Traps++
		}
	}
	o.Rows = len(samples)
	return samples
}

// version names the features and the weights, so that two models never answer under
// one name.
func version(m *embedded.Model) string {
	h := sha256.New()
	fmt.Fprintf(h, "%d %v", m.Schema, m.Bias)
	for _, f := range m.Features {
		fmt.Fprintf(h, "|%s %v %v %v", f.Name, f.Weight, f.Mean, f.Scale)
	}
	return fmt.Sprintf("%d-%s", m.Schema, hex.EncodeToString(h.Sum(nil)[:4]))
}

// parallel calls do for 0 to n-1 on every processor and waits. Results go by index,
// so the order of work changes nothing.
func parallel(n int, do func(i int)) {
	var wg sync.WaitGroup
	workers := runtime.GOMAXPROCS(0)
	for w := range workers {
		wg.Go(func() {
			for i := w; i < n; i += workers {
				do(i)
			}
		})
	}
	wg.Wait()
}
