// Package testkit gives tests real engines: no pretend Kafka or ClickHouse where
// the engine is at hand.
//
// ClickHouse returns a fresh database on an embedded ClickHouse that the tests of
// one package share. Main must run them, so that the engine ends with the last
// test. StartClickHouse starts a server that listens as users' servers do, and
// StartOldClickHouse the one that `make clickhouse` installs. Kafka starts Apache Kafka brokers, with listeners that ask for names and
// certificates where a test wants them; `make kafka` installs what they need.
// StartPrometheus and StartAlertmanager run the programs that `make prometheus`
// installs, with a Webhook at the end of an alert's way. Imported by tests only.
package testkit
