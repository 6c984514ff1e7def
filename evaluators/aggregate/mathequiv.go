package aggregate

import (
	"math/big"
	"regexp"
	"strconv"
	"strings"
	"unicode"
)

func mathMetrics() []Metric {
	type pair struct {
		A    *string `json:"a"`
		B    *string `json:"b"`
		Gold *string `json:"gold"`
		Pred *string `json:"pred"`
	}
	return []Metric{metric("math_equiv", "whether two mathematical answers are the same", []string{"math_verify", "hendrycks"},
		func(dialect string, a pair) (Value, error) {
			if dialect == "hendrycks" {
				return Value{V: hendrycksEqual(a.A, a.B)}, nil
			}
			if a.Gold == nil || a.Pred == nil {
				return Value{V: false}, nil
			}
			return Value{V: MathEquivalent(*a.Gold, *a.Pred)}, nil
		})}
}

// MathEquivalent reports whether an answer is the number, or the expression, of the
// reference. Numbers are compared exactly: 0.5 is 1/2 and \frac{1}{2}. What cannot be
// read is equal to nothing.
func MathEquivalent(gold, pred string) bool {
	if strings.Contains(gold, "$") && strings.Contains(pred, "$") {
		g, okG := lastFormula(gold)
		p, okP := lastFormula(pred)
		if !okG || !okP {
			return false
		}
		x, isX := parseRational(g)
		y, isY := parseRational(p)
		if isX || isY {
			return isX && isY && x.Cmp(y) == 0
		}
		return g != "" && normalMath(g) == normalMath(p)
	}
	x, okX := lastRational(gold)
	y, okY := lastRational(pred)
	return okX && okY && x.Cmp(y) == 0
}

// lastFormula is the last $...$ on one line, without a name and equals sign before it.
func lastFormula(text string) (string, bool) {
	all := regexp.MustCompile(`\$([^$\n]+)\$`).FindAllStringSubmatch(text, -1)
	if len(all) == 0 {
		return "", false
	}
	formula := strings.TrimSpace(all[len(all)-1][1])
	return regexp.MustCompile(`^[A-Za-z]\s*=\s*`).ReplaceAllString(formula, ""), true
}

const (
	decimalPattern  = `(?:\d{1,3}(?:[, ]\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?|\.\d+)`
	rationalPattern = `(?:(-)\s*)?(?:\\[dt]?frac\s*\{\s*(-?` + decimalPattern + `)\s*\}\s*\{\s*(-?` + decimalPattern + `)\s*\}|(` + decimalPattern + `)(?:\s*/\s*(` + decimalPattern + `))?)(\s*\\?%|\s*percent\b)?`
	mostDigits      = 1000 // of a number that is read at all
)

// parseRational reads a text that is a number and nothing else.
func parseRational(text string) (*big.Rat, bool) {
	m := regexp.MustCompile(`^\s*` + rationalPattern + `\s*$`).FindStringSubmatch(text)
	if m == nil {
		return nil, false
	}
	return rationalOf(m)
}

// lastRational reads the last number of a text that is not part of a word.
func lastRational(text string) (*big.Rat, bool) {
	re := regexp.MustCompile(rationalPattern)
	all := re.FindAllStringSubmatchIndex(text, -1)
	for i := len(all) - 1; i >= 0; i-- {
		at := all[i]
		before, _ := lastRune(text[:at[0]])
		next, _ := firstRune(text[at[1]:])
		if unicode.IsLetter(before) || unicode.IsNumber(before) || unicode.IsLetter(next) || unicode.IsNumber(next) {
			continue
		}
		m := make([]string, len(at)/2)
		for k := range m {
			if at[2*k] >= 0 {
				m[k] = text[at[2*k]:at[2*k+1]]
			}
		}
		return rationalOf(m)
	}
	return nil, false
}

func rationalOf(m []string) (*big.Rat, bool) {
	if len(m[0]) > mostDigits {
		return nil, false
	}
	parse := func(s string) (*big.Rat, bool) {
		return new(big.Rat).SetString(strings.NewReplacer(",", "", " ", "").Replace(s))
	}
	top, bottom := m[2], m[3]
	if top == "" {
		top, bottom = m[4], m[5]
	}
	v, ok := parse(top)
	if !ok {
		return nil, false
	}
	if bottom != "" {
		d, ok := parse(bottom)
		if !ok || d.Sign() == 0 {
			return nil, false
		}
		v.Quo(v, d)
	}
	if m[1] == "-" {
		v.Neg(v)
	}
	if m[6] != "" {
		v.Quo(v, big.NewRat(100, 1))
	}
	return v, true
}

// hendrycksEqual compares two answers of the MATH set after rewriting some of LaTeX's
// spellings. Nothing is evaluated: 1,000 is not 1000, 2/4 is not 1/2.
func hendrycksEqual(a, b *string) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	return normalMath(*a) == normalMath(*b)
}

// normalMath rewrites, in this order.
func normalMath(s string) string {
	for _, r := range [][2]string{
		{"\n", ""}, {`\!`, ""}, {`\\`, `\`}, {"tfrac", "frac"}, {"dfrac", "frac"}, {`\left`, ""}, {`\right`, ""},
		{`^{\circ}`, ""}, {`^\circ`, ""}, {`\$`, ""},
	} {
		s = strings.ReplaceAll(s, r[0], r[1])
	}
	s, _, _ = strings.Cut(s, `\text{ `) // a unit
	for _, r := range [][2]string{{`\%`, ""}, {" .", " 0."}, {"{.", "{0."}} {
		s = strings.ReplaceAll(s, r[0], r[1])
	}
	if strings.HasPrefix(s, ".") {
		s = "0" + s
	}
	if left, right, ok := strings.Cut(s, "="); ok && len(left) <= 2 && !strings.Contains(right, "=") {
		s = right
	}
	s = bracedRoots(s)
	s = strings.ReplaceAll(s, " ", "")
	s = bracedFractions(s)
	if s == "0.5" {
		return `\frac{1}{2}`
	}
	return slashFraction(s)
}

// bracedRoots makes \sqrt3 \sqrt{3}.
func bracedRoots(s string) string {
	parts := strings.Split(s, `\sqrt`)
	for i, p := range parts[1:] {
		if r, n := firstRune(p); n > 0 && r != '{' {
			parts[i+1] = "{" + p[:n] + "}" + p[n:]
		}
	}
	return strings.Join(parts, `\sqrt`)
}

// bracedFractions makes \frac12 \frac{1}{2} and \frac1{72} \frac{1}{72}. A \frac with
// less than two characters after it leaves all as it is.
func bracedFractions(s string) string {
	parts := strings.Split(s, `\frac`)
	for i, p := range parts[1:] {
		if strings.HasPrefix(p, "{") {
			continue
		}
		top, n := firstRune(p)
		bottom, m := firstRune(p[n:])
		if n == 0 || m == 0 {
			return s
		}
		parts[i+1] = "{" + string(top) + "}"
		if bottom == '{' {
			parts[i+1] += p[n:]
		} else {
			parts[i+1] += "{" + string(bottom) + "}" + p[n+m:]
		}
	}
	return strings.Join(parts, `\frac`)
}

// slashFraction makes 3/4 of whole numbers \frac{3}{4}.
func slashFraction(s string) string {
	top, bottom, ok := strings.Cut(s, "/")
	if !ok {
		return s
	}
	a, errA := strconv.Atoi(top)
	b, errB := strconv.Atoi(bottom)
	if errA != nil || errB != nil || strconv.Itoa(a) != top || strconv.Itoa(b) != bottom {
		return s
	}
	return `\frac{` + top + "}{" + bottom + "}"
}
