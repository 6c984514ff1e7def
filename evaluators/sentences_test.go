package evaluators

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestATextIsTakenApartAtItsSentences(t *testing.T) {
	f := func(text string, want ...string) {
		t.Helper()
		if got := sentences(text); !slices.Equal(got, want) {
			t.Errorf("%q:\n got %q\nwant %q", text, got, want)
		}
	}
	f("")
	f(" \n\n --- \n *** ")
	f("Canberra", "Canberra")
	f("It opened in 1937. It is red.", "It opened in 1937.", "It is red.")
	f("Is it red? Yes! It is…", "Is it red?", "Yes!", "It is…")
	f("What?! He said \"no.\" Then (as ever) he left.)", "What?!", "He said \"no.\"", "Then (as ever) he left.)")
	f("Wait... there is more. Wait... There is.", "Wait... there is more.", "Wait...", "There is.")
	f("\"Stop!\" he said. Nobody did.", "\"Stop!\" he said.", "Nobody did.")

	// points that end nothing
	f("Pi is 3.14159. See example.com or v1.2 of it.", "Pi is 3.14159.", "See example.com or v1.2 of it.")
	f("Dr. Who met Mr. J. K. Smith at St. Mary's. They spoke.", "Dr. Who met Mr. J. K. Smith at St. Mary's.", "They spoke.")
	f("Use fruit, e.g. Apples, vs. Pears. See Fig. 3, No. 5 and p. 7.", "Use fruit, e.g. Apples, vs. Pears.", "See Fig. 3, No. 5 and p. 7.")
	f("The answer is no. She left.", "The answer is no.", "She left.")
	f("The U.S. Senate sat at 9 a.m. Monday. It rained.", "The U.S. Senate sat at 9 a.m. Monday.", "It rained.")
	f("Am 14. März 1879 kam er zur Welt. Das war in Ulm.", "Am 14. März 1879 kam er zur Welt.", "Das war in Ulm.")
	f("He is 14. She is 9.", "He is 14.", "She is 9.")

	// other scripts
	f("橋は1937年に開通した。色は赤い！本当？はい。", "橋は1937年に開通した。", "色は赤い！", "本当？", "はい。")
	f("पुल 1937 में खुला। वह लाल है।", "पुल 1937 में खुला।", "वह लाल है।")
	f("هل هو أحمر؟ نعم.", "هل هو أحمر؟", "نعم.")
	f("¿Es rojo? Sí. ¡Claro!", "¿Es rojo?", "Sí.", "¡Claro!")

	// marks stay with the sentence before
	f("It opened in 1937. [1] It is red.[2][3] It is long [1, 2]. End.",
		"It opened in 1937. [1]", "It is red.[2][3]", "It is long [1, 2].", "End.")
	f("It opened. [Note] It is red.", "It opened.", "[Note] It is red.")

	// lines
	f("Here is what I know:\n1. It opened in 1937. That is long ago.\n2. It is red\n   and long.\n\nAsk me.",
		"Here is what I know:", "1. It opened in 1937. That is long ago.", "2. It is red\n   and long.", "Ask me.")
	f("- red\n- long\n* old\n(a) tall\nb) wide", "- red", "- long", "* old", "(a) tall", "b) wide")
	f("## Bridges\nThe Golden Gate Bridge opened in 1937 and was for a long\ntime the longest one. It is red.",
		"## Bridges", "The Golden Gate Bridge opened in 1937 and was for a long\ntime the longest one.", "It is red.")
	f("Opened: 1937\nColour: red\r\nLength: 2.7 km", "Opened: 1937", "Colour: red", "Length: 2.7 km")
	f("Run this:\n```go\nfmt.Println(\"a. B\")\n\nos.Exit(1)\n```\nIt ends.", "Run this:", "```go\nfmt.Println(\"a. B\")\n\nos.Exit(1)\n```", "It ends.")
	f("| a | b |\n|---|---|\n| 1. X | 2 |", "| a | b |", "| 1. X | 2 |")
	f("E. coli is a bacterium. A. Einstein was not.", "E. coli is a bacterium.", "A. Einstein was not.")
}

// Sentences are pieces of the text in order, and together all of it but what holds no
// letter and no digit.
func FuzzSentences(f *testing.F) {
	for _, seed := range []string{"A. B! C? 1. D", "e.g. [1] [2,3]. ```\nx\n", "- a\n  b\n\nc。d", "... \"x.\" )]", strings.Repeat("a.", 100), "[[[1]"} {
		f.Add(seed)
	}
	letters := func(s string) string {
		return strings.Map(func(r rune) rune {
			if letterOrDigit(r) {
				return r
			}
			return -1
		}, s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if !utf8.ValidString(text) {
			return
		}
		pieces := sentences(text)
		for _, p := range pieces {
			if strings.TrimSpace(p) != p || !strings.ContainsFunc(p, letterOrDigit) {
				t.Fatalf("piece %q of %q", p, text)
			}
		}
		if got, want := letters(strings.Join(pieces, "\n")), letters(text); got != want {
			t.Fatalf("%q: letters %q, want %q", text, got, want)
		}
	})
}

// A log may hold anything, and a long answer must not cost more than its length.
func TestLongTextsAreTakenApartInLinearTime(t *testing.T) {
	for _, piece := range []string{"a", ". ", "[", "[1] ", "a.b ", "\n", "- x\n", "```", "Mr. ", "。"} {
		text := strings.Repeat(piece, 500_000/len(piece))
		// quadratic work would take hours and hit the test's limit
		if n := len(sentences(text)); n > len(text) {
			t.Errorf("%q: %d sentences", piece, n)
		}
	}
}
