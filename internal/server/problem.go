package server

import (
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/agnivade/levenshtein"
	"github.com/danielgtaylor/huma/v2"
)

// maxFaults is how many faults of a request are listed: the first ones help, and a
// thousand items may all have the same.
const maxFaults = 20

// faults collects what is wrong with a request, each with its place.
type faults struct {
	list []error
	more int
}

func (f *faults) add(location, format string, args ...any) {
	if len(f.list) == maxFaults {
		f.more++
		return
	}
	f.list = append(f.list, &huma.ErrorDetail{Location: location, Message: fmt.Sprintf(format, args...)})
}

// problem is nil without faults. Its detail is the first one, so that a reader of
// nothing but the detail knows what to do next.
func (f *faults) problem() error {
	if len(f.list) == 0 {
		return nil
	}
	first := f.list[0].(*huma.ErrorDetail)
	detail := first.Message
	if first.Location != "" {
		detail = first.Location + ": " + detail
	}
	if n := len(f.list) - 1 + f.more; n > 0 {
		detail += fmt.Sprintf(" (and %d more)", n)
	}
	return huma.Error400BadRequest(detail, f.list...)
}

// later is err with the header that says when to come again.
func later(err error, after time.Duration) error {
	if after <= 0 {
		return err
	}
	return huma.ErrorWithHeaders(err, http.Header{"Retry-After": {strconv.Itoa(int(math.Ceil(after.Seconds())))}})
}

// writeProblem is for what is refused before it reaches the API.
func writeProblem(w http.ResponseWriter, status int, detail string) {
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(status)
	// A client that has gone needs no answer.
	_ = json.NewEncoder(w).Encode(huma.ErrorModel{Title: http.StatusText(status), Status: status, Detail: detail})
}

// didYouMean names the nearest of the known names, if one is near.
func didYouMean(name string, known []string) string {
	if len(name) > 100 { // far from every name, and long to compare
		return ""
	}
	best, distance := "", 1+len(name)/2
	for _, k := range known {
		if d := levenshtein.ComputeDistance(strings.ToLower(name), strings.ToLower(k)); d < distance {
			best, distance = k, d
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf(" (did you mean %s?)", best)
}

func quoted(name string) string {
	const most = 64
	if r := []rune(name); len(r) > most {
		name = string(r[:most]) + "…"
	}
	return strconv.Quote(name)
}
