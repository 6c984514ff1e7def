// Package testkit gives tests real engines: no pretend Kafka or ClickHouse where
// the engine is at hand.
//
// ClickHouse returns a fresh database on an embedded ClickHouse that the tests of
// one package share. Main must run them, so that the engine ends with the last
// test. Imported by tests only.
package testkit
