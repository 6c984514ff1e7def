package judge

// VectorQuestion asks for the embedding of a text. Equal texts are one question, so that
// with one judge, whose fingerprint has the embedding model in it, a text is embedded
// once.
func VectorQuestion(text string) Question {
	return Question{Name: "vector/1", Kind: Vector, Fields: []Field{{Name: "text", Value: text}}}
}
