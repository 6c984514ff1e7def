// Package simulated is a judge whose mistakes are known: it is told the right option
// and answers with a stated confusion and noise. It is for the demo and for tests.
//
// It promises that the same question gets the same answer from every judge with the
// same Config, that it chooses the options with the stated probabilities over many
// questions, and that its answers say what they are (method simulated, model
// simulated/1). A question whose truth it does not know comes back as unusable, never
// as a guess. It starts no goroutines and keeps no state.
//
// Config says what it knows and how it errs; Judge.Ask is all there is to call.
package simulated
