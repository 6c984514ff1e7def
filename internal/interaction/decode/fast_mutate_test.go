package decode

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// A tree is a JSON document that keeps the order and the repetitions of its names.
type tree struct {
	open  byte     // { or [, 0 for a leaf
	leaf  string   // as written
	names []string // as written, of an object's members
	kids  []*tree
}

func parseTree(s string) (*tree, bool) {
	dec := json.NewDecoder(strings.NewReader(s))
	dec.UseNumber()
	t, err := readTree(dec)
	return t, err == nil && !dec.More()
}

func readTree(dec *json.Decoder) (*tree, error) {
	token, err := dec.Token()
	if err != nil {
		return nil, err
	}
	delim, ok := token.(json.Delim)
	if !ok {
		leaf, err := json.Marshal(token)
		return &tree{leaf: string(leaf)}, err
	}
	t := &tree{open: byte(delim)}
	for dec.More() {
		if t.open == '{' {
			name, err := dec.Token()
			if err != nil {
				return nil, err
			}
			quoted, _ := json.Marshal(name)
			t.names = append(t.names, string(quoted))
		}
		kid, err := readTree(dec)
		if err != nil {
			return nil, err
		}
		t.kids = append(t.kids, kid)
	}
	_, err = dec.Token()
	return t, err
}

func (t *tree) clone() *tree {
	c := &tree{open: t.open, leaf: t.leaf, names: append([]string(nil), t.names...)}
	for _, k := range t.kids {
		c.kids = append(c.kids, k.clone())
	}
	return c
}

// all are the nodes below t, and t.
func (t *tree) all() []*tree {
	nodes := []*tree{t}
	for _, k := range t.kids {
		nodes = append(nodes, k.all()...)
	}
	return nodes
}

// write writes the tree with white space here and there.
func (t *tree) write(b []byte, m *mutator) []byte {
	space := func() {
		if m.spaced && m.rng.IntN(3) == 0 {
			b = append(b, " \n\t\r"[m.rng.IntN(4)])
		}
	}
	if t.open == 0 {
		return append(b, t.leaf...)
	}
	b = append(b, t.open)
	for i, k := range t.kids {
		if i > 0 {
			b = append(b, ',')
		}
		space()
		if t.open == '{' {
			b = append(b, t.names[i]...)
			space()
			b = append(b, ':')
			space()
		}
		b = k.write(b, m)
		space()
	}
	return append(b, t.open+2)
}

// A mutator changes documents in the ways in which logs differ from one another.
type mutator struct {
	rng    *rand.Rand
	names  []string
	spaced bool
}

func newMutator(t testing.TB, rng *rand.Rand) *mutator {
	return &mutator{rng: rng, names: append(knownNames(t), "role", "purpose", "tool_calls", "function_call", "refusal", "finish_reason", "text",
		"message", "created", "body", "system", "max_tokens", "name", "reference", "tier", "q", "ticket", "took", "at", "docs", "gen_ai.system", "Input",
		"OUTPUT", "unknown", "$oid", "value", "claim", "api_key", "requester_metadata", "endTime", "end_user", "error_information", "error_str", "user_api_key_alias",
		"prompt_id", "usage", "stop_reason", "image", "image_url", "toolResult")}
}

func (m *mutator) pick(all []string) string { return all[m.rng.IntN(len(all))] }

// leaf is a value of any kind, often one that some rule looks at.
func (m *mutator) leaf() string {
	return m.pick([]string{
		`null`, `""`, `" "`, `"\u200b"`, `"\n\t"`, `"x"`, `0`, `-1`, `1777888800`, `1777888800123`, `1e400`, `12.5`, `1e3`, `true`, `false`,
		`"llm_judge"`, `"evaluator"`, `"__REDACTED__"`, `"\u005bREDACTED]"`, `"redacted-by-litellm"`, `"FILTERED"`, `"F\u0049LTERED"`,
		`"{\"error\":{\"message\":\"m\"}}"`, `"{\"a\":1}"`, `"[1]"`, `"\n{\"a\":1}"`, `"data: x"`, `"user"`, `"assistant"`, `"tool"`, `"system"`,
		`"I cannot help with that."`, `"chat.completion"`, `"chat.completion.chunk"`, `"text_completion"`, `"response"`, `"message"`, `"length"`,
		`"stop"`, `"content_filter"`, `"tool_calls"`, `"failed"`, `"500"`, `404`, `200`, `"2026-05-04T10:00:00Z"`, `"2026-05-04"`, `"yesterday"`,
		`[]`, `{}`, `[""]`, `["a","b"]`, `[null]`, `{"name":"n"}`, `{"text":"t"}`, `[{"role":"user","content":"u"}]`, `{"$oid":"o"}`,
		`[{"type":"text","text":"p"}]`, `[{"role":"assistant","content":"b"}]`, `{"code":"content_filter"}`, `"\ud800"`, `"é\u00e9"`, `"\u00a0"`, `"　"`,
		`"` + strings.Repeat("long ", 60) + `"`, `NaN`, `"1,234"`, `"3s"`, `"aembedding"`, `"failure"`, `[{"type":"tool_use"}]`, `[{"type":"text","text":"a"},{"type":"text","text":"b"}]`,
		`[{"type":"thinking"}]`, `{"type":"message","content":"c","stop_reason":"max_tokens"}`, `"refusal"`, `"tool_use"`, `{"error":{"message":"m"}}`,
		`{"content":"r"}`, `[{"role":"user","content":[{"type":"text","text":"p"}]}]`,
	})
}

func (m *mutator) mutate(t *tree) {
	m.spaced = m.rng.IntN(4) == 0
	nodes := t.all()
	n := nodes[m.rng.IntN(len(nodes))]
	if m.rng.IntN(2) == 0 {
		n = t
	}
	at := func() int { return m.rng.IntN(len(n.kids)) }
	kind := m.rng.IntN(9)
	if n.open == 0 || len(n.kids) == 0 && kind != 1 {
		if n != t {
			*n = tree{leaf: m.leaf()}
		}
		return
	}
	switch kind {
	case 0: // reorder
		i, j := at(), at()
		n.kids[i], n.kids[j] = n.kids[j], n.kids[i]
		if n.open == '{' {
			n.names[i], n.names[j] = n.names[j], n.names[i]
		}
	case 1: // add
		if n.open == '{' {
			n.names = append(n.names, fmt.Sprintf("%q", m.pick(m.names)))
		}
		n.kids = append(n.kids, &tree{leaf: m.leaf()})
	case 2: // repeat
		i := at()
		if n.open == '{' {
			n.names = append(n.names, n.names[i])
		}
		n.kids = append(n.kids, n.kids[i].clone())
	case 3: // leave out
		i := at()
		if n.open == '{' {
			n.names = append(n.names[:i:i], n.names[i+1:]...)
		}
		n.kids = append(n.kids[:i:i], n.kids[i+1:]...)
	case 4: // rename
		if n.open == '{' {
			n.names[at()] = fmt.Sprintf("%q", m.pick(m.names))
		}
	case 5: // escape a name or change its case
		if i := at(); n.open == '{' && len(n.names[i]) > 2 {
			if m.rng.IntN(2) == 0 {
				n.names[i] = fmt.Sprintf(`"\u%04x%s`, n.names[i][1], n.names[i][2:])
			} else {
				n.names[i] = strings.ToUpper(n.names[i][:2]) + n.names[i][2:]
			}
		}
	case 6: // wrap a value
		i := at()
		inner := n.kids[i]
		switch m.rng.IntN(3) {
		case 0:
			n.kids[i] = &tree{open: '[', kids: []*tree{inner}}
		case 1:
			n.kids[i] = &tree{open: '{', names: []string{fmt.Sprintf("%q", m.pick(m.names))}, kids: []*tree{inner}}
		default:
			quoted, err := json.Marshal(string(inner.write(nil, m)))
			if err == nil {
				n.kids[i] = &tree{leaf: string(quoted)}
			}
		}
	case 7: // escape a text
		if k := n.kids[at()]; k.open == 0 && len(k.leaf) > 2 && k.leaf[0] == '"' && k.leaf[1] != '\\' && k.leaf[1] < 0x80 {
			k.leaf = fmt.Sprintf(`"\u%04x%s`, k.leaf[1], k.leaf[2:])
		}
	default: // another value
		n.kids[at()] = &tree{leaf: m.leaf()}
	}
}

// bytes damages a document anywhere.
func (m *mutator) bytes(b []byte) []byte {
	b = append([]byte(nil), b...)
	i := m.rng.IntN(len(b))
	switch m.rng.IntN(4) {
	case 0:
		return b[:i]
	case 1:
		b[i] = byte(m.rng.IntN(256))
	case 2:
		b[i] ^= 1 << m.rng.IntN(8)
	default:
		b = append(b[:i:i], append([]byte(m.leaf()), b[i:]...)...)
	}
	return b
}
