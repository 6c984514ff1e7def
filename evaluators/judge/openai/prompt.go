package openai

import "assay/evaluators/judge"

// Prompt returns q as the model reads it; nothing for a vector, for which a text goes as
// it is. The mark of the fences is this process's.
func (j *Judge) Prompt(q judge.Question) []judge.Message {
	if q.Kind == judge.Vector {
		return nil
	}
	return []judge.Message{
		{Role: "system", Text: systemOf(q, j.cfg.Method)},
		{Role: "user", Text: newSheet(q).userText(j.cfg.Method, tag(j.tagKey, q))},
	}
}
