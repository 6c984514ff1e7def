// Package demo is what `assay demo` adds to the product: a Kafka in process and a
// simulated support assistant whose every answer is known to be good, partial or
// wrong.
//
// A Bank holds the questions of an invented shop with references, criteria and
// answers of each class. A Simulator turns it into a day of logged traffic: the same
// options give the same bytes, on every machine. A Tally keeps what was really true,
// so that an estimate can be put beside it. The package promises that the class
// shares are the ones of Simulator.Quality and that Bank.Grade finds the class of
// every simulated answer again. It judges nothing and estimates nothing.
//
// Only cmd/assay, testkit and bench use it. Open simulator.go first (Options, the
// stream of events), then quality.go (how good the answers are, in one table),
// record.go (what a log line looks like), bank.go and bank/*.yaml (what is asked and
// answered), tally.go (the truth), play.go (the pace), kafka.go (the broker).
package demo
