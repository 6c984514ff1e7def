// Package interaction is the record that Assay judges, and the Kafka record it came in.
//
// It holds types and the few rules that every room must share (what a blank text
// is, how a slice is named). It does no I/O, keeps no state and imports nothing of
// ours. Everyone may import it.
//
// Open interaction.go first; record.go is what the consumer hands over, slice.go
// is how dimensions name a part of the traffic.
package interaction
