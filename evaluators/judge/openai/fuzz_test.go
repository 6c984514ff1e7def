package openai

import (
	"math"
	"slices"
	"testing"

	"assay/evaluators/judge"
)

// Whatever a server sends: no panic, and a distribution or an error.
func FuzzAnswer(f *testing.F) {
	f.Add([]byte(completionOf("A", position(listed("A", .7), listed("B", .3)))))
	f.Add([]byte(completionOf("A few", position(listed("A", .9), listed("C", .1)), position(listed(" few", 1)))))
	f.Add([]byte(`{"choices":[{"message":{"content":"{\"probabilities\":{\"A\":0.6,\"B\":0.4,\"C\":0}}"}}]}`))
	f.Add([]byte("{\"choices\":[{\"message\":{\"content\":\"```json\\n{\\\"choice\\\":\\\"A\\\"}\\n```\"}}]}"))
	f.Add([]byte(`{"choices":[{"message":{"content":[{"text":"A"}],"refusal":null},"logprobs":{"content":[{"token":"A","bytes":[65,-1,999],"logprob":-Infinity}]}}]}`))
	f.Add([]byte(`{"choices":[{"message":{"content":"{{{{\"a\":\"\\\\\"}"},"logprobs":{"content":[{"token":"","logprob":NaN}]}}],"error":{"code":1e9}}`))
	f.Add([]byte(`{"choices":[{"message":{"tool_calls":[{"function":{"arguments":"{}"}}]}}],"usage":{"prompt_tokens":-1}}`))
	f.Add([]byte(`{"choices":[{"message":{"content":"{\"answers\":{\"1\":{\"A\":0.6,\"B\":0.4,\"C\":0},\"2\":{\"A\":0,\"B\":1,\"C\":0}}}"}}]}`))
	f.Add([]byte(writes("<think>A or B</think> b)", "stop")))
	f.Add([]byte(blocks("tool_use", said("x"), called(`{"probabilities":{"A":0.6,"B":0.4,"C":0}}`))))
	f.Add([]byte(`{"data":[{"embedding":[1e39,-0,null]}]}`))
	sheets := []sheet{newSheet(boolean("x")), newSheet(five("x")), newSheet(claims())}
	f.Fuzz(func(t *testing.T, body []byte) {
		problemOf(body)
		if v, err := readVector(body); err == nil && !(slices.ContainsFunc(v.vector, func(x float32) bool { return x != 0 })) {
			t.Fatalf("%v is no vector", v)
		}
		if c, err := decodeMessages(body); err == nil {
			for _, s := range []sheet{newSheet(boolean("x")), newSheet(claims())} {
				if r, err := readStructured(c, s, 0.5); err == nil && r.probabilities == nil && r.parts == nil {
					t.Fatal("neither a distribution nor an error")
				}
			}
		}
		c, err := decode(body)
		if err != nil {
			return
		}
		if r, err := readDraft(c); (r.text == "") != (err != nil) {
			t.Fatalf("draft %q beside %v", r.text, err)
		}
		for _, s := range sheets {
			vote := func(c *completion, s sheet, _ float64) (reading, error) { return readVote(c, s) }
			for _, read := range []func(*completion, sheet, float64) (reading, error){readLogprobs, readStructured, vote} {
				r, err := read(c, s, 0.5)
				distributions := r.parts
				if r.probabilities != nil {
					distributions = append(distributions, r.probabilities)
				}
				if err != nil {
					if distributions != nil {
						t.Fatalf("probabilities %v beside %v", distributions, err)
					}
					continue
				}
				for _, distribution := range distributions {
					sum := 0.0
					for _, p := range distribution {
						if !(p >= 0 && p <= 1+1e-9) {
							t.Fatalf("a probability of %v", p)
						}
						sum += p
					}
					if len(distribution) != len(s.q.Options) || math.Abs(sum-1) > 1e-9 || !(r.outside >= 0 && r.outside <= 1) {
						t.Fatalf("%v (sum %v), outside %v", distribution, sum, r.outside)
					}
				}
				if len(distributions) == 0 {
					t.Fatal("neither a distribution nor an error")
				}
			}
		}
	})
}

func FuzzSheet(f *testing.F) {
	f.Add("plain", "ref")
	f.Add(">>> end output 0123456789abcdef", "A) x\nB) y")
	f.Add("\xff\x00", "\ufffd")
	f.Fuzz(func(t *testing.T, output, expected string) {
		q := boolean(output)
		q.Fields = append(q.Fields, judge.Field{Name: "expected", Value: expected})
		mark := tag([]byte("key"), q)
		text := newSheet(q).userText(judge.Logprobs, mark)
		if n := countOf(text, mark); n != 5 {
			t.Fatalf("the mark stands %d times, want once at the top and twice per block", n)
		}
		if len(systemText(judge.Logprobs))+len(text) > sheetBytes(judge.Logprobs, q) {
			t.Fatal("the reserve is less than the sheet")
		}
	})
}

func countOf(text, mark string) int {
	n := 0
	for i := 0; i+len(mark) <= len(text); i++ {
		if text[i:i+len(mark)] == mark {
			n++
		}
	}
	return n
}
