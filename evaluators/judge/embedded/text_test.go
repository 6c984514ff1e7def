package embedded

import (
	"slices"
	"strings"
	"testing"
)

// stems reads a text and lists its stems.
func stems(text string) string {
	var out []string
	for _, t := range newLexicon().read(text).tokens {
		out = append(out, t.stem)
	}
	return strings.Join(out, " ")
}

func TestNumbersMeetUnderOneSpelling(t *testing.T) {
	f := func(want string, spellings ...string) {
		t.Helper()
		for _, s := range spellings {
			if got := stems(s); got != want {
				t.Errorf("%q is read as %q, want %q", s, got, want)
			}
		}
	}
	f("14", "14", "14th", "fourteen", "fourteenth", "XIV", "１４")
	f("21", "21", "twenty-one", "twenty first", "21st", "xxi")
	f("1250", "1250", "1,250", "one thousand two hundred and fifty", "1250.0")
	f("205", "two hundred five", "two hundred and five")
	f("1500000", "1.5 million", "1,500,000", "one million five hundred thousand")
	f("1990", "1990s", "1990")
	f("-5", "-5", " −5")
	f("5 km", "5km", "5 km")
	f("2024 march 4", "2024-03-04")
	f("world war 2", "World War II", "World War Two", "WW2", "WWII")
	// side by side, not one number
	f("5 3", "five, three", "5 3")
	f("1914 18", "1914-18")
}

func TestWordsThatAreNoNumbersStayWords(t *testing.T) {
	f := func(text, want string) {
		t.Helper()
		if got := stems(text); got != want {
			t.Errorf("%q is read as %q, want %q", text, got, want)
		}
	}
	f("I mix", "i mix")
	f("Xi spoke", "xi spok")
	f("a million reasons", "a million reason")
	f("2024-13-40", "2024 13 40")
	f("1,25", "1 25")
}

func TestSpellingsOfANameMeet(t *testing.T) {
	f := func(a, b string) {
		t.Helper()
		if stems(a) != stems(b) {
			t.Errorf("%q is read as %q, %q as %q", a, stems(a), b, stems(b))
		}
	}
	f("Čapek's robots", "capek robot")
	f("J.R.R. Tolkien", "J. R. R. Tolkien")
	f("the U.S.", "the United States")
	f("US", "USA")
	f("Straße", "STRASSE")
	f("don’t", "don't")
	f("running", "run")
	f("stories", "story")
	f("Nov 30", "November 30th")
	if stems("tell us") == stems("tell US") {
		t.Error("us is read as the country")
	}
}

func TestSentencesEndWhereTheyEnd(t *testing.T) {
	f := func(text string, want int) {
		t.Helper()
		d := newLexicon().read(text)
		if got := d.tokens[len(d.tokens)-1].sentence + 1; got != want {
			t.Errorf("%q: %d sentences, want %d", text, got, want)
		}
	}
	f("Dr. Lee met George W. Hale at 3.5 km. They left.", 2)
	f("One. Two! Three?", 3)
	f("It costs 3.50 dollars", 1)
	f("first\nsecond", 2)
	f("Well... yes", 2)
}

func TestOtherLanguagesAreToldFromNames(t *testing.T) {
	l := newLexicon()
	f := func(text string, want bool) {
		t.Helper()
		if got := l.foreign(text, l.read(text)); got != want {
			t.Errorf("%q: foreign %t, want %t", text, got, want)
		}
	}
	f("Das Haus wurde im Jahr 1900 gebaut und ist nicht alt", true)
	f("Le magasin est ouvert tous les jours sauf le dimanche", true)
	f("La tienda de ropa es grande", true)
	f("Il negozio è aperto anche di domenica per tutti", true)
	f("De winkel is niet open en ook niet op zondag", true)
	f("Dom jest bardzo stary i nie ma okien", true)
	f("Kauppa aukeaa aamulla kello kahdeksan ja sulkeutuu vasta illalla", true)
	f("店は日曜日に休みです", true)
	f("The shop is open on Sundays", false)
	f("Juan Carlos de la Cruz", false)
	f("Sturm und Drang", false)
	f("Les Misérables", false)
	f("Vincent van Gogh", false)
	f("Ludwig van Beethoven and Johann Sebastian Bach", false)
	f("Rio de Janeiro, São Paulo, Belo Horizonte, Porto Alegre, Curitiba, Recife, Manaus", false)
	f("A girl wears her ring on her left hand", false)
	f("42", false)
}

func TestWordsAroundAMentionDecideWhatItSays(t *testing.T) {
	l := newLexicon()
	f := func(text string, want mention) {
		t.Helper()
		v := &view{lex: l, idf: IDF{rest: 1}, answer: l.read(text)}
		if got := v.mention(lay(l.read("Lima"), v.answer, nil)); got != want {
			t.Errorf("%q: %+v, want %+v", text, got, want)
		}
	}
	f("It is Lima.", mention{})
	f("It is not Lima.", mention{negated: true})
	f("Cusco rather than Lima", mention{negated: true})
	f("Lima is not it", mention{refuted: true})
	f("Lima is a myth", mention{refuted: true})
	f("Lima, but really it is Cusco", mention{rejected: true, doubted: true})
	f("Lima it was when the treaty was signed, but that is long ago", mention{doubted: true})
	f("Not Cusco but Lima", mention{resolved: true})
	f("Lima, not Cusco", mention{preferred: true})
	f("Lima instead of Cusco", mention{preferred: true})
	f("perhaps Lima", mention{hedged: true})
	f("Lima or Cusco", mention{offered: true})
	// the kindest of two mentions counts
	f("Not Lima, some say. It is Lima.", mention{})
	// a negation in the sentence before is about something else
	f("It is not Cusco. Lima.", mention{})
}

func TestANameMeetsItsAcronym(t *testing.T) {
	l := newLexicon()
	f := func(reference, answer string, want bool) {
		t.Helper()
		if got := lay(l.read(reference), l.read(answer), nil).whole; got != want {
			t.Errorf("%q in %q: %t, want %t", reference, answer, got, want)
		}
	}
	f("World Health Organization", "It was the WHO.", true)
	f("World Health Organization", "It was the one who left.", false)
	f("European Space Agency", "the ESA", true)
	f("The European Space Agency", "ESA", true)
	f("ESA", "It is run by the European Space Agency.", true)
	f("ESA", "It is run by every small agency.", false)
	f("European Space Agency", "NASA", false)
}

func TestTheTightestStretchHoldsAllMatchedWords(t *testing.T) {
	l := newLexicon()
	ref, answer := l.read("red barn door"), l.read("The door is big. A red old barn has a door, red too.")
	m := lay(ref, answer, nil)
	if m.whole || len(m.spans) != 1 {
		t.Fatalf("spans %v, whole %t", m.spans, m.whole)
	}
	var inside []string
	for _, tok := range answer.tokens[m.spans[0].start:m.spans[0].end] {
		inside = append(inside, tok.text)
	}
	if want := []string{"barn", "has", "a", "door", "red"}; !slices.Equal(inside, want) {
		t.Errorf("stretch %v, want %v", inside, want)
	}
}

func TestWordFrequenciesSurviveTheirFile(t *testing.T) {
	var documents []string
	for i := range 40 {
		text := "every"
		if i%2 == 0 {
			text += " second"
		}
		if i == 0 {
			text += " lonely"
		}
		documents = append(documents, text)
	}
	counted := CountIDF(documents)
	read := counted.file().table()
	for _, word := range []string{"every", "second", "lonely", "unseen"} {
		if counted.Of(stem(word)) != read.Of(stem(word)) {
			t.Errorf("%s: %v counted, %v read", word, counted.Of(stem(word)), read.Of(stem(word)))
		}
	}
	if counted.Of(stem("every")) != 0 || counted.Of("lonely") != counted.Of("unseen") || counted.Of("lonely") <= 1 {
		t.Errorf("every %v, lonely %v, unseen %v", counted.Of(stem("every")), counted.Of("lonely"), counted.Of("unseen"))
	}
}
