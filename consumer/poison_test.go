package consumer

import "testing"

func TestTheBreakerTellsABrokenSchemaFromBrokenRecords(t *testing.T) {
	f := func(ratio float64, pattern func(i int) bool, n int, wantAt int) {
		t.Helper()
		p := &poison{max: ratio}
		at := -1
		for i := range n {
			if p.observe(pattern(i)) {
				if at >= 0 {
					t.Fatalf("tripped twice, at %d and %d", at, i)
				}
				at = i
			}
		}
		if at != wantAt {
			t.Errorf("tripped at %d, want %d", at, wantAt)
		}
	}
	all := func(int) bool { return true }
	every := func(n int) func(int) bool { return func(i int) bool { return i%n == n-1 } }
	f(.2, all, 1000, 19)          // not before 20 dead ones
	f(.2, every(10), 5000, -1)    // a tenth is no schema break
	f(.2, every(5), 5000, -1)     // exactly the ratio is allowed
	f(.2, every(4), 5000, 4*20-1) // a quarter is not
	f(1, all, 5000, -1)
	// 999 good ones first: the window remembers them
	f(.2, func(i int) bool { return i >= 1000 }, 3000, 1000+200)
}

func TestAMendedSchemaBeginsWithAFreshCount(t *testing.T) {
	p := &poison{max: .2}
	for range 20 {
		p.observe(true)
	}
	if !p.isTripped() {
		t.Fatal("20 of 20 dead and not tripped")
	}
	p.reset(false)
	for range 19 {
		if p.observe(true) {
			t.Fatal("tripped on old counts")
		}
	}
	if !p.observe(true) {
		t.Fatal("does not trip again")
	}
	p.reset(true)
	for range 500 {
		if p.observe(true) {
			t.Fatal("tripped although all of it may go")
		}
	}
}
