package evaluators_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"assay/evaluators"
	"assay/internal/testkit"
)

// docs/evaluators/reference.md is the table of evaluators for people. ASSAY_GOLDEN=1
// writes it anew.
func TestTheReferenceOfEvaluatorsIsTheTable(t *testing.T) {
	root, err := testkit.RepositoryRoot()
	if err != nil {
		t.Fatal(err)
	}
	path, want := filepath.Join(root, "docs", "evaluators", "reference.md"), reference()
	if os.Getenv("ASSAY_GOLDEN") != "" {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("%s is not what the table says (%v): ASSAY_GOLDEN=1 go test ./evaluators -run Reference writes it anew", path, err)
	}
}

func reference() []byte {
	var b bytes.Buffer
	b.WriteString("# Every evaluator\n\nWritten from the table that requests and checks files are read by; [evaluators.md](../evaluators.md) explains what is\n" +
		"common to all. Blocks that a question names are the item's fields.\n\n")
	for _, spec := range evaluators.Table() {
		fmt.Fprintf(&b, "- [%s](#%s): %s\n", spec.Name, spec.Name, spec.Summary)
	}
	for _, spec := range evaluators.Table() {
		section(&b, spec)
	}
	return b.Bytes()
}

func section(b *bytes.Buffer, spec evaluators.Spec) {
	fmt.Fprintf(b, "\n## %s\n%s", spec.Name, spec.Summary)
	if len(spec.Aliases) > 0 {
		fmt.Fprintf(b, " Also called %s.", strings.Join(spec.Aliases, ", "))
	}
	fmt.Fprintf(b, "\n\n- **Use it** for %s.\n- **Not for** %s.\n- **Needs** %s", spec.Use, spec.NotFor, strings.Join(spec.Required, ", "))
	if len(spec.Required) == 0 {
		b.WriteString("the number that it bounds")
	}
	if len(spec.Optional) > 0 {
		fmt.Fprintf(b, "; reads %s where there is one", strings.Join(spec.Optional, ", "))
	}
	fmt.Fprintf(b, ".\n- **Calls of the judge** per interaction: %s.\n- **Passes** %s.\n", spec.Calls(), passes(spec))
	wordings := spec.Wordings()
	for i, w := range wordings {
		if i > 0 && wordings[i-1].Template == w.Template {
			continue
		}
		for _, other := range wordings[i+1:] {
			if other.Template == w.Template {
				w.Dialect += " and " + other.Dialect
			}
		}
		wording(b, w)
	}
	if len(spec.Settings) == 0 {
		return
	}
	b.WriteString("\n| setting | values | default | meaning |\n|---|---|---|---|\n")
	for _, s := range spec.Settings {
		values := s.Type
		if len(s.Values) > 0 {
			values = strings.Join(s.Values, ", ")
		}
		fmt.Fprintf(b, "| `%s` | %s | %s | %s |\n", s.Name, values, defaultOf(s), strings.ReplaceAll(s.Help, "|", `\|`))
	}
}

func wording(b *bytes.Buffer, w evaluators.Wording) {
	fmt.Fprintf(b, "\n**Question**, `%s`", w.Template)
	if w.Dialect != "" {
		fmt.Fprintf(b, " in dialect %s", w.Dialect)
	}
	if w.Coarse {
		b.WriteString(" with `coarse: true`")
	}
	if w.Claims != "" {
		fmt.Fprintf(b, " with `claims: %s`", w.Claims)
	}
	if w.Text == "" {
		b.WriteString(": none; the cosine of two texts' vectors, less than 0 as 0.\n")
		return
	}
	fmt.Fprintf(b, ":\n> %s\n", w.Text)
	if len(w.Options) == 0 {
		b.WriteString("\nThe answer is a text.\n")
		return
	}
	b.WriteString("\n| option | score | what the judge reads |\n|---|---|---|\n")
	for _, o := range w.Options {
		fmt.Fprintf(b, "| %s | %.3g | %s |\n", o.Key, o.Score, o.Text)
	}
}

func passes(spec evaluators.Spec) string {
	if spec.PassLine == nil {
		return "with option " + strings.Join(spec.DefaultPass(), ", ")
	}
	switch spec.Passes {
	case evaluators.Below:
		return fmt.Sprintf("with a score below %g", *spec.PassLine)
	case evaluators.AtMost:
		return fmt.Sprintf("up to a score of %g", *spec.PassLine)
	}
	return fmt.Sprintf("from a score of %g up", *spec.PassLine)
}

func defaultOf(s evaluators.Setting) string {
	if s.Default == nil {
		return ""
	}
	if list, ok := s.Default.([]string); ok {
		return strings.Join(list, ", ")
	}
	data, err := json.Marshal(s.Default)
	if err != nil {
		return fmt.Sprint(s.Default)
	}
	return strings.Trim(string(data), `"`)
}
