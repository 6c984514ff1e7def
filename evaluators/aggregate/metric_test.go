package aggregate_test

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"

	"assay/evaluators/aggregate"
)

func compute(t *testing.T, name, dialect, args string) (aggregate.Value, error) {
	t.Helper()
	m, ok := aggregate.Lookup(name)
	if !ok {
		t.Fatalf("no metric %s", name)
	}
	return m.Compute(dialect, json.RawMessage(args))
}

func TestMetricsByTheirArguments(t *testing.T) {
	f := func(name, dialect, args, want string) {
		t.Helper()
		var c metricCase
		if err := json.Unmarshal([]byte(`{"tolerance":1e-9,"expected":`+want+`}`), &c); err != nil {
			t.Fatal(err)
		}
		if v, err := compute(t, name, dialect, args); !c.answers(v.V, err) {
			t.Errorf("%s %s %s: %v, %v, want %s", name, dialect, args, v.V, err, want)
		}
	}
	const wrong = `{"error":true}`

	// lists of predictions have a mean
	f("exact_match", "", `{"predictions":["A","b"],"references":["a","c"]}`, "0.5")
	f("exact_match", "squad", `{"prediction":"x","references":[]}`, wrong)
	f("exact_match", "", `{"output":3,"expected":3}`, wrong)
	f("exact_match", "autoevals", `{"output":null,"expected":"null"}`, "0")
	f("exact_match", "autoevals", `{"output":"[1]","expected":"[ 1]"}`, "0") // two texts
	f("exact_match", "autoevals", `{"output":[1,{"a":true}],"expected":"[ 1, {\"a\" : true}]"}`, "1")
	f("token_f1", "", `{"predictions":["red car","blue"],"references":[["a red car","bus"],"green"]}`, "0.5")
	f("token_f1", "", `{"predictions":["red"],"references":[]}`, wrong)
	f("valid_json", "", `{"output":{"a":1},"schema":{"type":"object","required":["b"]}}`, "0")
	f("json_validity", "lenient", `{"outputs":[]}`, wrong)
	f("json_validity", "", `{"outputs":["use {} or: {\"a\": \"}\"}","`+"```"+`\n[\"`+"```"+`\"]\n`+"```"+`","{"],"mode":"lenient"}`, "0.6666666666666666")
	f("list_contains", "", `{"output":["a",null],"expected":["a"]}`, wrong) // null is no text

	f("extract_answer", "", `{"text":"I think B. The answer is: (c). A friend agrees.","style":"choice"}`, `"C"`)
	f("extract_answer", "", `{"text":"The answer is a bird.","style":"choice"}`, "null")
	f("extract_answer", "", `{"text":"The answer is A, first.\nNo: answer is b","style":"choice"}`, `"B"`)
	f("extract_answer", "", `{"text":"A) red\nB) blue","style":"choice"}`, "null") // the list of options is no answer
	f("extract_answer", "", `{"text":"It depends.\nD.\nBecause A is wrong","style":"choice"}`, `"D"`)
	f("extract_answer", "", `{"text":"A good reason speaks for E here, I guess","style":"choice"}`, `"E"`)
	f("extract_answer", "", `{"text":"The answers are many","style":"choice"}`, "null")
	f("extract_answer", "", `{"text":"Answer: Because","style":"choice"}`, "null")
	f("extract_answer", "", `{"text":"x \\fbox{ 3 } y","style":"boxed"}`, `"3"`)
	f("extract_answer", "", `{"text":"\\boxed{1","style":"boxed"}`, "null")
	f("extract_answer", "", `{"text":"#### none","style":"gsm8k"}`, `"none"`)
	f("extract_answer", "", `{"text":"####  ","style":"gsm8k"}`, "null")
	f("extract_answer", "", `{"text":"so -$1,200.00 in all","style":"gsm8k"}`, `"-1200"`)
	f("extract_answer", "", `{"text":"1","style":"gsm9k"}`, wrong)
	f("extract_answer", "assay", `{"text":"1","style":"gsm8k"}`, wrong)
	f("last_boxed", "", `{"text":"\\boxed{a{b}c"}`, "null")
	f("extract_choice", "", `{"text":"x","options":"D-A"}`, wrong)

	f("math_equiv", "", `{"gold":"0.5","pred":"so it is 1/2"}`, "true")
	f("math_equiv", "", `{"gold":"$\\frac{1}{3}$","pred":"$x = 0.333$"}`, "false")
	f("math_equiv", "", `{"gold":"$x+1$","pred":"It is $x + 1$"}`, "true")
	f("math_equiv", "", `{"gold":"no number","pred":"none either"}`, "false")
	f("math_equiv", "", `{"gold":"1/0","pred":"1/0"}`, "false")
	f("math_equiv", "", `{"gold":"50%","pred":"0.5"}`, "true")
	f("math_equiv", "hendrycks", `{"a":null,"b":"1"}`, "false")
	f("math_equiv", "hendrycks", `{"a":"\\frac","b":"\\frac"}`, "true")
	f("math_equiv", "hendrycks", `{"a":"12\\text{ cm}","b":"12"}`, "true")

	f("pass_at_k", "", `{"n":[2000],"c":[1],"k":1000}`, "0.5") // the binomials have no float
	f("pass_at_k", "", `{"n":[3],"c":[4],"k":1}`, wrong)
	f("pass_at_k", "", `{"n":[3],"c":[1],"k":0}`, wrong)
	f("majority_vote", "", `{"samples":["-5","5","5."],"normalize":"numeric"}`, `"-5"`)
	f("majority_vote", "", `{"samples":["0.50","1/2","2"],"normalize":"numeric"}`, `"0.50"`)
	f("majority_vote_accuracy", "", `{"samples":[["-5"],["5"]],"references":[["5","6"],"5"],"normalize":"numeric"}`, "0.5")
	f("majority_vote_accuracy", "", `{"samples":[["-5"]],"references":["5"]}`, "1") // said in the docs: not for numbers

	f("faithfulness", "", `{"claims":[["entailed","neutral"],["yes"]],"average":"micro"}`, "0.6666666666666666")
	f("faithfulness", "", `{"claims":[["so so"]]}`, wrong)
	f("faithfulness", "", `{"claims":[[true]],"average":"median"}`, wrong)
	f("groundedness", "", `{"scores":[[]]}`, wrong)
	f("knowledge_consistency", "", `{"facts":[["a"]],"kb":[]}`, wrong)
	f("factscore", "", `{"supported":3,"facts":6,"gamma":10}`, "0.25670855951629595") // .5 exp(1-10/6)
	f("factscore", "", `{"supported":1,"facts":0,"gamma":10}`, wrong)
	f("verdict_label", "", `{"value":" ENTAILED "}`, `"supported"`)
	f("verdict_label", "", `{}`, wrong)
	f("citation_recall", "", `{"answers":[[{"supported":"no","citations":[true]},{"supported":"yes","citations":[true]}]]}`, "0.5")
	f("citation_precision", "", `{"answers":[[{"supported":true,"citations":[]}]]}`, wrong) // nothing is cited
	f("citation_precision", "alce", `{"sentences":[{"refs":[-1],"entail":[]}],"n_docs":1}`, wrong)
	f("parse_citations", "", `{"text":"so [2] and [1, 3], not [x] [2021]"}`, "[2,1,3,2021]")
	f("parse_citations", "alce", `{"text":"so [2] and [1, 3]"}`, "[2,1]")
	f("parse_citations", "", `{"text":"[99999999999999999999]"}`, wrong)
	f("remove_citations", "", `{"text":"One [1, 2]. Two [a]."}`, `"One. Two [a]."`)
	f("abstention_accuracy", "", `{"should_abstain":[true,false],"abstained":[true,true],"measure":"recall"}`, "1")
	f("abstention_accuracy", "", `{"should_abstain":[true],"abstained":[true],"correct":[0],"measure":"answered_accuracy"}`, "null")
	f("abstention_accuracy", "", `{"should_abstain":[true],"abstained":[true],"measure":"answered_accuracy"}`, wrong) // of what?
	f("claim_verification", "", `{"gold":["supported","nei"],"pred":["yes","supported"],"measure":"macro_f1"}`, "0.3333333333333333")
	f("claim_verification", "", `{"instances":[{"label":"NOT ENOUGH INFO","predicted_label":"supports","evidence":[],"predicted_evidence":[]}],"measure":"f1"}`, "null")
	f("claim_strict", "", `{"label":"supports","predicted_label":"Supports","evidence":[[[1,2,"p",3]],[[1,2,"p",4],[1,2,"p",5]]],"predicted_evidence":[["q",1],["q",2],["q",3],["p",5],["p",4],["p",3]]}`, "true")
	f("claim_strict", "", `{"label":"supports","predicted_label":"supports","evidence":[[[1,2,"p",3]]],"predicted_evidence":[["q",1],["q",2],["q",3],["q",4],["q",5],["p",3]]}`, "false") // the sixth
	f("answer_correctness", "", `{"tp":[1],"fp":[0],"fn":[0],"similarity":[0.2]}`, "0.8")
	f("answer_correctness", "", `{"tp":[1,2],"fp":[0],"fn":[0]}`, wrong)
	f("fbeta", "", `{"tp":1,"fp":-1,"fn":0}`, wrong)
	f("factual_correctness", "", `{"tp":0,"fp":0,"fn":0,"mode":"precision"}`, "0")
	f("factual_correctness", "", `{"tp":1,"fp":0,"fn":0,"mode":"both"}`, wrong)
	f("cosine", "", `{"a":[1e300,1e300],"b":[1e300,1e300]}`, "1")
	f("cosine", "", `{"a":[1],"b":[1,2]}`, wrong)
	f("answer_relevancy", "ragas", `{"noncommittal":[1,0],"cosines":[0.4,0.6]}`, "0.5")
	f("answer_relevancy", "", `{"noncommittal":[],"cosines":[]}`, wrong)
	f("embedding_scale", "", `{"cosine":0.5,"expected_min":1}`, wrong)
	f("brier", "", `{"p":[1.2],"y":[1]}`, wrong)
	f("judge_agreement_kappa", "", `{"a":["x","x"],"b":["x","x"]}`, "null")
	f("judge_agreement_kappa", "", `{"a":["x","y"],"b":["y","x"]}`, "-1")
	f("accuracy", "", `{"pred":["A","B","B"],"gold":["A","B","C"]}`, "0.6666666666666666")
	f("confusion", "", `{"pred":["A","B","B"],"gold":["A","B","C"]}`, `{"A":{"A":1},"B":{"B":1},"C":{"B":1}}`)
	f("precision_recall_f1", "", `{"pred":["A","B","B"],"gold":["A","B","C"],"positive":"B","measure":"precision"}`, "0.5")
	f("precision_recall_f1", "", `{"pred":["A"],"gold":["A"],"positive":"B","measure":"recall"}`, "null")
	f("precision_recall_f1", "", `{"pred":["A"],"gold":["A"],"positive":"B"}`, "null")

	// no argument is accepted and ignored, and no dialect
	f("brier", "", `{"p":[1],"y":[1],"bins":10}`, wrong)
	f("brier", "ragas", `{"p":[1],"y":[1]}`, wrong)
	f("faithfulness", "deepeval", `{"claims":[[true]]}`, wrong)
	f("brier", "", `{"p":[1],"y":[1]} {}`, wrong)
	f("brier", "", `[]`, wrong)
}

func TestAShareOfItemsHasItsInterval(t *testing.T) {
	v, err := compute(t, "hallucination_rate", "", `{"claims":[[true,false,true,true],[],[true,true,true,false]]}`)
	// a quarter of eight claims, but of two answers: as wide as two items make it
	if err != nil || v.V != .25 || v.Interval == nil || v.Interval.N != 2 || v.Detail["skipped_items"] != 1 {
		t.Fatalf("%+v, %v", v, err)
	}
	if v.Interval.Lower > .03 || v.Interval.Upper < .75 {
		t.Errorf("interval %+v", *v.Interval)
	}
	if v, err = compute(t, "mae", "", `{"pred":[3],"gold":[1]}`); err != nil || v.V != 2.0 || v.Interval != nil {
		t.Errorf("a distance has an interval of shares: %+v, %v", v, err)
	}
	v, err = compute(t, "abstention_accuracy", "", `{"should_abstain":[true,false,true],"abstained":[true,false,false],"measure":"precision"}`)
	if err != nil || v.V != 1.0 || v.Interval.N != 1 || v.Detail["recall"] != .5 {
		t.Errorf("%+v, %v", v, err)
	}
}

func TestTheTableOfMetricsIsWhole(t *testing.T) {
	all := aggregate.Metrics()
	if len(all) < 40 {
		t.Errorf("%d metrics", len(all))
	}
	for i, m := range all {
		if m.Name == "" || m.Summary == "" || len(m.Args) == 0 || i > 0 && all[i-1].Name >= m.Name {
			t.Errorf("row %+v", m)
		}
		if _, err := m.Compute("", json.RawMessage(`{`)); err == nil || !strings.HasPrefix(err.Error(), m.Name+": ") {
			t.Errorf("%s takes half of a JSON value: %v", m.Name, err)
		}
	}
	if _, ok := aggregate.Lookup("bleu"); ok {
		t.Error("a metric that is not there was found")
	}
}

func FuzzTextMetrics(f *testing.F) {
	for _, s := range []string{"#### 1,000", `\boxed{\frac12}`, "The answer is (B)", "[1, 2] [3", `$x = \frac{1}{0}$ or 3/4%`, `\sqrt\frac\text{ `, "1,000,00", "-", "…A’s", "\xff$\xfe$"} {
		f.Add(s, s)
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		for _, style := range []string{"gsm8k", "boxed", "last_line", "choice"} {
			for _, dialect := range []string{"", "evalsuite", "openai_strict", "lm_eval_flexible"} {
				found, ok, err := aggregate.ExtractAnswer(a, style, dialect)
				if err == nil && !ok && found != "" {
					t.Fatalf("%s %s of %q: %q although there is none", style, dialect, a, found)
				}
			}
		}
		if aggregate.MathEquivalent(a, b) != aggregate.MathEquivalent(b, a) {
			t.Fatalf("%q and %q are equal one way only", a, b)
		}
		if s := aggregate.RemoveCitations(a); len(s) > len(a) {
			t.Fatalf("%q grew to %q", a, s)
		}
		if _, err := aggregate.ParseCitations(a); err != nil && !strings.Contains(err.Error(), "range") {
			t.Fatalf("%q: %v", a, err)
		}
		raw, err := json.Marshal(map[string]any{"a": a, "b": a})
		if err != nil {
			t.Fatal(err)
		}
		m, _ := aggregate.Lookup("math_equiv")
		there, err := m.Compute("hendrycks", raw)
		if err != nil || there.V != true {
			t.Fatalf("%q is not itself: %v, %v", a, there.V, err)
		}
	})
}

func TestExtractionIsBoundedOnAMegabyte(t *testing.T) {
	const n = large
	for _, unit := range []string{"9", "1,", "$", "{", `\boxed{`, "#### ", "answer ", "A ", "[1,", " 1/", `\frac`, "語"} {
		text := strings.Repeat(unit, n/len(unit))
		start := time.Now()
		for _, style := range []string{"gsm8k", "boxed", "last_line", "choice"} {
			if _, _, err := aggregate.ExtractAnswer(text, style, ""); err != nil {
				t.Fatal(err)
			}
		}
		aggregate.MathEquivalent(text, text)
		aggregate.RemoveCitations(text)
		took := time.Since(start)
		if took > 20*time.Second {
			t.Errorf("%q: %v", unit, took)
		}
		t.Logf("%q: %v", unit, took.Round(time.Millisecond))
	}
	if v, err := aggregate.PassAtK(1_000_000, 1_000, 10_000); err != nil || math.IsNaN(v) || v < 0 || v > 1 {
		t.Errorf("%v, %v", v, err)
	}
}
