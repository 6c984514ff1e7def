package checks

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// askedBy is the check c, judged as those keys of its judge say.
func askedBy(t *testing.T, keys string) (Judge, Check) {
	t.Helper()
	file := parse(t, strings.Replace(base(), "method: logprobs", keys, 1))
	j, ok := file.Judge("m")
	c, found := file.Check("c")
	if !ok || !found {
		t.Fatalf("%+v", file)
	}
	return j, c
}

func TestVotesArePartOfTheVersion(t *testing.T) {
	f := func(a, b string, same bool) {
		t.Helper()
		ja, ca := askedBy(t, a)
		jb, cb := askedBy(t, b)
		if (ca.Version == cb.Version) != same || (ja.Fingerprint() == jb.Fingerprint()) != same {
			t.Errorf("%q and %q: same version %t, want %t", a, b, ca.Version == cb.Version, same)
		}
	}
	f("method: votes", "method: votes:5", true)
	f("method: votes:5", "method: votes:7", false)
	f("method: votes:5", "method: logprobs", false)
	f("method: logprobs", "method: logprobs, max_tokens: 8", false)

	for keys, want := range map[string]int{"method: votes": 5, "method: votes:3": 3, "method: logprobs": 1, "method: structured": 1} {
		if j, _ := askedBy(t, keys); j.Votes() != want {
			t.Errorf("%s: %d votes, want %d", keys, j.Votes(), want)
		}
	}
}

// A model that only other evaluators ask starts no new series of this one.
func TestAnEmbeddingModelConcernsWhoAsksIt(t *testing.T) {
	_, without := askedBy(t, "method: logprobs")
	j, with := askedBy(t, "method: logprobs, embedding_model: e1")
	if j.EmbeddingModel != "e1" || with.Version != without.Version {
		t.Errorf("%+v: version %s, want %s", j, with.Version, without.Version)
	}
}

func TestADialectByEmbeddingsNeedsAModelThatEmbeds(t *testing.T) {
	f := func(check, judge, want string) {
		t.Helper()
		text := strings.Replace(base(), "evaluator: closed_qa\n    criteria: { text: Polite. }", check, 1)
		text = strings.Replace(text, "method: logprobs", "method: logprobs"+judge, 1)
		_, err := Parse("a.yaml", []byte(text))
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s%s: %v, want %q", check, judge, err, want)
		}
	}
	const none = "compares embeddings, and judge m has none: want embedding_model in judge m, or another dialect"
	f("evaluator: answer_relevancy\n    dialect: ragas", "", "8:5: check c: dialect: ragas "+none)
	f("evaluator: answer_relevancy\n    dialect: autoevals", "", none)
	f("evaluator: answer_similarity\n    reference: { field: expected }\n    dialect: embeddings", "", none)
	f("evaluator: answer_correctness\n    reference: { field: expected }\n    dialect: embeddings", "", none)
	f("evaluator: answer_relevancy\n    dialect: ragas\n    questions: 4", ", embedding_model: e1", "")
	f("evaluator: answer_correctness\n    reference: { field: expected }\n    dialect: embeddings\n    weights: [1, 1]", ", embedding_model: e1", "")
	// a model that is at hand changes no check that does not name it
	f("evaluator: answer_relevancy", ", embedding_model: e1", "")
	f("evaluator: answer_relevancy\n    questions: 4", ", embedding_model: e1", "questions: only dialects ragas and autoevals")
	f("evaluator: faithfulness\n    claims: extracted", "", "")
	f("evaluator: faithfulness\n    claims: batched", "", "needs a judge with method structured; m has method logprobs")
}

// Who compares vectors starts a new series with another embedding model.
func TestAnotherEmbeddingModelIsAnotherVersion(t *testing.T) {
	version := func(model string) string {
		text := strings.Replace(base(), "evaluator: closed_qa\n    criteria: { text: Polite. }", "evaluator: answer_relevancy\n    dialect: ragas", 1)
		c, _ := parse(t, strings.Replace(text, "method: logprobs", "method: logprobs, embedding_model: "+model, 1)).Check("c")
		return c.Version
	}
	if version("e1") == version("e2") {
		t.Error("one version of two models")
	}
}

func TestAJudgeOfKindAnthropicNeedsNoAddress(t *testing.T) {
	text := strings.Replace(base(), `kind: openai, base_url: "http://h/v1"`, "kind: anthropic, api_key_env: KEY", 1)
	votes := strings.Replace(text, "method: logprobs", "method: votes", 1)
	f := parse(t, votes)
	if j := f.Judges[0]; j.BaseURL != "https://api.anthropic.com/v1" || j.Method != "votes:5" || j.APIKeyEnv != "KEY" {
		t.Errorf("%+v", j)
	}
	// the model is not the same one elsewhere
	other := parse(t, strings.Replace(base(), "method: logprobs", "method: votes", 1))
	if f.Checks[0].Version == other.Checks[0].Version {
		t.Error("one version of two providers")
	}
	for change, want := range map[string]string{
		"method: structured, embedding_model: e": "has no embeddings",
		"method: vote":                           "did you mean votes?); want structured or votes:5",
	} {
		if _, err := Parse("a.yaml", []byte(strings.Replace(text, "method: logprobs", change, 1))); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", change, err, want)
		}
	}
	if _, err := Parse("a.yaml", []byte(strings.Replace(votes, "budget: { calls_per_day: 10 }", "max_in_flight: 3", 1))); err == nil || !strings.Contains(err.Error(), "nothing bounds its bill") {
		t.Errorf("%v", err)
	}
}

// The judges of the page about them are judges that the loader takes.
func TestThePageOfJudgesIsValid(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "judges.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(page), "```yaml\n")
	judges, _, ok := strings.Cut(rest, "```")
	if !ok {
		t.Fatal("no judges on the page")
	}
	before, _, _ := strings.Cut(base(), "judges:")
	_, after, _ := strings.Cut(base(), "checks:")
	f := parse(t, before+judges+"checks:"+strings.Replace(after, "judge: m", "judge: large", 1))
	if len(f.Judges) != 4 || f.Judges[1].Votes() != 5 || f.Judges[1].MaxTokens != 4000 || f.Judges[0].EmbeddingModel == "" {
		t.Errorf("%+v", f.Judges)
	}
}

func TestOrdersAndLengthAreSettingsOfTheCheck(t *testing.T) {
	version := func(keys string) string {
		c, _ := parse(t, strings.Replace(base(), "    judge: m", keys+"    judge: m", 1)).Check("c")
		return c.Version
	}
	plain := version("")
	if version("    orders: 1\n    max_input_runes: 24000\n") != plain {
		t.Error("defaults written out are another version")
	}
	if both, short := version("    orders: 2\n"), version("    max_input_runes: 2000\n"); both == plain || short == plain || both == short {
		t.Error("the version does not tell what the judge is shown")
	}
	f := func(lines, want string) {
		t.Helper()
		_, err := Parse("a.yaml", []byte(strings.Replace(base(), "evaluator: closed_qa\n    criteria: { text: Polite. }\n    judge: m", lines, 1)))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", lines, err, want)
		}
	}
	f("evaluator: noncommittal\n    judge: m\n    orders: 3", "9:13: check c: orders: 3; want 1 to 2")
	f("evaluator: refusal\n    orders: 2", "orders: this evaluator shows no options to a judge")
	f("evaluator: refusal\n    max_input_runes: 2", "max_input_runes: no judge reads for this evaluator")
	f("evaluator: faithfulness\n    claims: batched\n    orders: 2\n    judge: m", "orders: 2 goes with claims: single only")
}
