package main

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"

	"assay/evaluators/judge/embedded"
)

// assistants are the five whose answers people judged, in the order of the data.
func assistants() []string { return []string{"fid", "gpt35", "chatgpt", "gpt4", "newbing"} }

// A question is one entry of the data: its references and what was answered.
type question struct {
	text     string
	golds    []string
	answers  []answer
	improper bool
}

// An answer is one assistant's, with people's verdict or none.
type answer struct {
	assistant string
	text      string
	verdict   *bool
}

// load reads the data file and returns its questions and the file's SHA-256.
func load(path string) ([]question, string, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, "", err
	}
	var entries []map[string]json.RawMessage
	if err := json.Unmarshal(raw, &entries); err != nil {
		return nil, "", fmt.Errorf("%s: %w", path, err)
	}
	sum := sha256.Sum256(raw)
	questions := make([]question, 0, len(entries))
	for i, e := range entries {
		q, err := parse(e)
		if err != nil {
			return nil, "", fmt.Errorf("%s: entry %d: %w", path, i, err)
		}
		questions = append(questions, q)
	}
	return questions, hex.EncodeToString(sum[:]), nil
}

func parse(e map[string]json.RawMessage) (question, error) {
	var (
		q    question
		gold *string
	)
	read := func(key string, into any) error {
		raw, ok := e[key]
		if !ok {
			return fmt.Errorf("no field %s", key)
		}
		if err := json.Unmarshal(raw, into); err != nil {
			return fmt.Errorf("field %s: %w", key, err)
		}
		return nil
	}
	if err := read("question", &q.text); err != nil {
		return q, err
	}
	if err := read("golden_answer", &gold); err != nil {
		return q, err
	}
	if err := read("improper", &q.improper); err != nil {
		return q, err
	}
	if gold != nil {
		q.golds = splitGolds(*gold)
	}
	for _, name := range assistants() {
		var text *string
		a := answer{assistant: name}
		if err := read("answer_"+name, &text); err != nil {
			return q, err
		}
		if err := read("judge_"+name, &a.verdict); err != nil {
			return q, err
		}
		if text != nil {
			a.text = *text
		}
		q.answers = append(q.answers, a)
	}
	return q, nil
}

// splitGolds parts the alternatives, which the data joins by a stroke. A stroke that
// belongs to one answer (6/1, AC/DC) is parted too: which is which is not marked, and
// the parts still overlap with right answers.
func splitGolds(gold string) []string {
	var golds []string
	for part := range strings.SplitSeq(gold, "/") {
		part = strings.TrimSpace(part)
		if part != "" && !slices.Contains(golds, part) {
			golds = append(golds, part)
		}
	}
	return golds
}

// A kind is where a row comes from.
type kind int

const (
	short    kind = iota // the data's own references
	sentence             // another assistant's approved answer as the reference
	trap                 // made by code
)

// A row is one pair with what people said of it.
type row struct {
	kind      kind
	question  int // index, for clustering
	assistant string
	pair      embedded.Pair
	agree     bool
}

// rows lays out every pair of the questions. Improper questions (out of date or
// without an answer, as the data's makers marked them) are left out: where they carry
// verdicts at all, those were given on what was so later than the reference.
func rows(questions []question) []row {
	var out []row
	for i, q := range questions {
		if q.improper || len(q.golds) == 0 {
			continue
		}
		for _, a := range q.answers {
			if a.verdict == nil || strings.TrimSpace(a.text) == "" {
				continue
			}
			out = append(out, row{short, i, a.assistant, embedded.Pair{Question: q.text, Answer: a.text, References: q.golds}, *a.verdict})
			if ref, ok := approved(q, a); ok {
				out = append(out, row{sentence, i, a.assistant, embedded.Pair{Question: q.text, Answer: a.text, References: []string{ref}}, *a.verdict})
			}
		}
	}
	return append(out, traps(questions)...)
}

// sentenceWords bounds what serves as a sentence reference.
const (
	sentenceWordsMin = 6
	sentenceWordsMax = 45
)

// approved picks, by hash, another assistant's answer that people called right.
func approved(q question, a answer) (string, bool) {
	var candidates []string
	for _, other := range q.answers {
		n := len(strings.Fields(other.text))
		if other.assistant != a.assistant && other.verdict != nil && *other.verdict && n >= sentenceWordsMin && n <= sentenceWordsMax {
			candidates = append(candidates, other.text)
		}
	}
	if len(candidates) == 0 {
		return "", false
	}
	return candidates[pick(q.text+"\x00"+a.assistant, len(candidates))], true
}

// pick chooses one of n by the hash of a key: the same on every machine, and
// independent of the order in which rows are made.
func pick(key string, n int) int {
	sum := sha256.Sum256([]byte(key))
	return int(binary.BigEndian.Uint64(sum[8:16]) % uint64(n))
}
