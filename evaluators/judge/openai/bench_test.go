package openai

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"

	"assay/evaluators/judge"
)

// canned answers without a network.
type canned []byte

func (c canned) RoundTrip(r *http.Request) (*http.Response, error) {
	io.Copy(io.Discard, r.Body)
	r.Body.Close()
	return &http.Response{
		StatusCode: 200, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r,
		Header: http.Header{"Content-Type": {"application/json"}},
		Body:   io.NopCloser(bytes.NewReader(c)),
	}, nil
}

// What one question costs us: laying out, encoding, decoding twenty listed tokens and
// reading them. The network is left out.
func BenchmarkAsk(b *testing.B) {
	top := []string{listed("A", .7), listed("B", .2)}
	for len(top) < 20 {
		top = append(top, listed(strings.Repeat("w", len(top)), .001))
	}
	j, err := New(Config{BaseURL: "http://judge.example/v1", Model: "m", Method: judge.Logprobs},
		Deps{HTTP: &http.Client{Transport: canned(completionOf("A", position(top...)))}, Log: quiet})
	if err != nil {
		b.Fatal(err)
	}
	q := five(strings.Repeat("An answer of two kilobytes. ", 75))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := j.Ask(b.Context(), q); err != nil {
			b.Fatal(err)
		}
	}
}
