package decode

import (
	"math"
	"math/big"
	"strconv"
	"strings"
	"time"
)

// earliest is before any log of a language model; a time before it is a zero or a
// broken unit.
var earliest = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

// ahead is how far a producer's clock may run before the log's.
const ahead = 24 * time.Hour

// setTime takes the start of the request from the record, else from the provider,
// else from the log. A time that cannot be is the log's, flagged.
func (e *element) setTime(own, provider value) {
	log := e.r.rec.Time
	for i, v := range []value{own, e.r.event.time, provider} {
		t, zone, ok := e.instant(v)
		if !ok {
			continue
		}
		if t.Before(earliest) || !log.Before(earliest) && t.After(log.Add(ahead)) {
			e.it.Time = log
			e.flag("time_from:kafka")
			e.flag("time_out_of_range")
			return
		}
		e.it.Time = t
		if !zone {
			e.flag("time_no_zone")
		}
		if i == 2 {
			e.flag("time_from:response.created")
		}
		return
	}
	e.it.Time = log
	e.flag("time_from:kafka")
}

// instant reads a time, in UTC. zone is false for a text that names none.
func (e *element) instant(v value) (t time.Time, zone, ok bool) {
	switch {
	case v.isNumber():
		t, ok = unixTime(string(v))
		return t, true, ok
	case v.isObject(): // {"$date": ...}
		return e.instant(v.member("$date"))
	case !v.isString():
		return time.Time{}, false, false
	}
	text := strings.TrimSpace(e.str(v))
	if t, ok := unixTime(text); ok {
		return t, true, true
	}
	return textTime(text)
}

// unixTime reads a number since 1970, its unit by magnitude, its digits exactly.
func unixTime(text string) (time.Time, bool) {
	if text == "" || len(text) > 64 || strings.ContainsAny(text, "xX_pPnNiI/:TZ") {
		return time.Time{}, false
	}
	if _, exponent, ok := strings.Cut(strings.ToLower(text), "e"); ok {
		// A far exponent would make the exact number enormous.
		if n, err := strconv.Atoi(exponent); err != nil || n > 30 || n < -30 {
			return time.Time{}, false
		}
	}
	if n, ok := shortDigits(text); ok { // nearly all are, and exact numbers cost
		if unit := int64(unitOf(float64(n))); n <= math.MaxInt64/unit {
			return time.Unix(0, n*unit).UTC(), true
		}
		return farAhead(), true
	}
	if t, ok := shortSeconds(text); ok {
		return t, true
	}
	n, ok := new(big.Rat).SetString(text)
	if !ok {
		return time.Time{}, false
	}
	f, _ := n.Float64()
	n.Mul(n, new(big.Rat).SetInt64(int64(unitOf(f))))
	ns := new(big.Int).Quo(n.Num(), n.Denom())
	if !ns.IsInt64() {
		return farAhead(), true
	}
	return time.Unix(0, ns.Int64()).UTC(), true
}

// unitOf is the unit of a number since 1970, by its magnitude.
func unitOf(f float64) time.Duration {
	switch {
	case f < 1e11:
		return time.Second
	case f < 1e14:
		return time.Millisecond
	case f < 1e17:
		return time.Microsecond
	}
	return time.Nanosecond
}

// farAhead stands for what is beyond the year 2262: a time, if not one that can be right.
func farAhead() time.Time { return time.Unix(1<<40, 0).UTC() }

// shortSeconds reads seconds with a fraction, as Python's clock writes them.
func shortSeconds(text string) (time.Time, bool) {
	whole, fraction, _ := strings.Cut(text, ".")
	if len(whole) > 10 || len(fraction) == 0 || len(fraction) > 9 {
		return time.Time{}, false
	}
	s, ok := shortDigits(whole)
	if !ok {
		return time.Time{}, false
	}
	ns := int64(0)
	for i := range 9 {
		digit := byte('0')
		if i < len(fraction) {
			digit = fraction[i]
		}
		if digit < '0' || digit > '9' {
			return time.Time{}, false
		}
		ns = ns*10 + int64(digit-'0')
	}
	if s > math.MaxInt64/int64(time.Second)-1 {
		return time.Time{}, false
	}
	return time.Unix(s, ns).UTC(), true
}

// shortDigits reads digits alone, as many as an int64 holds for certain.
func shortDigits(text string) (int64, bool) {
	if len(text) == 0 || len(text) > 18 || text[0] == '0' {
		return 0, false
	}
	n := int64(0)
	for i := range len(text) {
		c := text[i]
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + int64(c-'0')
	}
	return n, true
}

// textTime reads RFC 3339 and its near relatives: small letters, a space for the T, a
// comma for the point, a zone without colon or none, a leap second; and the mail and
// cookie forms.
func textTime(text string) (t time.Time, zone, ok bool) {
	if len(text) < 10 || len(text) > 64 {
		return time.Time{}, false, false
	}
	s := strings.ToUpper(text)
	s = strings.TrimSuffix(s, " UTC")
	named := len(s) != len(text)
	if len(s) > 10 && (s[10] == ' ' || s[10] == 'T') {
		s = s[:10] + "T" + strings.TrimSpace(s[11:])
	}
	leap := time.Duration(0)
	if len(s) >= 19 && s[16:19] == ":60" {
		s = s[:17] + "59" + s[19:]
		leap = time.Second
	}
	if i := strings.LastIndexByte(s, ' '); i > 10 { // "09:26:53 +01:00"
		s = s[:i] + s[i+1:]
	}
	for _, layout := range []string{"2006-01-02T15:04:05Z07:00", "2006-01-02T15:04:05Z0700", "2006-01-02T15:04:05Z07"} {
		if t, err := time.Parse(layout, s); err == nil {
			return t.Add(leap).UTC(), true, true
		}
	}
	for _, layout := range []string{"2006-01-02T15:04:05", "2006-01-02T15:04", "2006-01-02"} {
		if t, err := time.Parse(layout, s); err == nil {
			return t.Add(leap).UTC(), named, true
		}
	}
	for _, layout := range []string{time.RFC1123, time.RFC1123Z, time.RFC850} {
		if t, err := time.Parse(layout, text); err == nil {
			return t.UTC(), true, true
		}
	}
	return time.Time{}, false, false
}
