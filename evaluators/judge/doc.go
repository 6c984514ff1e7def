// Package judge asks questions and gets distributions back.
//
// A Judge is anything that answers a Question with probabilities over its options.
// Backends live in sub-packages (openai, embedded, simulated); behaviour around a
// judge is a wrapper with the judge's own method. Outermost first they stand: Cache,
// Voting (where the judge votes), Retry, Budget, Breaker, Limiter, backend. Retry stands
// outside the rest so that every try is paid for and limited, and a pause holds no slot.
//
// Two kinds of questions are answered with something else: Text, with what the model
// writes, and Vector, with a text's embedding. They go the same way, so that they are
// limited, paid for and kept like any other; a judge that cannot refuses them.
//
// A judge never invents an answer: what cannot be used is an error, and its type
// says what may be done about it (errors.go). It knows nothing of interactions,
// checks or tables. evaluators lays out the questions; cmd/assay stacks the wrappers.
//
// The cache shares one answer among equal questions, also among those in flight at
// the same time. A day's budget is reserved before a question is sent and settled
// after, so that concurrent questions cannot pass it together. A Meter stands next to
// the backend and counts what was really sent.
//
// Open judge.go first, then errors.go; the example shows the whole stack.
package judge
