package evaluators_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"assay/internal/testkit"
)

// The page's example of a new evaluator is put in its place, with its registration, and
// its own test is run: by an overlay, so that the tree stays as it is.
func TestThePagesExampleOfANewEvaluatorWorks(t *testing.T) {
	root, err := testkit.RepositoryRoot()
	if err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(filepath.Join(root, "docs", "evaluators.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, page, ok := strings.Cut(string(raw), "## Adding an evaluator")
	if !ok {
		t.Fatal("the page does not say how to add an evaluator")
	}
	dir, folder := t.TempDir(), filepath.Join(root, "evaluators")
	replace := make(map[string]string)
	put := func(name, text string) {
		t.Helper()
		at := filepath.Join(dir, name)
		if err := os.WriteFile(at, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		replace[filepath.Join(folder, name)] = at
	}

	// each file's name stands before its code
	blocks := regexp.MustCompile("(?s)`evaluators/([a-z_]+\\.go)`:\n\n```go\n(.*?)```").FindAllStringSubmatch(page, -1)
	for _, b := range blocks {
		if _, err := os.Stat(filepath.Join(folder, b[1])); err == nil {
			t.Errorf("%s is there already: the example needs another name", b[1])
		}
		put(b[1], b[2])
	}
	if len(blocks) != 3 {
		t.Fatalf("%d files in the example, want 3", len(blocks))
	}
	register := func(file, before, line string) {
		t.Helper()
		source, err := os.ReadFile(filepath.Join(folder, file))
		if err != nil || !strings.Contains(string(source), before) || !strings.Contains(page, "The line: `"+line+"`") {
			t.Fatalf("%s: no %q in it, or no %q on the page (%v)", file, before, line, err)
		}
		put(file, strings.Replace(string(source), before, line+", "+before, 1))
	}
	register("rule.go", "containsTexts(), ", "startsWith()")
	register("table.go", "answerCorrectness(),", "polite()")

	others, err := filepath.Glob(filepath.Join(folder, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range others {
		replace[path] = "" // only the example's own tests
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		t.Fatal(err)
	}
	at := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(at, overlay, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "go", "test", "-count=1", "-v", "-overlay", at, "./evaluators")
	cmd.Dir = root
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "PASS: TestThanksArePolite") || !strings.Contains(string(out), "PASS: TestAnOpeningIsTheBeginning") {
		t.Errorf("%v\n%s", err, out)
	}
}
