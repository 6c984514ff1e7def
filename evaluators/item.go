package evaluators

import (
	"slices"
	"strings"
	"unicode/utf8"

	"assay/internal/interaction"
)

// Item is what evaluators see of an interaction, or of a request to the API. A nil
// text was not given; an empty one was, and is blank. Judgeable must be set: the
// zero Item is not applicable.
type Item struct {
	Input     *string
	Output    *string
	Expected  []string // references, any of which is right
	Criteria  *string
	Context   []string
	Judgeable bool
	// SkipReason says why not, when Judgeable is false.
	SkipReason string
	Status     interaction.Status
	Flags      []string
}

// ItemOf returns the item of a logged interaction.
func ItemOf(it *interaction.Interaction) Item {
	return Item{
		Input:      it.Input,
		Output:     it.Output,
		Expected:   it.Expected,
		Criteria:   it.Criteria,
		Context:    it.Context,
		Judgeable:  it.Judgeable,
		SkipReason: it.SkipReason,
		Status:     it.Status,
		Flags:      it.Flags,
	}
}

// Reasons of items that are not applicable; missing fields follow a colon.
const (
	reasonMissing      = "missing:"
	reasonEmptyOutput  = "empty_output"
	reasonRefusal      = "refusal"
	reasonTruncated    = "truncated"
	reasonTooLong      = "too_long"
	reasonNotJudgeable = "not_judgeable"
)

// The names of an item's fields, as people and reasons write them.
const (
	fieldInput    = "input"
	fieldOutput   = "output"
	fieldExpected = "expected"
	fieldCriteria = "criteria"
)

// missing returns the required fields that the item does not have, in the order of
// required. An output that is there but blank is not missing: it is an answer.
func (it Item) missing(required []string) []string {
	var names []string
	for _, name := range required {
		var has bool
		switch name {
		case fieldInput:
			has = given(it.Input)
		case fieldOutput:
			has = it.Output != nil
		case fieldExpected:
			has = slices.ContainsFunc(it.Expected, func(e string) bool { return !interaction.Blank(e) })
		case fieldCriteria:
			has = given(it.Criteria)
		}
		if !has {
			names = append(names, name)
		}
	}
	return names
}

// references are the expected texts that hold something.
func (it Item) references() []string {
	var texts []string
	for _, e := range it.Expected {
		if !interaction.Blank(e) {
			texts = append(texts, e)
		}
	}
	return texts
}

func given(text *string) bool { return text != nil && !interaction.Blank(*text) }

func (it Item) blankOutput() bool {
	if !it.Judgeable && it.SkipReason == reasonEmptyOutput {
		return true
	}
	return it.Output != nil && interaction.Blank(*it.Output)
}

func (it Item) refused() bool {
	return it.Status == interaction.Refusal || slices.Contains(it.Flags, "refusal_like")
}

// cutFlags are the decoder's flags that say a text is not whole.
var cutFlags = []string{"truncated", "input_truncated", "output_truncated", "input_cut", "output_cut"}

// cuts returns the flags of the item that say so, and the status where that does.
func (it Item) cuts() []string {
	var found []string
	for _, flag := range cutFlags {
		if slices.Contains(it.Flags, flag) || (flag == "truncated" && it.Status == interaction.Truncated) {
			found = append(found, flag)
		}
	}
	return found
}

// applicable is Evaluator.Applicable for every evaluator. The order is fixed: what
// the decoder said comes first, then what is missing, then what the settings say.
func applicable(it Item, spec Spec, s Settings) (reason string, ok bool) {
	blank := it.blankOutput()
	if !it.Judgeable && !(blank && s.EmptyOutput == Fail) {
		if it.SkipReason == "" {
			return reasonNotJudgeable, false
		}
		return it.SkipReason, false
	}
	missing := it.missing(spec.Required)
	if blank {
		// The decoder may keep a blank output as none at all.
		missing = slices.DeleteFunc(missing, func(name string) bool { return name == fieldOutput })
	}
	switch {
	case len(missing) > 0:
		return reasonMissing + strings.Join(missing, ","), false
	case blank && s.EmptyOutput != Fail:
		return reasonEmptyOutput, false
	case blank:
		return "", true
	case it.refused() && s.Refusals == NotApplicableItem:
		return reasonRefusal, false
	case len(it.cuts()) > 0 && s.Truncated == NotApplicableItem:
		return reasonTruncated, false
	case it.longer(spec, s.MaxInputRunes):
		return reasonTooLong, false
	}
	return "", true
}

// longer reports whether a judge would read more than limit runes of the item. It is
// asked for every interaction of the stream, so bytes, which are never fewer, come
// first.
func (it Item) longer(spec Spec, limit int) bool {
	bytes, runes := 0, 0
	each := func(f func(text string)) {
		for _, names := range [...][]string{spec.Required, spec.Optional} {
			for _, name := range names {
				for _, text := range it.texts(name) {
					f(text)
				}
			}
		}
	}
	each(func(text string) { bytes += len(text) })
	if bytes <= limit {
		return false
	}
	each(func(text string) { runes += utf8.RuneCountInString(text) })
	return runes > limit
}

// texts returns the blocks of a field; none when it is optional and not given.
func (it Item) texts(name string) []string {
	switch {
	case name == fieldInput && given(it.Input):
		return []string{*it.Input}
	case name == fieldOutput && it.Output != nil:
		return []string{*it.Output}
	case name == fieldExpected:
		return it.references()
	case name == fieldCriteria && given(it.Criteria):
		return []string{*it.Criteria}
	}
	return nil
}
