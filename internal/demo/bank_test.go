package demo

import (
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
)

func words(text string) string {
	return " " + strings.Join(regexp.MustCompile(`[a-z0-9]+`).FindAllString(strings.ToLower(text), -1), " ") + " "
}

func TestBankIsLargeAndEven(t *testing.T) {
	b := bank(t)
	items := b.Items()
	if len(items) < 200 {
		t.Errorf("%d items, want 200 at least", len(items))
	}
	perTopic := map[string]int{}
	ids := map[string]bool{}
	for _, it := range items {
		perTopic[it.Topic]++
		if ids[it.ID] {
			t.Errorf("%s is there twice", it.ID)
		}
		ids[it.ID] = true
		if got, ok := b.Item(it.ID); !ok || got.ID != it.ID {
			t.Errorf("%s is not found by its id", it.ID)
		}
		if len(it.Questions) < 2 {
			t.Errorf("%s has no paraphrase", it.ID)
		}
	}
	if len(perTopic) != len(b.Topics()) || len(perTopic) < 8 {
		t.Errorf("topics %v", b.Topics())
	}
	for topic, n := range perTopic {
		if n < 15 {
			t.Errorf("topic %s has %d items", topic, n)
		}
	}
}

// The classes are only worth something if the texts keep to them: what is true by its
// class says the reference, and what is wrong does not.
func TestAnswersKeepToTheirClass(t *testing.T) {
	for _, it := range bank(t).Items() {
		ref := words(it.Reference)
		if n := len(strings.Fields(it.Reference)); n < 1 || n > 8 {
			t.Errorf("%s: reference of %d words", it.ID, n)
		}
		if n := len(strings.Fields(it.Criteria)); n < 5 || n > 30 || !strings.HasSuffix(it.Criteria, ".") || strings.Count(it.Criteria, ". ") > 0 {
			t.Errorf("%s: criteria %q: want one sentence", it.ID, it.Criteria)
		}
		for _, a := range slices.Concat(it.Good, it.Partial) {
			if !strings.Contains(words(a), ref) {
				t.Errorf("%s: %q does not say %q", it.ID, a, it.Reference)
			}
		}
		for _, a := range slices.Concat(it.Wrong, it.Questions) {
			if strings.Contains(words(a), ref) {
				t.Errorf("%s: %q gives %q away", it.ID, a, it.Reference)
			}
		}
		shortest := len(it.Good[0])
		for _, a := range it.Good {
			shortest = min(shortest, len(a))
		}
		for _, a := range it.Partial {
			if len(a) >= shortest {
				t.Errorf("%s: the partial %q is not shorter than the good answers", it.ID, a)
			}
		}
		for _, text := range slices.Concat(it.Questions, it.Good, it.Partial, it.Wrong, []string{it.Reference, it.Criteria}) {
			if text != strings.Join(strings.Fields(text), " ") {
				t.Errorf("%s: stray white space in %q", it.ID, text)
			}
		}
	}
}

// The same text twice would have two classes.
func TestABankTextMayNotStandForTwoThings(t *testing.T) {
	item := func() Item {
		return Item{ID: "t-1", Topic: "t", Questions: []string{"q1"}, Good: []string{"g1", "g2"}, Partial: []string{"p1"}, Wrong: []string{"w1", "w2"}}
	}
	f := func(change func(*Item), want string) {
		t.Helper()
		b := &Bank{answers: map[string]answer{}, asked: map[string]int{}}
		it := item()
		change(&it)
		err := b.add(it)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
	f(func(*Item) {}, "")
	f(func(it *Item) { it.Wrong[1] = " G1" }, "given twice")
	f(func(it *Item) { it.Wrong[1] = "Hello! g1" }, "given twice")
	f(func(it *Item) { it.Good[0] = " " }, "blank")
	f(func(it *Item) { it.Questions = []string{"q1", "Q1 "} }, "asked twice")
	f(func(it *Item) { it.Partial = nil }, "1 partial")
	f(func(it *Item) { it.ID = "other-1" }, "does not begin")
}

func TestGradeSeesThroughGreetingAndClosing(t *testing.T) {
	b := bank(t)
	rng := rand.New(rand.NewPCG(1, 2))
	dressed := 0
	for _, it := range b.Items() {
		for _, class := range []Class{Good, Partial, Wrong} {
			for _, a := range it.Answers(class) {
				for range 5 {
					out := dress(rng, a)
					if out != a {
						dressed++
					}
					got, ok := b.Grade(it.Questions[0], "  "+strings.ToUpper(out)+"\n")
					if !ok || got != class {
						t.Fatalf("%s: %q graded %q %t, want %q", it.ID, out, got, ok, class)
					}
				}
			}
		}
	}
	if dressed < 1000 {
		t.Errorf("only %d answers had a phrase around them", dressed)
	}
}

func TestGradeRefusesWhatIsNotTheBanks(t *testing.T) {
	b := bank(t)
	first, second := b.Items()[0], b.Items()[1]
	f := func(question, output string) {
		t.Helper()
		if class, ok := b.Grade(question, output); ok {
			t.Errorf("%q, %q graded %q", question, output, class)
		}
	}
	f("What is the capital of France?", first.Good[0])
	f(first.Questions[0], "Paris")
	f(first.Questions[0], "")
	f(first.Questions[0], first.Good[0]+" Then again, it may differ.")
	// right for another question
	f(first.Questions[0], second.Good[0])
}

func TestPhrasesCarryNoContent(t *testing.T) {
	if len(openings()) < 5 || len(closings()) < 5 || openings()[0] != "" || closings()[0] != "" {
		t.Fatal("want an empty phrase and several others")
	}
	weighty := regexp.MustCompile(`(?i)\b(no|not|never|but|however|maybe|perhaps|might|sorry|unfortunately|wrong|correct|right|\d+)\b|n't`)
	for _, p := range slices.Concat(openings(), closings()) {
		if weighty.MatchString(p) {
			t.Errorf("%q could be read as a part of the answer", p)
		}
	}
}

func TestOptionsOfAClass(t *testing.T) {
	f := func(c Class, keys []string, want string) {
		t.Helper()
		got, ok := c.Option(keys)
		if got != want || ok != (want != "") {
			t.Errorf("%s among %v: %q %t, want %q", c, keys, got, ok, want)
		}
	}
	yesNo, agree, letters := []string{"yes", "no"}, []string{"disagree", "agree"}, []string{"A", "B", "C", "D", "E"}
	f(Good, yesNo, "yes")
	f(Partial, yesNo, "no")
	f(Wrong, yesNo, "no")
	f(Good, agree, "agree")
	f(Partial, agree, "agree")
	f(Wrong, agree, "disagree")
	f(Good, letters, "B")
	f(Partial, letters, "B")
	f(Wrong, letters, "D")
	f(None, yesNo, "")
	f(Good, []string{"0", "1", "2", "3"}, "")
}
