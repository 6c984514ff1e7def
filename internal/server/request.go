package server

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"assay/evaluators"
	"assay/evaluators/judge"
	"assay/internal/interaction"
)

// maxItems of one request. More belong into several, or into `assay evaluate`.
const maxItems = 1000

// maxItemID bounds what a client may have repeated to it, in bytes.
const maxItemID = 512

// An evaluation is a request that was understood.
type evaluation struct {
	evaluators []evaluators.Evaluator
	judgeName  string
	judge      judge.Judge
	items      []namedItem
	batch      bool
	dryRun     bool
}

type namedItem struct {
	id string
	evaluators.Item
}

// itemFields are the fields of an item; id names an item of a batch only.
var itemFields = []string{"input", "output", "expected", "criteria", "context", "claim", "evidence",
	"latency_ms", "input_tokens", "output_tokens", "attributes"}

var requestFields = append([]string{"evaluators", "suite", "options", "judge", "dry_run", "items"}, itemFields...)

// parse reads an evaluate request. The error is a problem that lists what is wrong,
// each with its place.
func (s *Server) parse(body []byte) (evaluation, error) {
	var f faults
	all, err := document(body)
	if err != nil {
		f.add("", "%v", err)
		return evaluation{}, f.problem()
	}
	given := make(map[string]json.RawMessage, len(all))
	for _, m := range all {
		if !slices.Contains(requestFields, m.name) {
			f.add(m.name, "unknown field%s", didYouMean(m.name, requestFields))
			continue
		}
		if !isNull(m.value) {
			given[m.name] = m.value
		}
	}
	var req evaluation
	names := s.evaluatorNames(&f, given)
	settings := f.options(given["options"], names)
	for _, name := range names {
		ev, err := evaluators.New(name, settings[name])
		if err != nil {
			for _, e := range each(err) {
				f.add("options."+name, "%s", strings.TrimPrefix(e.Error(), name+": "))
			}
			continue
		}
		req.evaluators = append(req.evaluators, ev)
	}
	if raw, ok := given["dry_run"]; ok {
		req.dryRun = f.truth("dry_run", raw)
	}
	// A dry run asks nobody; a judge only says how its questions look.
	if given["judge"] != nil || needJudge(names) && (!req.dryRun || len(s.deps.Judges) == 1) {
		req.judgeName, req.judge = s.chooseJudge(&f, given["judge"])
	}
	if raw, ok := given["items"]; ok {
		req.batch = true
		req.items = f.items(raw)
		for _, name := range itemFields {
			if _, ok := given[name]; ok {
				f.add(name, "stands beside items; put it into the items it belongs to")
			}
		}
	} else {
		item := newItem()
		for _, name := range itemFields {
			if raw, ok := given[name]; ok {
				f.field(&item, name, name, raw)
			}
		}
		req.items = []namedItem{item}
	}
	return req, f.problem()
}

// needJudge reports whether any of the evaluators asks a judge. Where it cannot be known,
// the request has another fault, and one about a judge beside it would be a guess.
func needJudge(names []string) bool {
	return slices.ContainsFunc(names, func(name string) bool {
		spec, err := evaluators.Lookup(name)
		return err == nil && spec.NeedsJudge()
	})
}

// evaluatorNames reads which evaluators to run.
func (s *Server) evaluatorNames(f *faults, given map[string]json.RawMessage) []string {
	raw, named := given["evaluators"]
	if rawSuite, ok := given["suite"]; ok {
		if named {
			f.add("suite", "stands beside evaluators; want one of the two")
		}
		return s.suite(f, rawSuite)
	}
	if !named {
		f.add("evaluators", "missing; want a list with some of %s, or a suite (%s)", strings.Join(evaluatorNames(), ", "), strings.Join(s.suiteNames(), ", "))
		return nil
	}
	var names []string
	asked := f.strings("evaluators", raw)
	if kindOf(raw) == "a list" && len(asked) == 0 {
		f.add("evaluators", "is empty; want some of %s", strings.Join(evaluatorNames(), ", "))
	}
	for i, name := range asked {
		at := fmt.Sprintf("evaluators[%d]", i)
		spec, err := evaluators.Lookup(name)
		switch {
		case slices.Contains(asked[:i], name), err == nil && slices.Contains(names, spec.Name):
			f.add(at, "%s twice", quoted(name))
		case err != nil:
			f.add(at, "unknown evaluator %s; want some of %s%s", quoted(name), strings.Join(evaluatorNames(), ", "), didYouMean(name, evaluatorNames()))
		default:
			names = append(names, spec.Name) // an alias is answered under its evaluator's name
		}
	}
	return names
}

// suite reads a suite as the evaluators that it is.
func (s *Server) suite(f *faults, raw json.RawMessage) []string {
	name := f.text("suite", raw)
	if name == nil {
		return nil
	}
	for _, suite := range s.suites {
		if suite.Name == *name {
			return suite.Evaluators
		}
	}
	f.add("suite", "unknown suite %s; want one of %s%s", quoted(*name), strings.Join(s.suiteNames(), ", "), didYouMean(*name, s.suiteNames()))
	return nil
}

func (s *Server) suiteNames() []string {
	var names []string
	for _, suite := range s.suites {
		names = append(names, suite.Name)
	}
	return names
}

func evaluatorNames() []string {
	var names []string
	for _, spec := range evaluators.Table() {
		names = append(names, spec.Name)
	}
	return names
}

// chooseJudge takes the judge that the request names, or the only one there is.
func (s *Server) chooseJudge(f *faults, raw json.RawMessage) (string, judge.Judge) {
	known := slices.Sorted(maps.Keys(s.deps.Judges))
	if raw == nil {
		if len(known) == 1 {
			return known[0], s.deps.Judges[known[0]]
		}
		f.add("judge", "missing; want one of %s", strings.Join(known, ", "))
		return "", nil
	}
	name := f.text("judge", raw)
	if name == nil {
		return "", nil
	}
	j, ok := s.deps.Judges[*name]
	if !ok {
		f.add("judge", "unknown judge %s; want one of %s%s", quoted(*name), strings.Join(known, ", "), didYouMean(*name, known))
	}
	return *name, j
}

// items reads a batch.
func (f *faults) items(raw json.RawMessage) []namedItem {
	var elements []json.RawMessage
	if kindOf(raw) != "a list" || json.Unmarshal(raw, &elements) != nil {
		f.add("items", "want a list of objects, not %s", kindOf(raw))
		return nil
	}
	switch {
	case len(elements) == 0:
		f.add("items", "is empty; want at least one item")
	case len(elements) > maxItems:
		f.add("items", "%d items; want at most %d", len(elements), maxItems)
		return nil
	}
	known := append([]string{"id"}, itemFields...)
	items := make([]namedItem, 0, len(elements))
	for i, e := range elements {
		at := fmt.Sprintf("items[%d]", i)
		fields, err := members(e)
		if err != nil {
			f.add(at, "%v", err)
			continue
		}
		item := newItem()
		for _, m := range fields {
			where := at + "." + m.name
			switch {
			case !slices.Contains(known, m.name):
				f.add(where, "unknown field%s", didYouMean(m.name, known))
			case m.name == "id":
				if id := f.text(where, m.value); id != nil {
					item.id = *id
				}
				if len(item.id) > maxItemID {
					f.add(where, "%d bytes; want at most %d", len(item.id), maxItemID)
				}
			default:
				f.field(&item, m.name, where, m.value)
			}
		}
		items = append(items, item)
	}
	return items
}

// newItem is an item without texts. What a client sends is what it wants judged.
func newItem() namedItem {
	return namedItem{Item: evaluators.Item{Judgeable: true, Status: interaction.OK}}
}

func (f *faults) field(item *namedItem, name, location string, raw json.RawMessage) {
	switch name {
	case "input":
		item.Input = f.text(location, raw)
	case "output":
		item.Output = f.text(location, raw)
	case "criteria":
		item.Criteria = f.text(location, raw)
	case "expected":
		item.Expected = f.oneOrMore(location, raw)
	case "context":
		item.Context = f.oneOrMore(location, raw)
	case "claim":
		item.Claim = f.text(location, raw)
	case "evidence":
		item.Evidence = f.oneOrMore(location, raw)
	case "latency_ms":
		if v, ok := f.number(location, raw); ok {
			item.LatencyMS = &v
		}
	case "input_tokens":
		item.InputTokens = f.count(location, raw)
	case "output_tokens":
		item.OutputTokens = f.count(location, raw)
	case "attributes":
		item.Attributes = f.attributes(location, raw)
	}
}

// count reads a number of things.
func (f *faults) count(location string, raw json.RawMessage) *int64 {
	var n int64
	if kindOf(raw) != "a number" || json.Unmarshal(raw, &n) != nil || n < 0 {
		f.add(location, "want a whole number of at least 0")
		return nil
	}
	return &n
}

func (f *faults) attributes(location string, raw json.RawMessage) map[string]string {
	all, err := members(raw)
	if err != nil {
		f.add(location, "%v", err)
		return nil
	}
	values := make(map[string]string, len(all))
	for _, m := range all {
		if v := f.text(location+"."+m.name, m.value); v != nil {
			values[m.name] = *v
		}
	}
	return values
}

// each takes joined errors apart.
func each(err error) []error {
	var joined interface{ Unwrap() []error }
	if errors.As(err, &joined) {
		return joined.Unwrap()
	}
	return []error{err}
}
