package main

import (
	"bufio"
	"context"
	"fmt"
	"strings"
	"time"

	"assay/evaluators"
	"assay/evaluators/judge"
	"assay/internal/checks"
	"assay/internal/interaction"
	"assay/internal/interaction/decode"
	"assay/sink"
)

// checkTraffic is what a check gets to see, and what a judgement of it uses.
type checkTraffic struct {
	perDay     float64 // interactions
	share      float64 // of them that filter and fields let through
	shareFrom  string
	calls      float64 // of the judge for each; 0: not known
	tokensIn   float64 // for each
	tokensOut  float64
	tokensFrom string
}

// usualTexts is how many characters an assumed interaction has, in all its fields.
const usualTexts = 300 + 800 + 300 + 300 + 2*1000

// assumedTraffic is what is taken for granted where nothing is known.
func assumedTraffic(file *checks.File) []checkTraffic {
	text := func(sentences int) *string {
		s := strings.Repeat("This is a sentence of fifty characters in all [1]. ", sentences) // cited, for those who ask about citations
		return &s
	}
	item := evaluators.Item{
		Input: text(6), Output: text(16), Expected: []string{*text(6)}, Criteria: text(6), Context: []string{*text(20), *text(20)},
		Claim: text(1), Evidence: []string{*text(6)}, Judgeable: true, Status: interaction.OK,
	}
	all := make([]checkTraffic, len(file.Checks))
	for i, c := range file.Checks {
		all[i] = checkTraffic{share: 1, shareFrom: "assumed", tokensFrom: "assumed"}
		item := item
		if c.Criteria.Text != "" {
			item.Criteria = &c.Criteria.Text
		}
		if ev, err := evaluators.New(c.Evaluator, c.Settings()); err == nil {
			cost := askedAbout(file, c, ev, item)
			all[i].tokensIn, all[i].tokensOut = cost.in, cost.out
		}
	}
	return all
}

// askedAbout is what the questions of a check about an item come to.
func askedAbout(file *checks.File, c checks.Check, ev evaluators.Evaluator, item evaluators.Item) questionCost {
	dry, err := evaluators.Dry(context.Background(), ev, item)
	if err != nil || dry.Result != nil {
		return questionCost{}
	}
	j, _ := file.Judge(c.Judge)
	cost := costOf(j, ev, dry)
	if _, most := itemCalls(ev, j); dry.More && most > cost.questions {
		// How many follow only the answers say: as many as there may be, as long as the first.
		further := most - cost.questions
		cost.in += further * cost.in / cost.questions
		cost.out += further * answerTokens(j.Method, judge.Question{Kind: judge.Choice, Options: make([]judge.Option, 2)})
		cost.questions = most
	}
	return cost
}

// sampledTraffic goes by raw messages: what filters and fields let through, and how long
// texts are.
func sampledTraffic(env environment, file *checks.File, o planOptions, traffic []checkTraffic) error {
	source := file.Sources[0]
	if o.topic != "" {
		found := false
		for _, s := range file.Sources {
			if s.Topic == o.topic {
				source, found = s, true
			}
		}
		if !found {
			return errUsage{fmt.Errorf("--topic %s: no such source; want one of %s", o.topic, strings.Join(file.Topics(), ", "))}
		}
	}
	d, err := decode.New(env.Decode, []decode.Source{{Topic: source.Topic, Format: source.Format, Fields: source.Fields, Unit: source.Unit, ToolResults: source.ToolResults}})
	if err != nil {
		return errUsage{err}
	}
	in, err := openInput(o.sample)
	if err != nil {
		return err
	}
	defer in.Close()
	evs := make([]evaluators.Evaluator, len(file.Checks))
	for i, c := range file.Checks {
		if evs[i], err = evaluators.New(c.Evaluator, c.Settings()); err != nil {
			return err
		}
	}
	type tally struct{ let, calls, in, out float64 }
	tallies := make([]tally, len(file.Checks))
	seen := 0.0
	lines := bufio.NewScanner(in)
	lines.Buffer(make([]byte, 64<<10), int(env.Decode.MaxRecord))
	for n := int64(1); lines.Scan(); n++ {
		res := d.Decode(interaction.Record{Topic: source.Topic, Offset: n, Time: time.Now().UTC(), Value: append([]byte(nil), lines.Bytes()...)})
		for k := range res.Interactions {
			it := &res.Interactions[k]
			seen++
			for i, c := range file.Checks {
				if c.When != nil {
					if ok, err := c.When.Match(it); err != nil || !ok {
						continue
					}
				}
				item := c.Item(it)
				if _, ok := evs[i].Applicable(item); !ok {
					continue
				}
				cost := askedAbout(file, c, evs[i], item)
				t := &tallies[i]
				t.let, t.calls, t.in, t.out = t.let+1, t.calls+cost.questions, t.in+cost.in, t.out+cost.out
			}
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("--sample: %w", err)
	}
	if seen == 0 {
		return errGate{fmt.Errorf("--sample %s: no interaction could be read (assay decode says why)", o.sample), exitTooFew}
	}
	for i, t := range tallies {
		traffic[i].share, traffic[i].shareFrom = t.let/seen, "sample"
		if t.let > 0 {
			traffic[i].calls, traffic[i].tokensIn, traffic[i].tokensOut, traffic[i].tokensFrom = t.calls/t.let, t.in/t.let, t.out/t.let, "sample"
		}
	}
	return nil
}

// measuredTraffic goes by the ledger and by what judgements of the checks have used.
func measuredTraffic(ctx context.Context, db *sink.DB, file *checks.File, now time.Time, o planOptions, traffic []checkTraffic) error {
	from := now.Add(-o.since)
	days := o.since.Hours() / 24
	all := 0.0
	counted, err := db.PopulationSums(ctx, "", from, now)
	if err != nil {
		return err
	}
	for _, s := range counted {
		all += float64(s.Interactions)
	}
	if all == 0 {
		return errGate{fmt.Errorf("the ledger counts no interaction since %s; state the traffic with --rate, as in --rate 50/s", from.Format(time.RFC3339)), exitTooFew}
	}
	for i, c := range file.Checks {
		t := &traffic[i]
		t.perDay = all / days
		sums, err := db.PopulationSums(ctx, c.Name, from, now)
		if err != nil {
			return err
		}
		let, decided := 0.0, 0.0
		for _, s := range sums {
			let += float64(s.SampledOut + s.Selected)
			decided += float64(s.SampledOut + s.Selected + s.Filtered + s.NotApplicable)
		}
		if decided > 0 {
			t.share, t.shareFrom = let/decided, "measured"
		}
		used, err := db.Quality(ctx, c.Name, nil, from, now)
		if err != nil {
			return err
		}
		for _, u := range used { // the newest version comes last
			if rows := float64(u.NOK + u.NUnscored + u.NError); rows > 0 && u.CheckVersion == c.Version {
				t.tokensIn, t.tokensOut, t.tokensFrom = float64(u.InputTokens)/rows, float64(u.OutputTokens)/rows, "measured"
			}
		}
	}
	return nil
}
