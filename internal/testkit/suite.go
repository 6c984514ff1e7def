package testkit

import (
	"fmt"
	"os"
	"testing"
)

// A Suite is a package's tests with engines that live until the last of them.
type Suite struct{ m *testing.M }

// Engines keeps the engines from test to test: without it each test that uses
// one alone starts it anew. For TestMain:
//
//	func TestMain(m *testing.M) { goleak.VerifyTestMain(testkit.Engines(m)) }
func Engines(m *testing.M) *Suite { return &Suite{m} }

// Run runs the tests and ends the engines, before anyone looks for leaks.
func (s *Suite) Run() int {
	clickHouse.hold()
	code := s.m.Run()
	if err := clickHouse.release(); err != nil {
		fmt.Fprintln(os.Stderr, "the embedded ClickHouse did not end well:", err)
		return max(code, 1)
	}
	return code
}
