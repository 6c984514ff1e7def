//go:build !race

package aggregate_test

// large is the size of the texts that tests of bounded time use.
const large = 1 << 20
