// Package evaluators judges one interaction: it lays out questions, has a judge answer
// them, and maps the answers to score, option, confidence and verdict. Some evaluators
// ask nobody: they compute from the item alone.
//
// Each evaluator has one file, with its wording, its options and the fields it needs.
// Most ask one question (judged, in evaluate.go). Those over claims take the output
// apart in code and ask the one question of claim_supported about each sentence
// (sentences.go, claim_questions.go), so that several of them share answers; where the
// settings say so the judge lists the claims (extracted.go). Those by embeddings have
// questions written (draft.go) and compare vectors (vectors.go). Those that compute
// are in rule.go. Table lists all with their settings; validation, the API's listing
// and the docs are written from it.
//
// It promises that every result has exactly one status, that score and passed are
// there if and only if the status is ok, and that no failure turns into a number: a
// claim without an answer leaves the whole result without one. Which items an
// evaluator takes is decided by Applicable, which needs neither judge nor network:
// callers ask it before they sample, so that what cannot be judged is counted on all
// of the traffic. A cancelled context is no result: Evaluate returns it as an error,
// and the item stays unresolved.
//
// It does not retry, limit or pay; the judge it is given does. It keeps no state.
//
// Open evaluator.go first, then evaluate.go, measure.go (answer to numbers) and
// outcome.go (error to status).
package evaluators
