package openai

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"assay/evaluators/judge"
)

// responseFormat is the schema of the answer: every letter of the sheet has its
// number, and nothing else is there.
func (s sheet) responseFormat() *responseFormat {
	letters := make(map[string]any, len(s.lines))
	var required []string
	for _, l := range s.lines {
		letters[l.letter] = map[string]any{"type": "number"}
		required = append(required, l.letter)
	}
	name, answer := "probabilities", closedObject(letters, required)
	if s.q.Each != "" {
		parts := make(map[string]any)
		var numbers []string
		for i := range s.q.FieldValues(s.q.Each) {
			number := strconv.Itoa(i + 1)
			parts[number] = answer
			numbers = append(numbers, number)
		}
		name, answer = "answers", closedObject(parts, numbers)
	}
	return &responseFormat{Type: "json_schema", JSONSchema: jsonSchema{
		Name:   "grade",
		Strict: true,
		Schema: closedObject(map[string]any{"reason": map[string]any{"type": "string"}, name: answer}, []string{"reason", name}),
	}}
}

func closedObject(properties map[string]any, required []string) map[string]any {
	return map[string]any{"type": "object", "properties": properties, "required": required, "additionalProperties": false}
}

// stated is an answer object: one of the three forms, with a reason or without.
type stated struct {
	Reason        string          `json:"reason"`
	Probabilities json.RawMessage `json:"probabilities"`
	Choice        *string         `json:"choice"`
	Answers       json.RawMessage `json:"answers"` // probabilities by the number of a block
}

func (a stated) usable() bool {
	return len(a.Probabilities) > 0 || a.Choice != nil || len(a.Answers) > 0
}

// readStructured reads the stated distribution.
func readStructured(c *completion, s sheet, minInside float64) (reading, error) {
	ch, err := only(c)
	if err != nil {
		return reading{}, err
	}
	text := c.text()
	switch calls := ch.Message.ToolCalls; {
	case len(calls) > 1, len(calls) == 1 && strings.TrimSpace(text) != "":
		return reading{}, &judge.UnusableError{Reason: judge.ReasonAmbiguous}
	case len(calls) == 1:
		text = calls[0].Function.Arguments
	}
	answer, err := findAnswer(text)
	if err != nil {
		if ch.FinishReason == "length" {
			return reading{}, &judge.UnusableError{Reason: judge.ReasonCut, Reask: true}
		}
		return reading{}, err
	}
	read := s.readStated
	if s.q.Each != "" {
		read = s.readEach
	}
	r, err := read(answer, minInside)
	if reason := excerpt(strings.TrimSpace(answer.Reason)); err == nil && reason != "" {
		r.note("judge_reason", reason)
	}
	return r, err
}

// findAnswer finds the answer object in what a model wrote. Bare JSON is tried first,
// so that a fence inside a string of it is never touched; then the whole answer
// without its fence; then objects in running text, where two that say different
// things are no answer.
func findAnswer(text string) (stated, error) {
	text = strings.TrimSpace(text)
	if text == "" {
		return stated{}, &judge.UnusableError{Reason: judge.ReasonEmptyAnswer, Reask: true}
	}
	if json.Valid([]byte(text)) {
		return parseAnswer(text)
	}
	if inner, ok := unfenced(text); ok && json.Valid([]byte(inner)) {
		return parseAnswer(inner)
	}
	objects := balancedObjects(text)
	if len(objects) == 0 {
		return stated{}, &judge.UnusableError{Reason: judge.ReasonProse, Reask: true}
	}
	last, err := parseAnswer(objects[len(objects)-1])
	if err != nil {
		return stated{}, err
	}
	for _, o := range objects[:len(objects)-1] {
		other, err := parseAnswer(o)
		if err == nil && !last.same(other) {
			return stated{}, &judge.UnusableError{Reason: judge.ReasonAmbiguous}
		}
	}
	return last, nil
}

func parseAnswer(object string) (stated, error) {
	var a stated
	if err := json.Unmarshal([]byte(object), &a); err != nil {
		return stated{}, malformed("no answer object")
	}
	if string(a.Probabilities) == "null" {
		a.Probabilities = nil
	}
	if string(a.Answers) == "null" {
		a.Answers = nil
	}
	if !a.usable() {
		return stated{}, malformed("neither probabilities nor choice")
	}
	return a, nil
}

// same compares what is answered, not how it is reasoned.
func (a stated) same(b stated) bool {
	if (a.Choice == nil) != (b.Choice == nil) || (a.Choice != nil && *a.Choice != *b.Choice) {
		return false
	}
	return sameJSON(a.Probabilities, b.Probabilities) && sameJSON(a.Answers, b.Answers)
}

func sameJSON(a, b json.RawMessage) bool {
	var x, y bytes.Buffer
	if len(a) > 0 && json.Compact(&x, a) != nil || len(b) > 0 && json.Compact(&y, b) != nil {
		return false
	}
	return bytes.Equal(x.Bytes(), y.Bytes())
}

// readEach reads an answer about several blocks. All have an answer or none counts: a
// share of the blocks that happened to be answered is nobody's question.
func (s sheet) readEach(a stated, minInside float64) (reading, error) {
	n := len(s.q.FieldValues(s.q.Each))
	answers, err := readAnswers(a.Answers)
	switch {
	case err != nil:
		return reading{}, err
	case len(answers) != n:
		return reading{}, malformed(fmt.Sprintf("%d answers, %d asked", len(answers), n))
	}
	all := reading{parts: make([][]float64, n)}
	for i := range n {
		raw, ok := answers[strconv.Itoa(i+1)]
		if !ok || string(raw) == "null" {
			return reading{}, malformed(fmt.Sprintf("answer %d is missing", i+1))
		}
		r, err := s.readStated(stated{Probabilities: raw}, minInside)
		var unusable *judge.UnusableError
		if errors.As(err, &unusable) {
			if unusable.Detail == nil {
				unusable.Detail = make(map[string]any)
			}
			unusable.Detail["failed_claim"] = i + 1
		}
		if err != nil {
			return reading{}, err
		}
		all.parts[i] = r.probabilities
		all.outside = max(all.outside, r.outside)
		if _, ok := r.detail["renormalised"]; ok {
			all.note("renormalised", true)
		}
	}
	return all, nil
}

// readAnswers reads an object of objects. A number that comes twice is two answers.
func readAnswers(raw json.RawMessage) (map[string]json.RawMessage, error) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return nil, malformed("answers is no object")
	}
	answers := make(map[string]json.RawMessage)
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return nil, malformed("answers cannot be read")
		}
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			return nil, malformed("answers cannot be read")
		}
		if _, twice := answers[key.(string)]; twice {
			return nil, &judge.UnusableError{Reason: judge.ReasonAmbiguous}
		}
		answers[key.(string)] = value
	}
	return answers, nil
}

// readStated checks the stated numbers letter by letter.
func (s sheet) readStated(a stated, minInside float64) (reading, error) {
	byLetter := make(map[string]float64, len(s.lines))
	if len(a.Probabilities) > 0 {
		if err := readNumbers(a.Probabilities, byLetter); err != nil {
			return reading{}, err
		}
		if a.Choice != nil {
			if err := agrees(*a.Choice, byLetter); err != nil {
				return reading{}, err
			}
		}
	} else {
		if a.Choice == nil {
			return reading{}, malformed("neither probabilities nor choice")
		}
		for _, l := range s.lines {
			byLetter[l.letter] = 0
		}
		if _, ok := byLetter[*a.Choice]; !ok {
			return reading{}, malformed(fmt.Sprintf("unknown choice %.20q", *a.Choice))
		}
		byLetter[*a.Choice] = 1
	}
	if len(byLetter) != len(s.lines) {
		return reading{}, malformed(fmt.Sprintf("%d options answered, %d asked", len(byLetter), len(s.lines)))
	}

	sum := 0.0
	for _, p := range byLetter {
		sum += p
	}
	if sum < 0.5 || sum > 1.5 {
		return reading{}, malformed(fmt.Sprintf("stated probabilities sum to %.3g", sum))
	}
	m := mass{options: make([]float64, len(s.q.Options)), listed: make([]bool, len(s.q.Options))}
	for _, l := range s.lines {
		p, ok := byLetter[l.letter]
		if !ok {
			return reading{}, malformed("letter " + l.letter + " is missing")
		}
		if l.option >= 0 {
			m.options[l.option], m.listed[l.option] = p/sum, true
		} else {
			m.abstain = p / sum
		}
	}
	r, err := m.reading(minInside)
	if err == nil && (sum < 0.98 || sum > 1.02) {
		r.note("renormalised", sum)
	}
	return r, err
}

// readNumbers reads an object of numbers. A key that comes twice is two answers.
func readNumbers(raw json.RawMessage, into map[string]float64) error {
	dec := json.NewDecoder(bytes.NewReader(raw))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return malformed("probabilities is no object")
	}
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return malformed("probabilities cannot be read")
		}
		value, err := dec.Token()
		p, ok := value.(float64)
		if err != nil || !ok || math.IsNaN(p) || math.IsInf(p, 0) || p < 0 {
			return malformed(fmt.Sprintf("option %.20v is no probability", key))
		}
		if _, twice := into[key.(string)]; twice {
			return &judge.UnusableError{Reason: judge.ReasonAmbiguous}
		}
		into[key.(string)] = p
	}
	return nil
}

// agrees refuses an answer that chooses one letter and gives another more.
func agrees(choice string, byLetter map[string]float64) error {
	p, ok := byLetter[choice]
	if !ok {
		return malformed(fmt.Sprintf("unknown choice %.20q", choice))
	}
	for _, other := range byLetter {
		if other > p {
			return &judge.UnusableError{Reason: judge.ReasonAmbiguous}
		}
	}
	return nil
}

// unfenced takes the code fence off an answer that is wholly inside one.
func unfenced(text string) (string, bool) {
	rest, ok := strings.CutPrefix(text, "```")
	if !ok {
		return "", false
	}
	rest, ok = strings.CutSuffix(rest, "```")
	if !ok {
		return "", false
	}
	// The word after the opening fence, json mostly, ends with its line or where
	// the object begins.
	if i := strings.IndexAny(rest, "{\n"); i >= 0 && !strings.ContainsAny(rest[:i], "\"}") {
		rest = rest[i:]
	}
	return strings.TrimSpace(rest), true
}

// balancedObjects returns the outermost {...} of a text, braces inside strings left
// out. An unclosed brace is stepped over.
func balancedObjects(text string) []string {
	var objects []string
	for i := 0; i < len(text); {
		if text[i] != '{' {
			i++
			continue
		}
		end := closing(text[i:])
		if end < 0 {
			// Every later brace is inside this one; only one that balances
			// by itself can still be found, and trying each is quadratic.
			if len(text)-i > 1<<16 {
				return objects
			}
			i++
			continue
		}
		objects = append(objects, text[i:i+end])
		i += end
	}
	return objects
}

// closing returns the length of the object that s begins with, or -1.
func closing(s string) int {
	depth, inString := 0, false
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case inString && c == '\\':
			i++
		case c == '"':
			inString = !inString
		case inString:
		case c == '{':
			depth++
		case c == '}':
			if depth--; depth == 0 {
				return i + 1
			}
		}
	}
	return -1
}
