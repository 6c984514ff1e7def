// Package engine serves ClickHouse's HTTP interface from libchdb.so, the whole
// ClickHouse as a shared library loaded without cgo.
//
// It promises what the ClickHouse driver needs: statements, settings and query
// parameters from the URL, streaming INSERT ... FORMAT, exception codes with a
// server's HTTP status, answers in the protocol revision the client asks for,
// and an error instead of a short answer. Each statement's settings end with it.
// It listens on loopback only, knows one token and neither users nor sessions,
// and does not compress.
//
// Not promised: the native protocol, clusters, several processes on one
// directory, durability through a power cut.
//
// Open front.go first (one request), then lanes.go (who waits for whom), sql.go
// (where settings go in a text), native.go (the answer's revision) and
// library.go (the C functions). Only cmd/assay-chdb may import this package: it
// makes a binary depend on the machine's C library.
package engine
