package evaluators_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"assay/evaluators"
	"assay/evaluators/judge"
	"assay/internal/interaction"
)

// finds answers claim questions by the claim's text: S, C, N or X with .7, the rest
// shared by the others. What it does not know is X.
func finds(verdicts map[string]string) judgeFunc {
	return func(ctx context.Context, q judge.Question) (judge.Answer, error) {
		claim, _ := q.Field("claim")
		p := map[string]float64{"S": .1, "C": .1, "N": .1, "X": .1}
		if v, ok := verdicts[claim]; ok {
			p[v] = .7
		} else {
			p["X"] = .7
		}
		return says(p)(ctx, q)
	}
}

// bridge is an answer of four claims and a greeting.
func bridge() evaluators.Item {
	it := complete()
	it.Input = text("Tell me about the bridge.")
	it.Output = text("Gladly! It opened in 1937. It is red. It is 2.7 km long. It cost nothing.")
	it.Context = []string{"The bridge opened in 1937.", " ", "It is painted orange and 2.7 km long."}
	return it
}

func bridgeVerdicts() map[string]string {
	return map[string]string{"It opened in 1937.": "S", "It is red.": "C", "It is 2.7 km long.": "S", "It cost nothing.": "N"}
}

func TestEvaluatorsOverClaimsCountTheSameVerdicts(t *testing.T) {
	line := .4
	f := func(name string, s evaluators.Settings, score, confidence float64, label string, passed bool) {
		t.Helper()
		r := evaluate(t, evaluator(t, name, s), finds(bridgeVerdicts()), bridge())
		if r.Status != evaluators.OK || !near(*r.Score, score) || !near(*r.Confidence, confidence) || r.Label != label || *r.Passed != passed {
			t.Errorf("%s: %s %s %v %v %q %v, want %v %v %q %v", name, r.Status, r.Reason, *r.Score, *r.Confidence, r.Label, *r.Passed, score, confidence, label, passed)
		}
		if list := r.Detail["claims"].([]any); len(list) != 5 || list[0].(map[string]any)["verdict"] != "X" || list[2].(map[string]any)["text"] != "It is red." {
			t.Errorf("%s: claims %v", name, list)
		}
		if r.Attempts != 5 || r.Usage.InputTokens != 1500 || r.Method != judge.Simulated || r.Model != "test/1" {
			t.Errorf("%s: %d attempts, usage %+v, %s %s", name, r.Attempts, r.Usage, r.Method, r.Model)
		}
	}
	var d evaluators.Settings
	f("faithfulness", d, .5, .7, "2 of 4", false)
	f("faithfulness", evaluators.Settings{PassLine: &line}, .5, .7, "2 of 4", true)
	// p(S) over what can be found at all: .7/.9 twice, .1/.9 twice
	f("groundedness", d, (.7/.9*2+.1/.9*2)/4, .7, "44% grounded", false)
	f("hallucination_rate", d, .5, .7, "2 of 4 unsupported", false)
	f("hallucination_rate", evaluators.Settings{PassLine: &line}, .5, .7, "2 of 4 unsupported", false)
	f("hallucination_rate", evaluators.Settings{Count: "contradicted", PassLine: &line}, .25, .7, "1 of 4 contradicted", true)
}

func TestADirectionIsTheRightOne(t *testing.T) {
	all := func(v string) map[string]string {
		m := bridgeVerdicts()
		for claim := range m {
			m[claim] = v
		}
		return m
	}
	f := func(name, verdict string, score float64, passed bool) {
		t.Helper()
		r := evaluate(t, evaluator(t, name, evaluators.Settings{}), finds(all(verdict)), bridge())
		if !near(*r.Score, score) || *r.Passed != passed {
			t.Errorf("%s with every claim %s: %v %v, want %v %v", name, verdict, *r.Score, *r.Passed, score, passed)
		}
	}
	f("faithfulness", "S", 1, true)
	f("faithfulness", "N", 0, false)
	f("groundedness", "S", .7/.9, true)
	f("groundedness", "C", .1/.9, false)
	f("hallucination_rate", "S", 0, true)
	f("hallucination_rate", "N", 1, false)
}

// Denominators come from the text: with nothing to count there is no number.
func TestAnOutputWithoutClaimsIsNotApplicable(t *testing.T) {
	for _, name := range []string{"faithfulness", "groundedness", "hallucination_rate", "citation_recall", "citation_precision"} {
		e := evaluator(t, name, evaluators.Settings{})
		it := bridge()
		it.Output = text("---\n***")
		if r := evaluate(t, e, nobody(t), it); r.Status != evaluators.NotApplicable || r.Reason != "no_statements" {
			t.Errorf("%s without sentences: %s %s", name, r.Status, r.Reason)
		}
	}
	for _, name := range []string{"faithfulness", "groundedness", "hallucination_rate"} {
		it := bridge()
		it.Output = text("You are welcome! Shall I go on?")
		r := evaluate(t, evaluator(t, name, evaluators.Settings{}), finds(nil), it)
		if r.Status != evaluators.NotApplicable || r.Reason != "no_statements" || r.Usage.InputTokens != 600 {
			t.Errorf("%s without facts: %s %s, usage %+v", name, r.Status, r.Reason, r.Usage)
		}
	}
}

func TestAClaimWithoutAnAnswerLeavesNoScore(t *testing.T) {
	for _, name := range []string{"faithfulness", "groundedness", "hallucination_rate"} {
		j := judgeFunc(func(ctx context.Context, q judge.Question) (judge.Answer, error) {
			if claim, _ := q.Field("claim"); claim == "It is red." {
				return judge.Answer{}, &judge.UnusableError{Reason: "prose", Raw: "Well", Spent: judge.Spent{Usage: judge.Usage{InputTokens: 7}, Attempts: 2}}
			}
			return finds(bridgeVerdicts())(ctx, q)
		})
		r := evaluate(t, evaluator(t, name, evaluators.Settings{}), j, bridge())
		if r.Status != evaluators.Unscored || r.Reason != "prose" || r.Detail["failed_claim"] != 3 || r.Detail["raw"] != "Well" || r.Usage.InputTokens < 307 || r.Attempts < 3 { // the first claim and this one, at least
			t.Errorf("%s: %s %s, detail %v, usage %+v, %d attempts", name, r.Status, r.Reason, r.Detail, r.Usage, r.Attempts)
		}
	}
	// a judge that answers nothing is asked once, not once a claim
	asked := 0
	r := evaluate(t, evaluator(t, "faithfulness", evaluators.Settings{}), judgeFunc(func(context.Context, judge.Question) (judge.Answer, error) {
		asked++
		return judge.Answer{}, &judge.ShedError{Reason: "budget"}
	}), bridge())
	if r.Status != evaluators.Shed || r.Reason != "budget" || asked != 1 {
		t.Errorf("%s %s after %d questions", r.Status, r.Reason, asked)
	}
	ctx, cancel := context.WithCancel(t.Context())
	_, err := evaluator(t, "faithfulness", evaluators.Settings{}).Evaluate(ctx, judgeFunc(func(ctx context.Context, _ judge.Question) (judge.Answer, error) {
		cancel()
		return judge.Answer{}, ctx.Err()
	}), bridge())
	if !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// A panic belongs to whoever asked, who knows which item it was; it must not end the
// process from a goroutine of ours.
func TestAPanicOfAJudgeReachesTheCaller(t *testing.T) {
	defer func() {
		if v := recover(); v == nil || !strings.Contains(fmt.Sprint(v), "broken judge") {
			t.Errorf("recovered %v", v)
		}
	}()
	e := evaluator(t, "faithfulness", evaluators.Settings{})
	_, err := e.Evaluate(t.Context(), judgeFunc(func(ctx context.Context, q judge.Question) (judge.Answer, error) {
		if claim, _ := q.Field("claim"); claim == "It is red." {
			panic("broken judge")
		}
		return finds(nil)(ctx, q)
	}), bridge())
	t.Errorf("no panic, %v", err)
}

func TestClaimQuestionsShareWhatComesFirst(t *testing.T) {
	list, err := evaluator(t, "faithfulness", evaluators.Settings{}).Questions(bridge())
	if err != nil || len(list) != 5 {
		t.Fatalf("%d questions, %v", len(list), err)
	}
	for i, q := range list {
		names := make([]string, len(q.Fields))
		for k, f := range q.Fields {
			names[k] = f.Name
		}
		if !slices.Equal(names[:3], []string{"context", "context", "input"}) || names[len(names)-1] != "claim" || q.Name != "claim_supported/1" {
			t.Errorf("question %d of %s reads %v", i, q.Name, names)
		}
		if before, has := q.Field("before"); has != (i > 0) || i == 2 && before != "It opened in 1937." {
			t.Errorf("question %d: before %q", i, before)
		}
		if after, has := q.Field("after"); has != (i < 4) || i == 0 && after != "It opened in 1937." {
			t.Errorf("question %d: after %q", i, after)
		}
	}
	// so that a check of each costs one
	for _, name := range []string{"groundedness", "hallucination_rate"} {
		other, err := evaluator(t, name, evaluators.Settings{}).Questions(bridge())
		if err != nil || fmt.Sprint(other) != fmt.Sprint(list) {
			t.Errorf("%s asks something else: %v", name, err)
		}
	}
}

func TestAListItemIsReadWithWhatLeadsIntoTheList(t *testing.T) {
	it := bridge()
	it.Output = text("It has three colours:\n- red\n- white\n- blue\n\nEach is fresh.\n1. red\n2. white")
	list, err := evaluator(t, "faithfulness", evaluators.Settings{}).Questions(it)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, q := range list {
		before, _ := q.Field("before")
		got = append(got, before)
	}
	if want := []string{"", "It has three colours:", "It has three colours:", "It has three colours:", "- blue", "Each is fresh.", "Each is fresh."}; !slices.Equal(got, want) {
		t.Errorf("read after %q, want %q", got, want)
	}
}

func TestClaimsComeFromTheCacheAndInBothOrders(t *testing.T) {
	cache, err := judge.NewCache(finds(bridgeVerdicts()), "test", 100)
	if err != nil {
		t.Fatal(err)
	}
	first := evaluate(t, evaluator(t, "faithfulness", evaluators.Settings{}), cache, bridge())
	again := evaluate(t, evaluator(t, "groundedness", evaluators.Settings{}), cache, bridge())
	if first.Attempts != 5 || first.Detail["cached"] != nil || again.Attempts != 0 || again.Usage.InputTokens != 0 || again.Detail["cached"] != true {
		t.Errorf("first %d attempts %v, then %d attempts %v", first.Attempts, first.Detail["cached"], again.Attempts, again.Detail["cached"])
	}
	both := evaluate(t, evaluator(t, "faithfulness", evaluators.Settings{Orders: 2}), judgeFunc(func(ctx context.Context, q judge.Question) (judge.Answer, error) {
		return says(map[string]float64{"S": .9 - .2*float64(q.Order), "N": .1 + .2*float64(q.Order)})(ctx, q)
	}), bridge())
	if both.Attempts != 10 || !near(*both.Confidence, .8) || !near(both.Detail["order_gap"].(float64), .2) {
		t.Errorf("two orders: %d attempts, confidence %v, gap %v", both.Attempts, *both.Confidence, both.Detail["order_gap"])
	}
}

func TestALongAnswerIsJudgedFromBeginningToEnd(t *testing.T) {
	it := bridge()
	var b strings.Builder
	verdicts := make(map[string]string)
	for i := range 20 {
		claim := fmt.Sprintf("Cable %d is new.", 10+i)
		verdicts[claim] = "S"
		b.WriteString(claim + " ")
	}
	it.Output = text(b.String())
	r := evaluate(t, evaluator(t, "faithfulness", evaluators.Settings{MaxClaims: 5}), finds(verdicts), it)
	var asked []string
	for _, c := range r.Detail["claims"].([]any) {
		asked = append(asked, c.(map[string]any)["text"].(string))
	}
	if want := []string{"Cable 10 is new.", "Cable 14 is new.", "Cable 18 is new.", "Cable 22 is new.", "Cable 26 is new."}; !slices.Equal(asked, want) ||
		r.Detail["claims_cut"] != 15 || r.Label != "5 of 5" {
		t.Errorf("asked %v of 20, cut %v, %s", asked, r.Detail["claims_cut"], r.Label)
	}
	if r := evaluate(t, evaluator(t, "faithfulness", evaluators.Settings{}), finds(verdicts), it); r.Detail["claims_cut"] != 12 {
		t.Errorf("cut %v by default, want 12 of 20", r.Detail["claims_cut"])
	}
}

func TestRefusalsAreNotTakenApart(t *testing.T) {
	for _, name := range []string{"faithfulness", "groundedness", "hallucination_rate", "citation_recall", "citation_precision"} {
		it := bridge()
		it.Status = interaction.Refusal
		if r := evaluate(t, evaluator(t, name, evaluators.Settings{}), nobody(t), it); r.Status != evaluators.NotApplicable || r.Reason != "refusal" {
			t.Errorf("%s: %s %s", name, r.Status, r.Reason)
		}
		r := evaluate(t, evaluator(t, name, evaluators.Settings{Refusals: "fail"}), nobody(t), it)
		worst := 0.0
		if name == "hallucination_rate" {
			worst = 1
		}
		if r.Status != evaluators.OK || *r.Score != worst || *r.Passed || r.Method != judge.None || r.Detail["rule"] != "refusal" {
			t.Errorf("%s by rule: %+v", name, r)
		}
		it.Status = interaction.OK
		it.Context = []string{"", " "}
		if r := evaluate(t, evaluator(t, name, evaluators.Settings{}), nobody(t), it); r.Reason != "missing:context" {
			t.Errorf("%s without context: %s %s", name, r.Status, r.Reason)
		}
	}
}

func TestStatementsCompareBothWays(t *testing.T) {
	it := complete()
	it.Input = text("When was she born, and where?")
	it.Output = text("She was born in 1879. It was in Spain. Anything else?")
	it.Expected = []string{"She was born in 1879. It was in Germany. It was a Friday."}
	verdicts := map[string]string{"She was born in 1879.": "S", "It was in Spain.": "C", "It was in Germany.": "C", "It was a Friday.": "N"}
	statements := evaluators.Settings{Dialect: "statements"}
	r := evaluate(t, evaluator(t, "answer_correctness", statements), finds(verdicts), it)
	f1 := 1 / (1 + (1+2)/2.)
	if r.Status != evaluators.OK || r.Detail["tp"] != 1 || r.Detail["fp"] != 1 || r.Detail["fn"] != 2 || !near(*r.Score, f1) || *r.Passed ||
		r.Label != "1 right, 1 wrong, 2 missing" || r.Attempts != 6 {
		t.Errorf("%s %s %v %v %q, %d attempts", r.Status, r.Reason, r.Score, r.Detail, r.Label, r.Attempts)
	}

	// of several references the nearest counts
	it.Expected = append(it.Expected, "She was born in 1879.")
	r = evaluate(t, evaluator(t, "answer_correctness", statements), finds(verdicts), it)
	if r.Detail["reference"] != 2 || r.Detail["fn"] != 0 || !near(*r.Score, 1/1.5) {
		t.Errorf("two references: %v %v", *r.Score, r.Detail)
	}

	blended := statements
	blended.Similarity = true
	both := judgeFunc(func(ctx context.Context, q judge.Question) (judge.Answer, error) {
		if q.Kind == judge.Score {
			return says(map[string]float64{"3": 1})(ctx, q)
		}
		return finds(verdicts)(ctx, q)
	})
	r = evaluate(t, evaluator(t, "answer_correctness", blended), both, it)
	if !near(*r.Score, .75/1.5+.25) || r.Detail["similarity"] != 1.0 || !near(r.Detail["f1"].(float64), 1/1.5) || !*r.Passed {
		t.Errorf("blended: %v %v", *r.Score, r.Detail)
	}
	blended.Weights = []float64{0, 2}
	if r = evaluate(t, evaluator(t, "answer_correctness", blended), both, it); *r.Score != 1 {
		t.Errorf("all similarity: %v", *r.Score)
	}
	r = evaluate(t, evaluator(t, "answer_correctness", blended), judgeFunc(func(ctx context.Context, q judge.Question) (judge.Answer, error) {
		if q.Kind == judge.Score {
			return judge.Answer{}, &judge.UnusableError{Reason: "cut"}
		}
		return finds(verdicts)(ctx, q)
	}), it)
	if r.Status != evaluators.Unscored || r.Reason != "cut" {
		t.Errorf("similarity without an answer: %s %s", r.Status, r.Reason)
	}

	if r = evaluate(t, evaluator(t, "answer_correctness", statements), finds(nil), it); r.Reason != "no_statements" {
		t.Errorf("nothing stated: %s %s", r.Status, r.Reason)
	}
	list, err := evaluator(t, "answer_correctness", blended).Questions(it)
	if err != nil || len(list) != 3+3+3+1+1 {
		t.Errorf("%d questions, %v", len(list), err)
	}
}

// supports answers whether a sentence is supported by which documents.
func supports(f func(claim string, documents []string) bool) (judgeFunc, *[][]string) {
	var mu sync.Mutex
	asked := new([][]string)
	return func(ctx context.Context, q judge.Question) (judge.Answer, error) {
		claim, _ := q.Field("claim")
		documents := q.FieldValues("context")
		mu.Lock()
		*asked = append(*asked, documents)
		mu.Unlock()
		if f(claim, documents) {
			return says(map[string]float64{"S": 1})(ctx, q)
		}
		return says(map[string]float64{"N": 1})(ctx, q)
	}, asked
}

func TestCitationsAreHeldAgainstTheirDocuments(t *testing.T) {
	// a sentence is supported by documents that together hold all of its words
	words := func(claim string, documents []string) bool {
		all := strings.Join(documents, " ")
		for _, w := range strings.Fields(strings.Trim(claim, ".")) {
			if !strings.Contains(all, w) {
				return false
			}
		}
		return true
	}
	f := func(output string, recall, precision float64, recallLabel, precisionLabel string) {
		t.Helper()
		it := complete()
		it.Output = text(output)
		it.Context = []string{"red", "old", "red tall", "wide"}
		for name, want := range map[string]float64{"citation_recall": recall, "citation_precision": precision} {
			j, _ := supports(words)
			r := evaluate(t, evaluator(t, name, evaluators.Settings{}), j, it)
			label := recallLabel
			if name == "citation_precision" {
				label = precisionLabel
			}
			if r.Status != evaluators.OK || !near(*r.Score, want) || r.Label != label {
				t.Errorf("%s of %q: %s %v %q, want %v %q; %v", name, output, r.Status, *r.Score, r.Label, want, label, r.Detail)
			}
		}
	}
	f("red [1].", 1, 1, "1 of 1", "1 of 1")
	f("red. [1]", 1, 1, "1 of 1", "1 of 1")
	f("red [2].", 0, 0, "0 of 1", "0 of 1")
	f("red.", 0, 0, "0 of 1", "0 of 0")
	f("red [1]. Old too.", .5, 1, "1 of 2", "1 of 1")
	f("red [9].", 0, 0, "0 of 1", "0 of 0")          // no such document: not in the denominator
	f("red [0].", 0, 0, "0 of 1", "0 of 0")          // documents count from 1
	f("red [1][9].", 0, 0, "0 of 1", "0 of 0")       // nor are those beside it
	f("red old [1][2].", 1, 1, "1 of 1", "2 of 2")   // each is needed
	f("red old [1, 2].", 1, 1, "1 of 1", "2 of 2")   // however written
	f("red [1][2].", 1, .5, "1 of 1", "1 of 2")      // the second adds nothing
	f("red [1][3].", 1, 1, "1 of 1", "2 of 2")       // each supports it alone
	f("red tall [1][3].", 1, .5, "1 of 1", "1 of 2") // the third suffices
	f("red [1][1].", 1, 1, "1 of 1", "2 of 2")
	f("wide [1][2][3][4].", 0, 0, "0 of 1", "0 of 3") // the fourth is not looked at
	f("red [1].\ntall [3].\nold [4].", 2./3, 2./3, "2 of 3", "2 of 3")
}

func TestCitationsAskNoMoreThanTheyMust(t *testing.T) {
	it := complete()
	it.Output = text("It is red [2][1]. It is old. It is wide [7].")
	it.Context = []string{"first", "second"}
	j, asked := supports(func(string, []string) bool { return true })
	r := evaluate(t, evaluator(t, "citation_recall", evaluators.Settings{}), j, it)
	if len(*asked) != 1 || !slices.Equal((*asked)[0], []string{"first", "second"}) || !near(*r.Score, 1./3) || r.Attempts != 1 {
		t.Errorf("asked about %v, score %v", *asked, *r.Score)
	}
	want := `[map[citations:[2 1] supported:true text:It is red.] map[citations:[] supported:false text:It is old.] ` +
		`map[citations:[7] supported:false text:It is wide. unknown_document:true]]`
	if got := fmt.Sprint(r.Detail["sentences"]); got != want {
		t.Errorf("kept %s", got)
	}
	j, asked = supports(func(claim string, documents []string) bool {
		if strings.Contains(claim, "[") {
			t.Errorf("the judge reads %q", claim)
		}
		return slices.Contains(documents, "second")
	})
	r = evaluate(t, evaluator(t, "citation_precision", evaluators.Settings{}), j, it)
	// together, [2] alone, [1] alone, and what is left without [1]
	if len(*asked) != 4 || !near(*r.Score, .5) {
		t.Errorf("asked about %v, score %v", *asked, *r.Score)
	}
	it.Output = text("It is red. It is old.")
	r = evaluate(t, evaluator(t, "citation_recall", evaluators.Settings{}), nobody(t), it)
	if r.Status != evaluators.OK || *r.Score != 0 || *r.Passed || r.Method != judge.None || r.Detail["rule"] != "no_citations" {
		t.Errorf("nothing cited: %+v", r)
	}
	it.Output = text("It is red [1]. It is old [2].")
	r = evaluate(t, evaluator(t, "citation_recall", evaluators.Settings{}), judgeFunc(func(ctx context.Context, q judge.Question) (judge.Answer, error) {
		if q.FieldValues("context")[0] == "second" {
			return judge.Answer{}, &judge.UnusableError{Reason: "prose"}
		}
		return says(map[string]float64{"S": 1})(ctx, q)
	}), it)
	if r.Status != evaluators.Unscored || r.Reason != "prose" {
		t.Errorf("half an answer: %s %s", r.Status, r.Reason)
	}
	it.Context[1] = strings.Repeat("long ", 10_000)
	if r = evaluate(t, evaluator(t, "citation_recall", evaluators.Settings{}), nobody(t), it); r.Reason != "too_long" {
		t.Errorf("a document over the limit: %s %s", r.Status, r.Reason)
	}
}

func TestContextIsCutAtTheBordersOfDocuments(t *testing.T) {
	f := func(name string, limit int, documents []string, kept int, reason string) {
		t.Helper()
		it := complete()
		it.Input, it.Criteria, it.Expected = nil, text("c"), nil
		it.Output = text("Canberra.") // 9 runes
		it.Context = documents
		e := evaluator(t, name, evaluators.Settings{MaxInputRunes: limit})
		if got, ok := e.Applicable(it); got != reason || ok != (reason == "") {
			t.Errorf("%s at %d: %q %t, want %q", name, limit, got, ok, reason)
		}
		if reason != "" {
			return
		}
		list, err := e.Questions(it)
		if err != nil || len(list[0].FieldValues("context")) != kept {
			t.Errorf("%s at %d: %d documents, %v, want %d", name, limit, len(list[0].FieldValues("context")), err, kept)
		}
		p := map[string]float64{"S": 1}
		if name == "llm_judge" {
			p = map[string]float64{"4": 1}
		}
		r := evaluate(t, e, says(p), it)
		cut, has := r.Detail["cut"].(map[string]any)
		if has != (kept < len(documents)) || has && (cut["documents"] != len(documents) || cut["kept"] != kept) {
			t.Errorf("%s at %d: cut %v", name, limit, r.Detail["cut"])
		}
	}
	three := []string{"ääääääääää", "bbbbbbbbbb", "cccccccccc"}
	f("faithfulness", 39, three, 3, "")
	f("faithfulness", 38, three, 2, "")
	f("faithfulness", 29, three, 2, "")
	f("faithfulness", 19, three, 1, "")
	f("faithfulness", 18, three, 0, "too_long") // not even the first fits, and without one there is no question
	f("faithfulness", 8, three, 0, "too_long")  // the output alone is over it
	f("llm_judge", 40, three, 3, "")
	f("llm_judge", 20, three, 1, "")
	f("llm_judge", 19, three, 0, "") // its context is optional
	f("llm_judge", 9, three, 0, "too_long")
}
