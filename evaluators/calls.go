package evaluators

// Calls are how often a judge is asked about one item that has something to judge, from
// the least to the most. Answers that a cache has are not asked for; for a judge by votes
// see Voted. With several expected answers, answer_correctness by statements asks as often
// for each.
type Calls struct {
	Min, Max           int
	MinTexts, MaxTexts int // those of them that the judge writes a text for
	Embeddings         int // texts whose vectors are asked for, at most
}

// Voted are the calls of a judge that asks each question so many times. A text is written
// once all the same.
func (c Calls) Voted(votes int) Calls {
	c.Min += (c.Min - c.MinTexts) * (votes - 1)
	c.Max += (c.Max - c.MaxTexts) * (votes - 1)
	return c
}

func (c Calls) plus(d Calls) Calls {
	return Calls{c.Min + d.Min, c.Max + d.Max, c.MinTexts + d.MinTexts, c.MaxTexts + d.MaxTexts, c.Embeddings + d.Embeddings}
}

func (c Calls) times(n int) Calls {
	return Calls{c.Min * n, c.Max * n, c.MinTexts * n, c.MaxTexts * n, c.Embeddings * n}
}

// Calls implements Evaluator.
func (e *judged) Calls() Calls { return once().times(e.settings.Orders) }

// Calls implements Evaluator: none.
func (e *ruling) Calls() Calls { return Calls{} }

// Calls implements Evaluator.
func (e *claimwise) Calls() Calls { return e.questions.calls() }

// Calls implements Evaluator: the output is held against the expected answer and the
// other way round.
func (e *statements) Calls() Calls {
	c := e.questions.calls().times(2)
	if e.similarity != nil {
		c = c.plus(e.similarity.Calls())
	}
	return c
}

// Calls implements Evaluator: a sentence that cites nothing is not asked about. Where
// single citations count, each may be asked about alone, and then without it the others.
func (e *citing) Calls() Calls {
	each := 1
	if e.precise {
		each += 2 * mostCitations
	}
	return Calls{Max: each * e.settings.MaxClaims * e.settings.Orders}
}

func once() Calls { return Calls{Min: 1, Max: 1} }

func textCalls(n int) Calls {
	return Calls{Min: n, Max: draftTries * n, MinTexts: n, MaxTexts: draftTries * n}
}

// calls are those about one text.
func (q claimQuestions) calls() Calls {
	c := Calls{Min: 1, Max: q.most}.times(q.orders)
	switch {
	case q.batched:
		return once()
	case q.extracted:
		return c.plus(textCalls(1))
	}
	return c
}
