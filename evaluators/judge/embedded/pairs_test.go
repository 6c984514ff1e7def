package embedded

import (
	"fmt"
	"testing"
)

// A pairCase is a pair written by hand with what a careful person says of it:
// agree, disagree, or a Reason to abstain.
type pairCase struct {
	why        string
	question   string
	answer     string
	references []string
	want       string
}

func one(why, question, answer, reference, want string) pairCase {
	return pairCase{why, question, answer, []string{reference}, want}
}

// handMade are pairs that no training data holds, in the words of a shop's and a
// library's help desk, of school books and of quizzes.
func handMade() []pairCase {
	const yes, no = "agree", "disagree"
	return []pairCase{
		// the same words
		one("exact", "Which river runs through Vienna?", "The Danube", "The Danube", yes),
		one("exact but for case and marks", "Which river runs through Vienna?", "the danube!", "Danube", yes),
		one("exact sentence", "When do you open on Sundays?", "The reading room opens at noon on Sundays.", "The reading room opens at noon on Sundays.", yes),
		one("accents", "Who wrote The Stranger?", "Albert Camus wrote L'Étranger.", "Albert Camus", yes),
		one("accents in the reference", "Who painted The Two Fridas?", "Frida Kahlo", "Frída Káhlo", yes),

		// the same fact in other words
		one("inside a sentence", "Which river runs through Vienna?", "Vienna lies on the Danube, which crosses the city from northwest to southeast.", "Danube", yes),
		one("polite wrapping", "What does the basic plan cost?", "Thanks for asking! The basic plan costs 12 dollars a month.", "12 dollars a month", yes),
		one("part of a name", "Who discovered penicillin?", "It was discovered by Fleming in 1928.", "Alexander Fleming", yes),
		one("fuller name", "Who discovered penicillin?", "Sir Alexander Fleming, a Scottish physician", "Alexander Fleming", yes),
		one("plural and tense", "What do bees collect?", "Bees are collecting nectar and pollen from flowers.", "nectar and pollen", yes),
		one("spelling variant", "Who composed Swan Lake?", "Pyotr Ilyich Tchaikovsky composed it.", "Tchaikovskij", yes),
		one("hyphen", "Which hero climbs walls?", "Spiderman climbs walls.", "Spider-Man", yes),
		one("acronym", "Which league has the Packers?", "The Packers play in the NFL.", "National Football League", yes),
		one("sentence said again", "How long is the warranty?", "You get a two-year warranty on every kettle.", "Every kettle comes with a warranty of two years.", yes),
		one("sentence, longer", "Where can I return a parcel?", "Parcels can be returned free of charge at any post office; just bring the printed label with you.", "Return parcels at any post office with the printed label.", yes),

		// numbers
		one("number word", "How many moons has Mars?", "Mars has two moons, Phobos and Deimos.", "2", yes),
		one("ordinal", "Which century saw the Black Death?", "It came in the fourteenth century.", "14th century", yes),
		one("thousands mark", "How many seats has the hall?", "The hall seats 1,250 people.", "1250", yes),
		one("roman numeral", "Which world war ended in 1945?", "World War Two ended in 1945.", "World War II", yes),
		one("month short form", "When does the sale end?", "The sale ends on Nov 30.", "November 30", yes),
		one("number conflict", "How many seats has the hall?", "The hall seats 900 people.", "1250", no),
		one("year conflict", "When was the bridge opened?", "The bridge was opened in 1932.", "1937", no),
		one("year conflict in a sentence", "When was the bridge opened?", "The bridge opened to traffic in 1932.", "The bridge opened to traffic in 1937.", no),
		one("price conflict", "What does the basic plan cost?", "The basic plan costs 15 dollars a month.", "The basic plan costs 12 dollars a month.", no),
		one("day conflict", "When does the sale end?", "The sale ends on November 3.", "November 30", no),

		// another fact
		one("another name", "Which river runs through Vienna?", "The Rhine", "Danube", no),
		one("another name in a sentence", "Who discovered penicillin?", "Penicillin was discovered by Louis Pasteur in his Paris laboratory.", "Alexander Fleming", no),
		one("repeats the question only", "Which river runs through Vienna?", "A river runs through Vienna.", "Danube", no),
		one("on another topic", "How long is the warranty?", "Our shop is open from Monday to Friday.", "Two years", no),

		// negation
		one("denied", "Which river runs through Vienna?", "It is not the Danube.", "Danube", no),
		one("denied in a sentence", "Can I cancel the order?", "The order cannot be cancelled once it is paid.", "The order can be cancelled once it is paid.", no),
		one("never", "Does the museum charge for children?", "Children never enter the museum free of charge.", "Children enter the museum free of charge.", no),
		one("called a myth", "What did Newton see fall?", "The apple is a myth.", "An apple", no),
		one("yes", "Is the pool heated?", "Yes, the pool is heated all year.", "Yes", yes),
		one("no for yes", "Is the pool heated?", "No, the pool is not heated.", "Yes", no),
		one("yes for no", "Do you ship to Iceland?", "Yes, we ship there weekly.", "No", no),
		one("no", "Do you ship to Iceland?", "No, sorry, we do not ship there.", "No", yes),

		// correction
		one("not X but the reference", "Which river runs through Vienna?", "Not the Rhine but the Danube.", "Danube", yes),
		one("not the reference but X", "Which river runs through Vienna?", "Not the Danube but the Rhine.", "Danube", no),
		one("reference, not X", "What is the capital of Brazil?", "Brasilia, not Salvador.", "Brasilia", yes),
		one("X, not reference", "What is the capital of Brazil?", "Salvador, not Brasilia.", "Brasilia", no),
		one("rumour corrected", "What is the capital of Brazil?", "Many people think it is Salvador, but the capital is Brasilia.", "Brasilia", yes),
		one("corrected the wrong way", "What is the capital of Brazil?", "Many people think it is Brasilia, but the capital is Salvador.", "Brasilia", no),
		one("rather than", "Who invented the telephone?", "Meucci rather than Bell", "Alexander Graham Bell", no),

		// hedging and refusing
		one("several guesses", "What is the capital of Brazil?", "It might be Salvador, Brasilia or Recife, I am not sure.", "Brasilia", no),
		one("refusal", "What is the capital of Brazil?", "I'm sorry, I don't have that information.", "Brasilia", no),
		one("refusal of an assistant", "How long is the warranty?", "As an AI model I cannot look up warranty terms. Please contact the shop.", "Two years", no),
		one("asks back", "When does the sale end?", "Could you please tell me which sale you mean?", "November 30", no),

		// several references
		{"second alternative", "Which of Jupiter's moons did Galileo see?", "He saw Europa.", []string{"Io", "Europa", "Ganymede", "Callisto"}, yes},
		{"none of the alternatives", "Which of Jupiter's moons did Galileo see?", "He saw Titan.", []string{"Io", "Europa", "Ganymede", "Callisto"}, no},
		{"an unreadable alternative does not hinder", "What is the capital of Greece?", "Athens", []string{"Αθήνα", "Athens"}, yes},
		{"a long alternative does not hinder", "What is the capital of Greece?", "Athens", []string{words(60), "Athens"}, yes},

		// lists
		one("list in another order", "Which colours has the flag?", "The flag is red, white and green.", "green, white and red", yes),
		one("other list", "Which colours has the flag?", "The flag is black, blue and orange.", "green, white and red", no),
		one("list with extras", "Which colours has the flag?", "green, white, red and yellow", "green, white and red", string(OtherKind)),
		one("list with one exchanged", "Which colours has the flag?", "green, white and blue", "green, white and red", string(OtherKind)),

		// what is not for this judge
		one("unit to convert", "How long is the trail?", "The trail is about 7.5 miles long.", "12 km", string(Units)),
		one("rounded quantity", "How heavy is the bike?", "It weighs 11 kg.", "11.2 kg", string(Units)),
		one("tolerance", "What is the gap?", "It is 0.7 mm.", "0.7 mm ± 0.05", string(Units)),
		one("same quantity needs no tolerance", "How heavy is the bike?", "The bike weighs 11.2 kg.", "11.2 kg", yes),
		one("German answer", "Which river runs through Vienna?", "Der Fluss ist die Donau und er ist nicht schmal.", "Danube", string(UnsupportedLanguage)),
		one("French reference", "Where is the meeting?", "In the town hall", "La réunion est dans la mairie", string(UnsupportedLanguage)),
		one("Spanish question", "¿Qué río pasa por la ciudad y dónde está?", "Danube", "Danube", string(UnsupportedLanguage)),
		one("Greek answer", "What is the capital of Greece?", "Η πρωτεύουσα είναι η Αθήνα", "Athens", string(UnsupportedLanguage)),
		one("Russian reference", "What is the capital of Russia?", "Moscow", "Москва", string(UnsupportedLanguage)),
		one("no reference", "Which river runs through Vienna?", "Danube", "", string(NoReference)),
		one("blank reference", "Which river runs through Vienna?", "Danube", " \u200b\n", string(NoReference)),
		one("long reference", "Tell me all.", "Danube", words(60), string(ReferenceTooLong)),
		one("policy", "What if a parcel is lost?", "We will send you a new one.", "The agent must apologise and should always offer a replacement.", string(OtherKind)),
		one("negated reference", "Is it covered?", "It is covered.", "Water damage is not covered by the plan.", string(OtherKind)),
		one("hedged reference", "Who built it?", "The Romans", "It was probably built by the Romans.", string(OtherKind)),
		one("JSON", "Give the object.", `{"a": 1}`, `{"a": 1, "b": 2}`, string(OtherKind)),
		one("formula", "Derive it.", "2x", "x^2 + 3", string(OtherKind)),
		one("program", "Print it.", "Use print.", "func main() { fmt.Println(1); }", string(OtherKind)),
		one("only signs", "Which sign?", "a plus", "+", string(OtherKind)),
	}
}

// words makes a reference of n plain words.
func words(n int) string {
	text := "The committee of the town"
	for i := 5; i < n; i++ {
		text += fmt.Sprintf(" and the office in room number %d", i)[:8]
	}
	return text
}

func TestHandMadePairsAreJudgedAsAPersonWould(t *testing.T) {
	j := newJudge(t, Config{})
	for _, c := range handMade() {
		p, reason := j.Compare(Pair{Question: c.question, Answer: c.answer, References: c.references})
		got := string(reason)
		if reason == "" {
			got = "disagree"
			if p >= 0.5 {
				got = "agree"
			}
		}
		if got != c.want {
			t.Errorf("%s: %q for %q: %s (p %.2f), want %s", c.why, c.answer, c.references, got, p, c.want)
		}
	}
}

func newJudge(t testing.TB, cfg Config) *Judge {
	t.Helper()
	j, err := NewWith(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return j
}
