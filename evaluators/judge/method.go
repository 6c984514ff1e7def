package judge

import (
	"fmt"
	"strconv"
	"strings"
)

// Votes of a question, as a judge by votes may be configured.
const (
	DefaultVotes = 5
	FewestVotes  = 2
	MostVotes    = 25
)

// ParseMethod reads a method that asks a language model, as the checks file names it:
// logprobs, structured, votes:N, or votes for votes:5. votes is 1 for the others.
func ParseMethod(s string) (m Method, votes int, err error) {
	name, number, counted := strings.Cut(s, ":")
	switch {
	case s == string(Logprobs), s == string(Structured):
		return Method(s), 1, nil
	case s == string(Votes):
		return Votes, DefaultVotes, nil
	case name == string(Votes) && counted:
		n, err := strconv.Atoi(number)
		if err != nil || n < FewestVotes || n > MostVotes || number != strconv.Itoa(n) {
			return "", 0, fmt.Errorf("method %q: want votes:%d to votes:%d", s, FewestVotes, MostVotes)
		}
		return Votes, n, nil
	}
	return "", 0, fmt.Errorf("method %q: want logprobs, structured or votes:%d", s, DefaultVotes)
}
