package evaluators

import (
	"slices"
	"strings"

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
	Context   []string // documents that the output may rest on
	Claim     *string  // a statement to be checked by itself
	Evidence  []string // what is to be held against it
	Judgeable bool
	// SkipReason says why not, when Judgeable is false.
	SkipReason string
	Status     interaction.Status
	Flags      []string

	LatencyMS    *float64
	InputTokens  *int64
	OutputTokens *int64
	Feedback     *float64
	Attributes   map[string]string
}

// ItemOf returns the item of a logged interaction.
func ItemOf(it *interaction.Interaction) Item {
	item := Item{
		Input:      it.Input,
		Output:     it.Output,
		Expected:   it.Expected,
		Criteria:   it.Criteria,
		Context:    it.Context,
		Judgeable:  it.Judgeable,
		SkipReason: it.SkipReason,
		Status:     it.Status,
		Flags:      it.Flags,

		LatencyMS:    it.LatencyMS,
		InputTokens:  it.InputTokens,
		OutputTokens: it.OutputTokens,
		Attributes:   it.Attributes,
	}
	// No format of logs has a place for these two, so a log keeps them as attributes.
	if claim, ok := it.Attributes[fieldClaim]; ok {
		item.Claim = &claim
	}
	if evidence, ok := it.Attributes[fieldEvidence]; ok {
		item.Evidence = []string{evidence}
	}
	if it.Feedback != nil {
		item.Feedback = &it.Feedback.Value
	}
	return item
}

// Reasons of items that are not applicable; missing fields follow a colon.
const (
	reasonMissing      = "missing:"
	reasonEmptyOutput  = "empty_output"
	reasonRefusal      = "refusal"
	reasonTruncated    = "truncated"
	reasonTooLong      = "too_long"
	reasonNotJudgeable = "not_judgeable"
	reasonNoStatements = "no_statements"
)

// The names of an item's fields, as people and reasons write them.
const (
	fieldInput    = "input"
	fieldOutput   = "output"
	fieldExpected = "expected"
	fieldCriteria = "criteria"
	fieldContext  = "context"
	fieldClaim    = "claim"
	fieldEvidence = "evidence"
)

// fieldOrder is the order in which a judge reads an item's fields.
var fieldOrder = []string{fieldContext, fieldEvidence, fieldInput, fieldCriteria, fieldExpected, fieldOutput, fieldClaim}

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
			has = holdsText(it.Expected)
		case fieldCriteria:
			has = given(it.Criteria)
		case fieldContext:
			has = holdsText(it.Context)
		case fieldClaim:
			has = given(it.Claim)
		case fieldEvidence:
			has = holdsText(it.Evidence)
		}
		if !has {
			names = append(names, name)
		}
	}
	return names
}

func holdsText(texts []string) bool {
	return slices.ContainsFunc(texts, func(s string) bool { return !interaction.Blank(s) })
}

// notBlank returns the texts that hold something.
func notBlank(texts []string) []string {
	var kept []string
	for _, s := range texts {
		if !interaction.Blank(s) {
			kept = append(kept, s)
		}
	}
	return kept
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
	blank := spec.reads(fieldOutput) && it.blankOutput()
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
	case spec.reads(fieldOutput) && it.refused() && s.Refusals == NotApplicableItem:
		return reasonRefusal, false
	case len(it.cuts()) > 0 && s.Truncated == NotApplicableItem:
		return reasonTruncated, false
	}
	if _, fits := it.fit(spec, s.MaxInputRunes); !fits {
		return reasonTooLong, false
	}
	return "", true
}

// texts returns the blocks of a field; none when it is optional and not given.
func (it Item) texts(name string) []string {
	switch {
	case name == fieldInput && given(it.Input):
		return []string{*it.Input}
	case name == fieldOutput && it.Output != nil:
		return []string{*it.Output}
	case name == fieldExpected:
		return notBlank(it.Expected)
	case name == fieldCriteria && given(it.Criteria):
		return []string{*it.Criteria}
	case name == fieldContext:
		return notBlank(it.Context)
	case name == fieldClaim && given(it.Claim):
		return []string{*it.Claim}
	case name == fieldEvidence:
		return notBlank(it.Evidence)
	}
	return nil
}
