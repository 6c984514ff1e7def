// Package evaluators judges one interaction: it lays out a question, has a judge
// answer it, and maps the answer to score, option, confidence and verdict.
//
// Two evaluators exist: closed_qa (does the output meet the criteria, yes or no) and
// factuality (how do the output's facts relate to an expert's). Each has one file
// with its wording, its options and the fields it needs; everything they share is in
// evaluate.go. Table lists them with their settings; validation, the API's listing
// and the docs are written from it.
//
// It promises that every result has exactly one status, that score and passed are
// there if and only if the status is ok, and that no failure turns into a number.
// Which items an evaluator takes is decided by Applicable, which needs neither judge
// nor network: callers ask it before they sample, so that what cannot be judged is
// counted on all of the traffic. A cancelled context is no result: Evaluate returns
// it as an error, and the item stays unresolved.
//
// It does not retry, limit or pay; the judge it is given does. It keeps no state.
//
// Open evaluator.go first, then evaluate.go, measure.go (answer to numbers) and
// outcome.go (error to status).
package evaluators
