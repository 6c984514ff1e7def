// Package chdb runs an embedded ClickHouse: a child process (cmd/assay-chdb)
// that loads libchdb.so and answers ClickHouse's HTTP interface on a loopback
// port. The sink talks to it with the client code it uses for any server.
//
// It promises that the address and the token stay the same while Run lasts, that
// a child that dies is started again on the same port, that no child outlives
// its parent, and that a directory is never opened by two processes or by an
// older engine than the one that wrote it. It is for the first run, tests and
// reports, not for production: one process, no users, no clusters, and no promise
// through a power cut.
//
// Open child.go first (the child's life), then find.go and install.go (where the
// library and the binary come from), datadir.go (what lies in the data
// directory), version.go (what is pinned). cmd/assay and the tests call it.
package chdb
