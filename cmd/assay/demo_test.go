package main

import (
	"errors"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"assay/internal/testkit"
)

// The first thing a newcomer runs shows what the product is for: engines and judges by
// name, a fall, its alarm opening and closing, the truth beside each estimate.
func TestTheDemoShowsTheMainJobAndEndsByItself(t *testing.T) {
	chdb, library := testkit.ClickHouseProgram(t)
	cmd := exec.Command(testkit.Program(t, "assay"), "demo", "--fast")
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "ASSAY_HTTP_ADDR=127.0.0.1:0",
		"ASSAY_CHDB_BIN=" + chdb, "ASSAY_CHDB_LIB=" + library,
	}
	start := time.Now()
	raw, err := cmd.CombinedOutput()
	out := string(raw)
	if err != nil {
		t.Fatalf("assay demo --fast: %v\n%s", err, out)
	}
	t.Logf("took %s", time.Since(start).Round(time.Second))
	for _, want := range []string{
		`ClickHouse: embedded engine`, `Kafka: in-process Kafka`, `a simulated judge`, `embedded statistical judge`, `traffic  simulated`,
		`ALARM OPENED  .*prompt_version=v42`, `ALARM CLOSED  .*prompt_version=v42`,
		`estimate \(95%\)`, `truly passing`, `during the fall`, `held\s+1[0-9] of 14 times`,
		`12000 interactions written in \d+ records, 12000 counted; 8 broken records written, 8 dead letters`, `gap 0`,
	} {
		if !regexp.MustCompile(want).MatchString(out) {
			t.Errorf("the output lacks %q", want)
		}
	}
	if n := strings.Count(out, "app=billing-bot: pass rate"); n > 0 {
		t.Errorf("%d alarms on the app that did not change", n)
	}
	if t.Failed() {
		t.Log(out)
	}
}

func TestTheDemoTakesARealJudgeInPlaceOfTheSimulatedOne(t *testing.T) {
	file, err := demoChecks(demoOptions{realJudge: "http://127.0.0.1:1/v1", realModel: "m", realMethod: "structured", realCallsLimit: 100})
	if err != nil {
		t.Fatal(err)
	}
	j, _ := file.Judge("assistant-judge")
	if j.Kind != "openai" || j.Model != "m" || j.Method != "structured" || j.Budget.CallsPerDay != 100 {
		t.Errorf("%+v", j)
	}
	var usage errUsage
	if _, err := demoChecks(demoOptions{realJudge: "http://127.0.0.1:1/v1"}); !errors.As(err, &usage) || !strings.Contains(err.Error(), "--real-judge-model") {
		t.Errorf("without a model: %v", err)
	}
}
