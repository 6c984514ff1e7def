package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"
)

func (a *app) printSamples(samples []*topicSample) error {
	if a.json {
		return a.printJSON(samples)
	}
	var b strings.Builder
	for _, s := range samples {
		s.write(&b)
	}
	_, err := io.WriteString(a.out, b.String())
	return err
}

func (s *topicSample) write(b *strings.Builder) {
	fmt.Fprintf(b, "topic %s: ", s.Topic)
	if s.Records == 0 {
		b.WriteString("no records\n")
		return
	}
	fmt.Fprintf(b, "the %d newest records, %s to %s (%.1f/s)\n", s.Records, s.From.UTC().Format(time.DateTime), s.To.UTC().Format(time.DateTime), s.PerSecond)
	for _, f := range s.Formats {
		fmt.Fprintf(b, "  %-28s %6d records", f.Format, f.Records)
		if f.Envelope != "none" {
			fmt.Fprintf(b, " in %s", f.Envelope)
		}
		b.WriteByte('\n')
	}
	counts(b, "skipped", s.Skips, s.Records)
	counts(b, "dead letters", s.Bad, s.Records)
	if s.BadExample != "" {
		fmt.Fprintf(b, "    such as %s\n", oneLine(s.BadExample))
	}
	if s.Scores > 0 {
		fmt.Fprintf(b, "  %d scores about other interactions\n", s.Scores)
	}
	if s.Joined > 0 || s.Unjoined > 0 {
		fmt.Fprintf(b, "  halves: %d joined, %d without their other half in this sample\n", s.Joined, s.Unjoined)
	}
	fmt.Fprintf(b, "  interactions: %d, judgeable %s, without text %s\n", s.Interactions, of(s.Judgeable, s.Interactions), of(s.WithoutText, s.Interactions))
	counts(b, "not judgeable", s.NotJudged, s.Interactions)
	for _, hint := range s.TextSwitches {
		fmt.Fprintf(b, "  fix: to have text logged by %s\n", hint)
	}
	for _, c := range s.Checks {
		asked := s.Interactions - c.Filtered
		fmt.Fprintf(b, "  check %s: could judge %s of those its filter lets through (%d of %d), would judge %d\n", c.Check, of(c.CanJudge, asked), asked, s.Interactions, c.Selected)
		counts(b, "  cannot, because", c.Why, asked)
	}
	for _, u := range s.Unmatched {
		fmt.Fprintf(b, "  fields: %s matched nothing in this sample; fix: compare it with `assay decode`, or remove it\n", u)
	}
	if l := s.Load; l != nil {
		fmt.Fprintf(b, "  load: %.2f records/s would be judged, %.2f s each: %.1f unresolved at a time of a window of %d a partition\n",
			l.SelectedPerSecond, l.JudgementSeconds, l.Unresolved, l.Window)
	}
	for i, e := range s.Examples {
		fmt.Fprintf(b, "  example %d\n", i+1)
		writeFields(b, e)
	}
}

// counts writes how often each reason stands, the most frequent first.
func counts(b *strings.Builder, title string, n map[string]int, whole int) {
	reasons := slices.Collect(maps.Keys(n))
	slices.SortFunc(reasons, func(x, y string) int { return cmp.Or(cmp.Compare(n[y], n[x]), cmp.Compare(x, y)) })
	for _, r := range reasons {
		fmt.Fprintf(b, "  %s: %s %s\n", title, r, of(n[r], whole))
	}
}

// of writes a part of a whole: 93.4% (71).
func of(part, whole int) string {
	if whole == 0 {
		return "none"
	}
	return fmt.Sprintf("%s (%d)", percent(float64(part)/float64(whole)), part)
}
