package pipeline

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"unicode/utf8"

	"assay/consumer"
	"assay/internal/checks"
	"assay/internal/interaction"
)

func private(store string, rules ...string) *privacy {
	return newPrivacy(&checks.File{Privacy: checks.Privacy{StoreText: store, Redact: rules}})
}

func TestRedaction(t *testing.T) {
	all := private("full", "email", "phone", "card", "secret")
	f := func(text, want string) {
		t.Helper()
		if got, n := all.redact(text); got != want || (n > 0) != (text != want) {
			t.Errorf("%q becomes %q (%d), want %q", text, got, n, want)
		}
	}
	f("write to ines.o'hara+shop@mail.example.co.uk today", "write to ines.o'[email] today")
	f("<mailto:kim@example.org>", "<mailto:[email]>")
	f("Grüße an jürgen@müller.example", "Grüße an [email]")
	f("no @ here, 3@4 either", "no @ here, 3@4 either")

	f("call +49 30 901820 or (030) 555-0199.", "call [phone] or ([phone].")
	f("call 020.7946.0018", "call [phone]")
	f("order 12345, 3 parcels, 19.99", "order 12345, 3 parcels, 19.99")

	f("card 4000 0566 5566 5556 please", "card [card] please")
	f("4000-0566-5566-5556", "[card]")
	f("card:4000056655665556;", "card:[card];")

	f("use sk-proj-Zx81kq0aPl29sMw7 now", "use [secret] now")
	f(`{"api_key": "hunter2hunter2"}`, `{"[secret]"}`)
	f("my password is: hunter22", "my password is: hunter22") // prose is not a form that can be told
	f("password: hunter22, thanks", "[secret], thanks")
	f("API key = abcd1234", "[secret]")
	f("Authorization: Bearer aG9sYW11bmRvMTIz.x_y", "Authorization: [secret]")
	f("id eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2ln", "id [secret]")
	f("AKIAQ3EGRIEXAMPLE77Z", "[secret]")
	f("-----BEGIN RSA PRIVATE KEY-----\nMIIEow\nIBAAK\n-----END RSA PRIVATE KEY-----\nbye", "[secret]\nbye")
	f("the Asia-Pacific-region and skateboarding-lessons", "the Asia-Pacific-region and skateboarding-lessons")

	f("", "")
	f("Das kostet 12 €. 日本語もあります。", "Das kostet 12 €. 日本語もあります。")

	some := private("full", "card")
	if got, n := some.redact("kim@example.org 4000056655665556"); got != "kim@example.org [card]" || n != 1 {
		t.Errorf("with one rule: %q (%d)", got, n)
	}
}

// A text is redacted and then cut: the other way round, half an address would stay.
func TestRedactionComesBeforeTheCut(t *testing.T) {
	p := private("excerpt", "email", "phone", "card", "secret")
	for _, secret := range []string{"ines.ohara@example.org", "+49 30 9018 2000 11", "4000 0566 5566 5556", "sk-proj-Zx81kq0aPl29sMw7Qd"} {
		for at := 240; at < 280; at++ {
			text := strings.Repeat("ä", at-1) + " " + secret + " and more text that follows until the excerpt is full, and then some more of it"
			got := p.excerpt(&text)
			if n := utf8.RuneCountInString(got); n > excerptRunes {
				t.Fatalf("%d runes", n)
			}
			tail := strings.TrimLeft(got, "ä")
			for n := 4; n <= len(secret); n++ {
				if strings.Contains(tail, secret[:n]) {
					t.Fatalf("%q at %d leaves %q", secret, at, tail)
				}
			}
		}
	}
}

func TestACutIsAtRunes(t *testing.T) {
	f := func(text string, n int, want string) {
		t.Helper()
		got := cut(text, n)
		if got != want {
			t.Errorf("cut(%q, %d) = %q, want %q", text, n, got, want)
		}
	}
	f("", 5, "")
	f("abcde", 5, "abcde")
	f("abcdef", 5, "abcd…")
	f("äöüßé", 5, "äöüßé")
	f("äöüßéà", 5, "äöüß…")
	f("日本語のテキスト", 4, "日本語…")
	f("a\xff\xfe\xfdbc", 4, "a\xff\xfe…")
}

func TestARawAnswerIsText(t *testing.T) {
	full := private("full", "email", "phone", "card", "secret")
	none := private("none", "email", "phone", "card", "secret")
	f := func(p *privacy, detail map[string]any, want string) {
		t.Helper()
		if got := p.detail(detail); got != want {
			t.Errorf("%v becomes %s, want %s", detail, got, want)
		}
	}
	f(full, nil, "")
	f(full, map[string]any{"raw": "ask kim@example.org", "order_gap": 0.25}, `{"order_gap":0.25,"raw":"ask [email]"}`)
	f(none, map[string]any{"raw": "ask kim", "coarse": true}, `{"coarse":true}`)
	f(none, map[string]any{"error": "400: cannot read kim@example.org"}, `{"error":"400: cannot read [email]"}`)
	// whatever else a judge puts there
	f(full, map[string]any{"why": []string{"kim@example.org"}, "more": map[string]any{"list": []any{"4000056655665556", 3}}},
		`{"more":{"list":["[card]",3]},"why":["[email]"]}`)
	// a judge cuts at 200 characters, perhaps inside an address
	cutOff := strings.Repeat("x ", 93) + "ines.ohara@exa"
	f(full, map[string]any{"raw": cutOff}, `{"raw":"`+strings.Repeat("x ", 93)+`…"}`)

	var out map[string]string
	if err := json.Unmarshal([]byte(full.detail(map[string]any{"p": math.NaN()})), &out); err != nil || out["detail_error"] == "" {
		t.Errorf("detail that is no JSON: %v, %v", out, err)
	}
	claims := map[string]any{"claims": []any{map[string]any{"text": "Write to kim@example.org. " + strings.Repeat("x", 300), "verdict": "S"}}}
	f(none, claims, `{"claims":[{"verdict":"S"}]}`)
	f(private("excerpt", "email"), claims, `{"claims":[{"text":"Write to [email]. `+strings.Repeat("x", 261)+`…","verdict":"S"}]}`)

	detail := map[string]any{"raw": "kim@example.org"}
	full.detail(detail)
	if detail["raw"] != "kim@example.org" {
		t.Error("the result's own detail was changed")
	}
}

func TestHowMuchTextIsStored(t *testing.T) {
	long := strings.Repeat("Guten Tag, äöü. ", 40)
	value := fmt.Sprintf(`{"id":"i-1","output":%q,"reference":"Ask kim@example.org","criteria":"Polite to kim@example.org.",`+
		`"context":["kim@example.org"],"note":"kim@example.org","kind":"chat","app":"shop","session_id":"s-1",`+
		`"messages":[{"role":"user","content":"kim@example.org?"},{"role":"assistant","content":"Yes."},{"role":"user","content":"I am kim@example.org"}]}`, long)
	f := func(store string) (*world, string) {
		w := newWorld(t, rules+"privacy: { store_text: "+store+" }\n")
		a := w.fresh()
		defer a.pt.Close()
		a.read(1, value)
		w.settle()
		if a.outcome(1) != consumer.Durable || len(w.store.evaluations) != 3 {
			t.Fatalf("%s: outcome %q, %d rows", store, a.outcome(1), len(w.store.evaluations))
		}
		all := fmt.Sprintf("%+v %+v", w.store.texts, w.store.evaluations)
		if strings.Contains(all, "kim@") {
			t.Errorf("%s: an address is stored: %s", store, all)
		}
		return w, all
	}
	synctest.Test(t, func(t *testing.T) {
		w, _ := f("full")
		text := w.store.texts[position{1, 0}]
		if text.Output != long || text.Input != "I am [email]" || !strings.Contains(text.Messages, "[email]?") || text.Store != "full" || text.Redactions < 5 {
			t.Errorf("full: %+v", text)
		}
		if text.Attributes["note"] != "[email]" || text.SessionID != "s-1" {
			t.Errorf("full: attributes %v", text.Attributes)
		}
		for _, e := range w.store.evaluations {
			if utf8.RuneCountInString(e.AnswerExcerpt) != excerptRunes || !strings.HasSuffix(e.AnswerExcerpt, "…") {
				t.Errorf("full: an excerpt of %d runes", utf8.RuneCountInString(e.AnswerExcerpt))
			}
		}
	})
	synctest.Test(t, func(t *testing.T) {
		w, _ := f("excerpt")
		text := w.store.texts[position{1, 0}]
		if utf8.RuneCountInString(text.Output) != excerptRunes || text.Messages != "" || text.Store != "excerpt" || text.Expected[0] != "Ask [email]" {
			t.Errorf("excerpt: %+v", text)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		w, all := f("none")
		text := w.store.texts[position{1, 0}]
		if text.Input+text.Output+text.Criteria+text.Messages != "" || len(text.Expected)+len(text.Context) > 0 || text.Store != "none" || text.SessionID != "s-1" {
			t.Errorf("none: %+v", text)
		}
		if strings.Contains(all, "Guten") || strings.Contains(all, "I am") {
			t.Errorf("none: text is stored: %s", all)
		}
	})
}

// An attribute that a check reads its reference from is text, whatever it is called.
func TestAnAttributeThatIsJudgedIsText(t *testing.T) {
	f := &checks.File{
		Privacy: checks.Privacy{StoreText: "none"},
		Checks:  []checks.Check{{Reference: checks.Text{Field: "attributes.answer"}}, {Criteria: checks.Text{Field: "attributes.rule"}}},
	}
	attrs := map[string]string{"answer": strings.Repeat("a", 1000), "rule": "r", "market": "de"}
	if got := newPrivacy(f).attributes(attrs); len(got) != 1 || got["market"] != "de" {
		t.Errorf("none: %v", got)
	}
	f.Privacy.StoreText = "excerpt"
	if got := newPrivacy(f).attributes(attrs); len(got) != 3 || len(got["answer"]) >= 1000 {
		t.Errorf("excerpt: %v", got)
	}
}

func TestADeadLetterKeepsWhatIsAllowed(t *testing.T) {
	f := func(store string, rec interaction.Record, stub bool, headers map[string]string) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, oneCheck+"privacy: { store_text: "+store+" }\n")
			a := w.fresh()
			defer a.pt.Close()
			rec.Topic, rec.Offset, rec.Time = topic, 1, logTime
			a.handle(t.Context(), rec)
			want := string(rec.Value)
			for i := range rec.Value { // the consumer reads the next fetch into these bytes
				rec.Value[i] = '#'
			}
			for i := range rec.Key {
				rec.Key[i] = '#'
			}
			for i := range rec.Headers {
				for j := range rec.Headers[i].Value {
					rec.Headers[i].Value[j] = '#'
				}
			}
			w.settle()
			l := w.store.letters[position{1, 0}]
			if l.Stub != stub || l.BodyBytes != uint64(len(want)) || l.BodySHA256 == [32]byte{} {
				t.Errorf("%s: stub %t of %d bytes", store, l.Stub, l.BodyBytes)
			}
			if stub && (l.Body != nil || l.Key != nil) || !stub && (string(l.Body) != want || string(l.Key) != "key-1") {
				t.Errorf("%s: key %q, body of %d bytes", store, l.Key, len(l.Body))
			}
			if fmt.Sprint(l.Headers) != fmt.Sprint(headers) {
				t.Errorf("%s: headers %v, want %v", store, l.Headers, headers)
			}
			if l.Reason == "" || l.Error == "" || utf8.RuneCountInString(l.Error) > 500 || l.AssayVersion != "test" || l.Attempts != 1 {
				t.Errorf("%s: %+v", store, l)
			}
		})
	}
	rec := func(body string) interaction.Record {
		return interaction.Record{Key: []byte("key-1"), Value: []byte(body), Headers: []interaction.Header{
			{Key: "Authorization", Value: []byte("Bearer abc")}, {Key: "from", Value: []byte("kim@example.org")}, {Key: "X-Api-Key", Value: []byte("k")}}}
	}
	open := map[string]string{"Authorization": "[secret]", "from": "kim@example.org", "X-Api-Key": "[secret]"}
	f("full", rec("<html>kim@example.org"), false, open)
	f("excerpt", rec("<html>"), false, open)
	f("none", rec("<html>"), true, map[string]string{"Authorization": "[secret]", "from": "[email]", "X-Api-Key": "[secret]"})
	f("full", rec("<"+strings.Repeat("x", deadLetterBody)), true, open)
	f("full", rec("["+strings.Repeat("7,", 400)+"7]"), false, open)
}
