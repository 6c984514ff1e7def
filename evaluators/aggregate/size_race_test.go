//go:build race

package aggregate_test

// The race detector makes the same work many times slower, and finds nothing in it.
const large = 1 << 14
