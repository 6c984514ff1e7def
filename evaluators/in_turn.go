package evaluators

import (
	"fmt"
	"sync"

	"golang.org/x/sync/errgroup"
)

// claimsAtOnce is how many claims of one item are asked at a time.
const claimsAtOnce = 4

// inTurn calls f for 0 to n-1: first alone, which fills the provider's cache of what
// the questions share and finds a judge that answers nothing, then several at a time.
// Once f returned false no further call is begun.
func inTurn(n int, f func(i int) bool) {
	if n == 0 || !f(0) {
		return
	}
	var (
		g        errgroup.Group
		mu       sync.Mutex // guards the two below
		stopped  bool
		panicked any
	)
	g.SetLimit(claimsAtOnce)
	for i := 1; i < n; i++ {
		g.Go(func() error {
			// The caller lives through a panic of its own goroutine; here it
			// would end the process.
			defer func() {
				if v := recover(); v != nil {
					mu.Lock()
					panicked, stopped = v, true
					mu.Unlock()
				}
			}()
			mu.Lock()
			skip := stopped
			mu.Unlock()
			if skip || f(i) {
				return nil
			}
			mu.Lock()
			stopped = true
			mu.Unlock()
			return nil
		})
	}
	_ = g.Wait() // f has no error
	if panicked != nil {
		panic(fmt.Sprintf("judging a claim: %v", panicked))
	}
}
