package evaluators

import "encoding/json"

// listContains compares lists of texts, in any order.
func listContains() Spec {
	return graded(Spec{
		Name:     "list_contains",
		Summary:  "How well does the output, a JSON list of texts, match the expected list, order aside?",
		Use:      "lists of names or labels, order aside",
		NotFor:   "lists of over 500 items",
		Required: []string{fieldOutput, fieldExpected},
		Settings: append([]Setting{
			{Name: "allow_extra", Type: "boolean", Default: false, Help: "texts beyond the expected ones do no harm"},
		}, ruleSettings()...),
	}, .75, func(o *ruleOptions) rule {
		extra := o.boolean("allow_extra")
		return rule{measure: func(it Item) finding {
			output, ok := textList(*it.Output)
			if !ok {
				return finding{detail: map[string]any{"why": "the output is not a JSON list of texts"}}
			}
			var lists [][]string
			for _, e := range it.texts(fieldExpected) {
				if list, ok := textList(e); ok {
					lists = append(lists, list)
				}
			}
			if len(lists) == 0 { // then the references are the list, one text each
				lists = [][]string{it.texts(fieldExpected)}
			}
			return bestOf(len(lists), func(i int) (float64, error) { return ListContains(output, lists[i], extra) })
		}}
	})
}

func textList(text string) ([]string, bool) {
	var list []*string
	if json.Unmarshal([]byte(text), &list) != nil || list == nil {
		return nil, false
	}
	texts := make([]string, len(list))
	for i, s := range list {
		if s == nil {
			return nil, false
		}
		texts[i] = *s
	}
	return texts, true
}
