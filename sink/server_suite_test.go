//go:build !race

// Under the race detector the same tests run against the embedded engine only: their code
// is the same, and the time is not.

package sink

import (
	"context"
	"net/url"
	"os"
	osexec "os/exec"
	"strings"
	"testing"
	"time"

	"assay/internal/testkit"
)

// notOnAServer are the tests that do something to the embedded engine or to the wire
// before it, and those that run others.
const notOnAServer = "^(TestThePackageHoldsOnAServer|TestAServerIsReachedByEveryWay|TestAWrongSetting.*|TestAnOldServer.*|TestTheDocumentedRights.*|TestRowsAreStoredOnce.*|TestRowsAreSeenOnceWhenAStored.*|" +
	"TestAKilledEngine.*|TestTheServersTimeZone.*|TestOpenSaysWhereItTried.*)$"

// heavy is what is left out of the second protocol: many rows, for the encoder's sake.
const heavy = "|^TestRowsInsertedShuffled.*$"

// Everything that the package's tests say of the embedded engine, they say of a server
// too, over both of its protocols: each runs them all in a process of its own.
func TestThePackageHoldsOnAServer(t *testing.T) {
	s := testkit.StartClickHouse(t, testkit.ClickHouseServerOptions{})
	t.Run("group", func(t *testing.T) { // ends when both have, so that the server outlives them
		for protocol, way := range map[string]struct{ addr, skip string }{"native": {s.Native, notOnAServer}, "http": {s.HTTP, notOnAServer + heavy}} {
			t.Run(protocol, func(t *testing.T) {
				t.Parallel()
				server := url.URL{Scheme: protocol, Host: way.addr, User: url.UserPassword(testkit.ClickHouseUser, testkit.ClickHousePassword)}
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
				defer cancel()
				run := osexec.CommandContext(ctx, os.Args[0], "-test.v", "-test.skip="+way.skip)
				run.Env = append(os.Environ(), testServer+"="+server.String())
				out, err := run.CombinedOutput()
				if err != nil {
					t.Fatalf("on ClickHouse %s over %s: %v\n%s", s.Version, protocol, err, failures(string(out)))
				}
				passed := strings.Count(string(out), "\n--- PASS: ")
				t.Logf("ClickHouse %s over %s: %d tests", s.Version, protocol, passed)
				if !strings.Contains(string(out), "--- PASS: TestRowsComeBackAsTheyWereStored") {
					t.Errorf("the test of all rows is not among the %d that ran", passed)
				}
			})
		}
	})
}

// failures leaves out what passed.
func failures(out string) string {
	var b strings.Builder
	for line := range strings.Lines(out) {
		if !strings.HasPrefix(line, "=== ") && !strings.HasPrefix(strings.TrimSpace(line), "--- PASS") {
			b.WriteString(line)
		}
	}
	return b.String()
}
