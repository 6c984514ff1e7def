package demo

import (
	"errors"
	"fmt"
	"time"
)

// Topic is the topic of the demo's checks file.
const Topic = "demo.interactions"

// Options describe the traffic to simulate. DefaultOptions has values for all of them.
type Options struct {
	Seed         uint64
	Start, End   time.Time // the window; events lie in [Start, End)
	Interactions int       // exact number of logged interactions
	Topic        string
	Apps         []App
	Rollout      []RolloutPoint
	Drop         Drop
	Broken       int // unreadable records among them, none of which is an interaction
}

// App is one assistant.
type App struct {
	Name   string
	Weight float64  // its part of the traffic
	Topics []string // of the bank; every item of them is asked equally often
	Models []string // the first is asked three times as often as each other one
	Stays  bool     // on OldPrompt: the rollout is for the other apps
	Shares Shares   // how good its answers are while nothing is wrong
}

// RolloutPoint says that After the start of the window NewPrompt has this Share of the
// traffic of the apps that take part. Between points the share is interpolated.
type RolloutPoint struct {
	After time.Duration
	Share float64
}

// Drop is a spell in which one prompt version answers worse. A Loss of 0 is no drop.
type Drop struct {
	App           string
	PromptVersion string
	From, To      time.Duration // since Start; [From, To)
	Loss          float64       // taken off the good share
}

// The prompt versions of the simulated day.
const (
	OldPrompt = "v41"
	NewPrompt = "v42"
)

// DefaultOptions is the demo's day, stretched over the window: version v42 is rolled
// out, answers worse for two of the 24 hours, is repaired and takes over.
//
// The drop is early and short because an alarm closes on what came after its opening:
// it needs about five good answers for each bad one, and the day has to hold them.
func DefaultOptions(start, end time.Time) Options {
	at := func(hour float64) time.Duration {
		return time.Duration(float64(end.Sub(start)) * hour / 24)
	}
	return Options{
		Seed:         7,
		Start:        start,
		End:          end,
		Interactions: 12_000,
		Topic:        Topic,
		Apps: []App{
			{
				Name: "support", Weight: 0.7,
				Topics: []string{"account", "care", "loyalty", "products", "returns", "shipping", "stores", "warranty"},
				Models: []string{"lark-large-2026-05", "lark-small-2026-05"},
				Shares: Shares{Good: 0.955, Partial: 0.030, Wrong: 0.015},
			},
			{
				Name: "billing-bot", Weight: 0.3,
				Topics: []string{"billing", "giftcards", "payment"},
				Models: []string{"lark-small-2026-05"},
				Stays:  true,
				Shares: Shares{Good: 0.950, Partial: 0.030, Wrong: 0.020},
			},
		},
		Rollout: []RolloutPoint{{at(1), 0.05}, {at(8), 0.5}, {at(11), 0.5}, {at(13), 0.95}},
		Drop:    Drop{App: "support", PromptVersion: NewPrompt, From: at(9), To: at(11), Loss: 0.505},
		Broken:  8,
	}
}

// Validate reports everything that is wrong with the options.
func (o Options) Validate(bank *Bank) error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if o.End.Sub(o.Start) < time.Second {
		bad("window %s to %s: want a second at least", o.Start, o.End)
	}
	if o.Interactions < 1 {
		bad("interactions %d: want 1 at least", o.Interactions)
	}
	if o.Broken < 0 {
		bad("broken records %d: want 0 at least", o.Broken)
	}
	if o.Topic == "" {
		bad("topic is empty")
	}
	if len(o.Apps) == 0 {
		bad("no apps")
	}
	has := map[string]bool{}
	for _, t := range bank.Topics() {
		has[t] = true
	}
	for _, a := range o.Apps {
		if a.Name == "" || !(a.Weight > 0) || len(a.Models) == 0 || len(a.Topics) == 0 {
			bad("app %q: want a name, a positive weight, models and topics", a.Name)
		}
		for _, t := range a.Topics {
			if !has[t] {
				bad("app %q: the bank has no topic %q", a.Name, t)
			}
		}
		if err := a.Shares.validate(); err != nil {
			bad("app %q: %w", a.Name, err)
		}
		if o.Drop.Loss < 0 || (a.Name == o.Drop.App && o.Drop.Loss > a.Shares.Good) {
			bad("drop of %g: app %q has %g to lose", o.Drop.Loss, a.Name, a.Shares.Good)
		}
	}
	for i, p := range o.Rollout {
		if p.Share < 0 || p.Share > 1 || (i > 0 && p.After < o.Rollout[i-1].After) {
			bad("rollout point %d (%g after %s): want shares of 0 to 1 in order of time", i, p.Share, p.After)
		}
	}
	return errors.Join(errs...)
}

// newShare is the share of NewPrompt so long after the start: nothing before the first
// point, level after the last.
func (o Options) newShare(after time.Duration) float64 {
	for i, p := range o.Rollout {
		if after >= p.After {
			continue
		}
		if i == 0 {
			return 0
		}
		from := o.Rollout[i-1]
		return from.Share + (p.Share-from.Share)*float64(after-from.After)/float64(p.After-from.After)
	}
	if len(o.Rollout) == 0 {
		return 0
	}
	return o.Rollout[len(o.Rollout)-1].Share
}
