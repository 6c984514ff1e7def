package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"

	"assay/evaluators"
	"assay/internal/checks"
	"assay/sink"
)

// A Label is one rater's answer as a person or a file gives it. Option and Passed are
// two ways to say it; a removal needs neither.
type Label struct {
	Check         string
	InteractionID string
	Rater         string
	Option        string
	Passed        *bool
	Comment       string
	Removed       bool
	Origin        string // sampled, volunteered or imported
	Pi2           *float64
}

// The origins of labels.
const (
	LabelSampled     = "sampled"     // its interaction was drawn, with a known probability
	LabelVolunteered = "volunteered" // somebody chose to say something
	LabelImported    = "imported"    // from elsewhere
)

var labelOrigins = []string{LabelSampled, LabelVolunteered, LabelImported}

// A LabelFault is what is wrong with one field of a label.
type LabelFault struct {
	Field   string
	Message string
}

func (f LabelFault) Error() string {
	if f.Field == "" {
		return f.Message
	}
	return f.Field + ": " + f.Message
}

// Change is the label as the sink stores it, by the checks file, or all that is wrong
// with it.
func (l Label) Change(file *checks.File) (sink.LabelChange, []LabelFault) {
	var faults []LabelFault
	fault := func(field, format string, args ...any) {
		faults = append(faults, LabelFault{field, fmt.Sprintf(format, args...)})
	}
	long := func(field, value string, most int) {
		if len(value) > most {
			fault(field, "%d bytes: want at most %d", len(value), most)
		}
	}
	c := sink.LabelChange{Check: l.Check, InteractionID: l.InteractionID, Rater: l.Rater, Comment: l.Comment, Origin: l.Origin, Pi2: 1, Removed: l.Removed}
	if l.InteractionID == "" {
		fault("interaction_id", "missing")
	}
	if strings.TrimSpace(l.Rater) == "" {
		fault("rater", "missing: want who answered, a person or a team")
	}
	long("interaction_id", l.InteractionID, sink.MaxLabelID)
	long("rater", l.Rater, sink.MaxLabelRater)
	long("comment", l.Comment, sink.MaxLabelComment)
	switch {
	case !slices.Contains(labelOrigins, l.Origin):
		fault("origin", "%s: want one of %s", quoted(l.Origin), strings.Join(labelOrigins, ", "))
	case l.Origin == LabelSampled && l.Pi2 == nil && !l.Removed:
		fault("pi2", "missing: a sampled label needs the probability with which its judged interaction was drawn")
	case l.Origin != LabelSampled && l.Pi2 != nil:
		fault("pi2", "is for sampled labels, not %s ones", l.Origin)
	case l.Pi2 != nil && !(*l.Pi2 > 0 && *l.Pi2 <= 1):
		fault("pi2", "%v: want above 0, at most 1", *l.Pi2)
	case l.Pi2 != nil:
		c.Pi2 = *l.Pi2
	}
	check, known := file.Check(l.Check)
	switch {
	case l.Check == "":
		fault("check", "missing; want one of %s", strings.Join(checkNames(file), ", "))
	case !known:
		fault("check", "unknown check %s; want one of %s%s", quoted(l.Check), strings.Join(checkNames(file), ", "), didYouMean(l.Check, checkNames(file)))
	case l.Removed:
		if l.Option != "" || l.Passed != nil {
			fault("removed", "a removal has neither option nor passed")
		}
	default:
		c.Option, c.Passed = l.Option, l.Passed
		if f := judgeLabel(&c, check); f != nil {
			faults = append(faults, *f)
		}
	}
	return c, faults
}

// tie is how far a score may miss the pass line by rounding alone.
const tie = 1e-9

// judgeLabel says whether the label's option passes its check.
func judgeLabel(c *sink.LabelChange, check checks.Check) *LabelFault {
	if c.Option == "" {
		if c.Passed == nil {
			return &LabelFault{"passed", "missing: want passed (true or false), or option"}
		}
		return nil
	}
	ev, err := evaluators.New(check.Evaluator, check.Settings())
	if err != nil {
		return &LabelFault{"check", err.Error()}
	}
	d := ev.Definition()
	if len(d.Options) == 0 || d.Claims != "" {
		return &LabelFault{"option", fmt.Sprintf("%s has no options for a whole answer: want passed", check.Evaluator)}
	}
	score, err := d.ScoreOf(c.Option)
	if err != nil {
		return &LabelFault{"option", fmt.Sprintf("no option %s; want one of %s%s", quoted(c.Option), strings.Join(d.Keys(), ", "), didYouMean(c.Option, d.Keys()))}
	}
	var passed bool
	switch {
	case d.PassLine == nil:
		passed = slices.Contains(d.Pass, c.Option)
	case d.Passes == evaluators.Below:
		passed = score < *d.PassLine-tie
	case d.Passes == evaluators.AtMost:
		passed = score <= *d.PassLine+tie
	default:
		passed = score >= *d.PassLine-tie
	}
	if c.Passed != nil && *c.Passed != passed {
		return &LabelFault{"passed", fmt.Sprintf("%t, but option %s of check %s makes it %t: give one of the two", *c.Passed, c.Option, check.Name, passed)}
	}
	c.Passed, c.Value = &passed, new(float32(score))
	return nil
}

func checkNames(file *checks.File) []string {
	names := make([]string, len(file.Checks))
	for i, c := range file.Checks {
		names[i] = c.Name
	}
	return names
}

type labelsOutput struct {
	Body labelsBody
}

type labelsBody struct {
	Labels    []labelOutcome `json:"labels" nullable:"false" doc:"One per label of the request, in its order"`
	Stored    int            `json:"stored" doc:"New"`
	Corrected int            `json:"corrected" doc:"In place of another answer of the same rater"`
	Removed   int            `json:"removed"`
	Unchanged int            `json:"unchanged" doc:"There already, or already gone"`
	Refused   int            `json:"refused"`
	Waiting   int            `json:"waiting" doc:"Of all: their interaction has no judgement yet"`
}

type labelOutcome struct {
	Check         string   `json:"check"`
	InteractionID string   `json:"interaction_id"`
	Rater         string   `json:"rater"`
	Outcome       string   `json:"outcome" enum:"stored,corrected,removed,unchanged,refused"`
	Waits         bool     `json:"waits" doc:"The interaction has no judgement of this check yet: the label counts once it has one, and is looked for again for 7 days"`
	Faults        []string `json:"faults,omitempty" doc:"Why it was refused"`
}

const labelRefused = "refused"

// LabelFields are the fields of a label in a request or a file.
var LabelFields = []string{"check", "interaction_id", "rater", "option", "passed", "comment", "removed", "origin", "pi2"}

func (s *Server) addLabels(api huma.API) {
	op := huma.Operation{
		OperationID: "write-labels", Method: http.MethodPost, Path: "/api/v1/labels",
		Summary: "What people say of judged interactions",
		Description: "Each label has an outcome of its own: what is wrong with one does not hold up the others. A request " +
			"in which every label is refused is a 400. One rater has one answer per check and interaction; a later one " +
			"replaces it, and the same one again changes nothing, so that a request may be repeated.",
		MaxBodyBytes:     int64(s.cfg.MaxBody),
		SkipValidateBody: true, // as for evaluate
	}
	huma.Register(api, op, s.labels)
	api.OpenAPI().Paths[op.Path].Post.RequestBody = labelsSchema(checkNames(s.deps.Checks))
}

func (s *Server) labels(ctx context.Context, in *evaluateInput) (*labelsOutput, error) {
	raw, err := labelList(in.RawBody)
	if err != nil {
		return nil, err
	}
	out := &labelsOutput{Body: labelsBody{Labels: make([]labelOutcome, len(raw))}}
	var all faults
	var changes []sink.LabelChange
	var of []int // the label that a change belongs to
	for i, r := range raw {
		l, wrong := ReadLabel(r)
		if l.Origin == "" {
			l.Origin = LabelVolunteered
		}
		change, found := l.Change(s.deps.Checks)
		if len(wrong) == 0 {
			wrong = found
		}
		o := &out.Body.Labels[i]
		o.Check, o.InteractionID, o.Rater = l.Check, l.InteractionID, l.Rater
		for _, f := range wrong {
			at := fmt.Sprintf("labels[%d]", i)
			if f.Field != "" {
				at += "." + f.Field
			}
			all.add(at, "%s", f.Message)
			o.Faults = append(o.Faults, f.Error())
		}
		if len(wrong) > 0 {
			o.Outcome = labelRefused
			continue
		}
		changes, of = append(changes, change), append(of, i)
	}
	if len(changes) == 0 {
		return nil, all.problem()
	}
	outcomes, err := s.deps.Store.WriteLabels(ctx, changes, time.Now())
	if err != nil {
		return nil, s.unavailable(ctx, "labels", err)
	}
	for i, o := range outcomes {
		out.Body.Labels[of[i]].Outcome, out.Body.Labels[of[i]].Waits = o.Outcome, o.Waits
	}
	out.Body.count()
	return out, nil
}

func (b *labelsBody) count() {
	by := map[string]*int{
		sink.LabelStored: &b.Stored, sink.LabelCorrected: &b.Corrected, sink.LabelRemoved: &b.Removed,
		sink.LabelUnchanged: &b.Unchanged, labelRefused: &b.Refused,
	}
	for _, l := range b.Labels {
		*by[l.Outcome]++
		if l.Waits {
			b.Waiting++
		}
	}
}

// labelList reads the request without looking into the labels.
func labelList(body []byte) ([]json.RawMessage, error) {
	var f faults
	all, err := document(body)
	if err != nil {
		f.add("", "%v", err)
		return nil, f.problem()
	}
	var raw []json.RawMessage
	there := false
	for _, m := range all {
		switch {
		case m.name != "labels":
			f.add(m.name, "unknown field%s", didYouMean(m.name, []string{"labels"}))
		case kindOf(m.value) != "a list" || json.Unmarshal(m.value, &raw) != nil:
			there = true
			f.add("labels", "want a list of labels, not %s", kindOf(m.value))
		default:
			there = true
			if n := len(raw); n < 1 || n > maxItems {
				f.add("labels", "%d labels: want 1 to %d", n, maxItems)
			}
		}
	}
	if !there {
		f.add("labels", "missing")
	}
	return raw, f.problem()
}

// ReadLabel reads one label of a request or a file: a JSON object of LabelFields.
func ReadLabel(raw []byte) (l Label, wrong []LabelFault) {
	list, err := labelMembers(raw)
	if err != nil {
		return l, []LabelFault{{"", err.Error()}}
	}
	var f faults
	for _, m := range list {
		if !slices.Contains(LabelFields, m.name) {
			f.add(m.name, "unknown field%s", didYouMean(m.name, LabelFields))
			continue
		}
		if isNull(m.value) {
			continue
		}
		text := func(to *string) {
			if t := f.text(m.name, m.value); t != nil {
				*to = *t
			}
		}
		switch m.name {
		case "check":
			text(&l.Check)
		case "interaction_id":
			text(&l.InteractionID)
		case "rater":
			text(&l.Rater)
		case "option":
			text(&l.Option)
		case "comment":
			text(&l.Comment)
		case "origin":
			text(&l.Origin)
		case "passed":
			l.Passed = new(bool)
			f.boolean(m.name, m.value, l.Passed)
		case "removed":
			f.boolean(m.name, m.value, &l.Removed)
		case "pi2":
			l.Pi2 = new(float64)
			if kindOf(m.value) != "a number" || json.Unmarshal(m.value, l.Pi2) != nil {
				f.add(m.name, "want a number, not %s", kindOf(m.value))
			}
		}
	}
	for _, e := range f.list {
		d := e.(*huma.ErrorDetail)
		wrong = append(wrong, LabelFault{d.Location, d.Message})
	}
	return l, wrong
}

func labelMembers(raw []byte) ([]member, error) {
	if !utf8.Valid(raw) {
		return nil, errors.New("not UTF-8")
	}
	if !json.Valid(raw) { // members trusts what it reads
		var v any
		return nil, fmt.Errorf("not JSON: %w", json.Unmarshal(raw, &v))
	}
	return members(raw)
}

func (f *faults) boolean(location string, raw json.RawMessage, to *bool) {
	if kindOf(raw) != "a boolean" || json.Unmarshal(raw, to) != nil {
		f.add(location, "want true or false, not %s", kindOf(raw))
	}
}

func labelsSchema(names []string) *huma.RequestBody {
	text := func(what string) *huma.Schema { return &huma.Schema{Type: huma.TypeString, Description: what} }
	enum := func(values []string, what string) *huma.Schema {
		s := text(what)
		for _, v := range values {
			s.Enum = append(s.Enum, v)
		}
		return s
	}
	none, whole := 0.0, 1.0
	label := closed(map[string]*huma.Schema{
		"check":          enum(names, "A check of the checks file"),
		"interaction_id": text("The interaction, by the id it has in the log"),
		"rater":          text("Who answered: a person or a team"),
		"option":         text("The answer as an option of the check's question; it says whether the interaction passed"),
		"passed":         {Type: huma.TypeBoolean, Description: "The answer, where no option is given"},
		"comment":        text("For people"),
		"removed":        {Type: huma.TypeBoolean, Description: "Take the rater's answer back"},
		"origin": enum(labelOrigins, "How the interaction came to be labelled: sampled (drawn at random from the judged ones, with pi2), "+
			"volunteered (somebody chose it; shown, and never averaged in) or imported (from elsewhere; compared with the judge). Default: volunteered"),
		"pi2": {Type: huma.TypeNumber, ExclusiveMinimum: &none, Maximum: &whole, Description: "Of sampled labels: the probability with which the judged interaction was drawn"},
	}, "check", "interaction_id", "rater")
	example := "refund_policy"
	if len(names) > 0 {
		example = names[0]
	}
	one, most := 1, maxItems
	schema := closed(map[string]*huma.Schema{"labels": {Type: huma.TypeArray, Items: label, MinItems: &one, MaxItems: &most}}, "labels")
	return &huma.RequestBody{
		Required: true,
		Content: map[string]*huma.MediaType{"application/json": {
			Schema: schema,
			Example: map[string]any{"labels": []any{
				map[string]any{"check": example, "interaction_id": "conv-77-turn-3", "rater": "ana", "passed": false, "comment": "names no date"},
			}},
		}},
	}
}
