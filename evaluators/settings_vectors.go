package evaluators

// settleVectors checks the settings of evaluators by embeddings and fills in their
// defaults.
func settleVectors(s *Settings, spec Spec, fault func(format string, args ...any)) {
	byQuestions := spec.takes("questions") && (s.Dialect == dialectRagas || s.Dialect == dialectAutoevals)
	switch {
	case !spec.takes("questions") && s.Questions != 0:
		fault("questions: this evaluator has none written")
	case !byQuestions && s.Questions != 0:
		fault("questions: only dialects %s and %s have them written", dialectRagas, dialectAutoevals)
	case s.Questions < 0 || s.Questions > mostDrafts:
		fault("questions: %d: want 1 to %d", s.Questions, mostDrafts)
	case byQuestions && s.Questions == 0:
		s.Questions = defaultDrafts
	}
	if s.Orders == 2 && (byQuestions || spec.takes("dialect") && !spec.takes("similarity") && s.Dialect == dialectEmbeddings) {
		fault("orders: 2: dialect %s has no options to order", s.Dialect)
	}
}
