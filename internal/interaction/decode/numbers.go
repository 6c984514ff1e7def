package decode

import (
	"math"
	"strconv"
	"strings"
	"time"
)

const (
	maxTokens    = 1e9
	maxLatencyMS = 1e10 // 115 days: longer is a clock, not a latency
)

// count reads a number of tokens. A number that cannot be one is absent and flagged;
// it never costs the record.
func (e *element) count(v value, name string) *int64 {
	f, ok := e.number(v, name)
	if !ok {
		return nil
	}
	if f < 0 || f > maxTokens {
		e.flag("bad_number:" + name)
		return nil
	}
	n := int64(f)
	return &n
}

// latency reads a duration in milliseconds; unit is what a bare number counts.
func (e *element) latency(v value, unit time.Duration) *float64 {
	const name = "latency_ms"
	ms := 0.0
	if v.isString() {
		// A Go duration says its unit itself.
		if d, err := time.ParseDuration(strings.TrimSpace(e.str(v))); err == nil && d != 0 {
			e.flag("coerced_numbers")
			ms = float64(d) / float64(time.Millisecond)
			return e.bounded(ms, name)
		}
	}
	f, ok := e.number(v, name)
	if !ok {
		return nil
	}
	return e.bounded(f*float64(unit)/float64(time.Millisecond), name)
}

func (e *element) bounded(ms float64, name string) *float64 {
	if ms < 0 || ms > maxLatencyMS {
		e.flag("bad_number:" + name)
		return nil
	}
	// Finer than a microsecond is the noise of a conversion.
	ms = math.Round(ms*1000) / 1000
	return &ms
}

// number reads a finite number, also one written as text or with thousands commas.
func (e *element) number(v value, name string) (float64, bool) {
	if v.absent() {
		return 0, false
	}
	text := string(v)
	if v.isString() {
		text = strings.TrimSpace(e.str(v))
		if text == "" {
			return 0, false
		}
		text = strings.ReplaceAll(text, ",", "")
	} else if !v.isNumber() {
		e.flag("bad_number:" + name)
		return 0, false
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(f) || math.IsInf(f, 0) {
		e.flag("bad_number:" + name)
		return 0, false
	}
	if v.isString() {
		e.flag("coerced_numbers")
	}
	return f, true
}
