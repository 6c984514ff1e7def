package main

import (
	"cmp"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"os"
	"strconv"

	"assay/evaluators"
	"assay/evaluators/aggregate"
)

// JUnit's XML as CI servers read it: a suite for each evaluator with a case for each
// item, and one for the gates. An item that does not pass is a failure, one without an
// answer an error, one that is not applicable is skipped.
type junitReport struct {
	XMLName  xml.Name     `xml:"testsuites"`
	Name     string       `xml:"name,attr"`
	Tests    int          `xml:"tests,attr"`
	Failures int          `xml:"failures,attr"`
	Errors   int          `xml:"errors,attr"`
	Skipped  int          `xml:"skipped,attr"`
	Suites   []junitSuite `xml:"testsuite"`
}

type junitSuite struct {
	Name       string          `xml:"name,attr"`
	Tests      int             `xml:"tests,attr"`
	Failures   int             `xml:"failures,attr"`
	Errors     int             `xml:"errors,attr"`
	Skipped    int             `xml:"skipped,attr"`
	Time       string          `xml:"time,attr"`
	Properties []junitProperty `xml:"properties>property,omitempty"`
	Cases      []junitCase     `xml:"testcase"`
}

type junitProperty struct {
	Name  string `xml:"name,attr"`
	Value string `xml:"value,attr"`
}

type junitCase struct {
	Class   string       `xml:"classname,attr"`
	Name    string       `xml:"name,attr"`
	File    string       `xml:"file,attr,omitempty"`
	Line    int          `xml:"line,attr,omitempty"`
	Time    string       `xml:"time,attr"`
	Failure *junitReason `xml:"failure"`
	Error   *junitReason `xml:"error"`
	Skipped *junitReason `xml:"skipped"`
}

type junitReason struct {
	Message string `xml:"message,attr"`
	Type    string `xml:"type,attr,omitempty"`
	Text    string `xml:",chardata"`
}

// writeJUnit writes the report; input is the file that was judged.
func writeJUnit(path, input string, names []string, sums []aggregate.Summary, lines []lineResult, gates []heldGate) error {
	report := junitReport{Name: "assay evaluate"}
	for i, name := range names {
		s := junitSuite{Name: name, Properties: propertiesOf(sums[i])}
		ms := int64(0)
		seen := make(map[string]bool)
		for _, l := range resultsOf(name, lines) {
			c := caseOf(l, input)
			if seen[l.ID] { // CI servers show one of several cases of a name
				c.Name = fmt.Sprintf("%s (line %d)", l.ID, l.Line)
			}
			seen[l.ID] = true
			s.add(c)
			ms += l.LatencyMS
		}
		s.Time = xmlSeconds(ms)
		report.add(s)
	}
	if len(gates) > 0 {
		s := junitSuite{Name: "gates", Time: xmlSeconds(0)}
		for _, g := range gates {
			c := junitCase{Class: "gates", Name: g.evaluator + ": " + g.condition, Time: xmlSeconds(0)}
			if g.err != nil {
				c.Failure = &junitReason{Message: g.err.Error(), Type: "gate"}
			}
			s.add(c)
		}
		report.add(s)
	}
	raw, err := xml.MarshalIndent(report, "", "  ")
	if err != nil {
		return fmt.Errorf("--junit: %w", err)
	}
	if err := os.WriteFile(path, append([]byte(xml.Header), append(raw, '\n')...), 0o644); err != nil {
		return fmt.Errorf("--junit: %w", err)
	}
	return nil
}

func (r *junitReport) add(s junitSuite) {
	r.Suites = append(r.Suites, s)
	r.Tests, r.Failures, r.Errors, r.Skipped = r.Tests+s.Tests, r.Failures+s.Failures, r.Errors+s.Errors, r.Skipped+s.Skipped
}

func (s *junitSuite) add(c junitCase) {
	s.Cases = append(s.Cases, c)
	s.Tests++
	switch {
	case c.Failure != nil:
		s.Failures++
	case c.Error != nil:
		s.Errors++
	case c.Skipped != nil:
		s.Skipped++
	}
}

func caseOf(l lineResult, input string) junitCase {
	c := junitCase{Class: l.Evaluator, Name: l.ID, File: input, Line: l.Line, Time: xmlSeconds(l.LatencyMS)}
	switch {
	case l.Status == evaluators.NotApplicable:
		c.Skipped = &junitReason{Message: l.Reason}
	case !scored(l):
		c.Error = &junitReason{Message: l.Reason, Type: string(l.Status), Text: detailText(l)}
	case !*l.Passed:
		c.Failure = &junitReason{Message: fmt.Sprintf("%s, score %s", cmp.Or(l.Label, "not passed"), xmlNumber(*l.Score)), Type: "not passed", Text: detailText(l)}
	}
	return c
}

func detailText(l lineResult) string {
	raw, err := json.Marshal(map[string]any{"probabilities": l.Probabilities, "detail": l.Detail})
	if err != nil {
		return err.Error()
	}
	return string(raw)
}

func propertiesOf(s aggregate.Summary) []junitProperty {
	p := []junitProperty{{"missing_share", xmlNumber(s.Missing)}, {"usd", xmlNumber(s.Usage.USD)}}
	if r := s.PassRate; r != nil {
		p = append(p, junitProperty{passRate, xmlNumber(r.Value)}, junitProperty{"pass_rate_lower", xmlNumber(r.Lower)}, junitProperty{"pass_rate_upper", xmlNumber(r.Upper)})
	}
	if s.MeanScore != nil {
		p = append(p, junitProperty{meanScore, xmlNumber(*s.MeanScore)})
	}
	return p
}

func xmlNumber(v float64) string { return strconv.FormatFloat(v, 'g', 6, 64) }

func xmlSeconds(ms int64) string { return strconv.FormatFloat(float64(ms)/1000, 'f', 3, 64) }
