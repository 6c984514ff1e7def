// Command trainjudge fits the embedded judge and states how well it agrees with people.
//
//	go run ./bench/trainjudge -data EVOUNA__NQ.json -out evaluators/judge/embedded/weights.json
//
// The data is EVOUNA (Apache-2.0): questions, five assistants' answers, people's
// verdicts. It stays where it is; the weights file keeps its hash. Three kinds of
// rows train one model: the data's own references; sentences, that is another
// assistant's approved answer as the reference; and traps made by code. A tenth of
// the questions is held out from weights and word frequencies alike, and only those
// give the figures. -cv cross-validates within the rest: every choice of feature and
// setting is to be made by it.
//
// The same data gives the same file, byte for byte: rows, folds and templates are
// chosen by hash, sums run in one order, numbers keep six digits, and no clock is read.
//
// Open train.go first, then data.go and traps.go (rows), fit.go, measure.go.
package main
