package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"assay/internal/checks"
	"assay/internal/testkit"
)

// Names in the documents are names that exist: of variables, metrics and commands.
func TestTheDocumentsNameOnlyWhatExists(t *testing.T) {
	root, err := testkit.RepositoryRoot()
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{"ASSAY_CASES": true, "ASSAY_DATA": true, "ASSAY_KILLS": true}
	for _, v := range variables() {
		known[v.Name] = true
	}
	source := goSource(t, root)
	variable, metric := regexp.MustCompile(`ASSAY_[A-Z][A-Z_]*[A-Z]`), regexp.MustCompile("`(assay_[a-z_]+)`")
	for _, path := range documents(t, root) {
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		name, _ := filepath.Rel(root, path)
		for _, v := range variable.FindAllString(string(raw), -1) {
			if !known[v] {
				t.Errorf("%s names %s, which nothing reads", name, v)
			}
		}
		for _, m := range metric.FindAllStringSubmatch(string(raw), -1) {
			// the consumer's gauges are named by their ends
			if !strings.Contains(source, `"`+m[1]+`"`) && !strings.Contains(source, `desc("`+strings.TrimPrefix(m[1], "assay_consumer_")+`"`) {
				t.Errorf("%s names the metric %s, which nothing exports", name, m[1])
			}
		}
	}
}

// Links between the documents lead somewhere.
func TestTheDocumentsLinksLeadSomewhere(t *testing.T) {
	root, err := testkit.RepositoryRoot()
	if err != nil {
		t.Fatal(err)
	}
	link := regexp.MustCompile(`\]\(([^)#:\s]+)(?:#[^)]*)?\)`)
	for _, path := range documents(t, root) {
		if filepath.Ext(path) != ".md" {
			continue
		}
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range link.FindAllStringSubmatch(string(raw), -1) {
			if _, err := os.Stat(filepath.Join(filepath.Dir(path), m[1])); err != nil {
				name, _ := filepath.Rel(root, path)
				t.Errorf("%s links to %s: %v", name, m[1], err)
			}
		}
	}
}

// The README's checks file is one that works.
func TestTheReadmesChecksFileIsValid(t *testing.T) {
	root, err := testkit.RepositoryRoot()
	if err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(filepath.Join(root, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut(string(raw), "```yaml\n")
	example, _, closed := strings.Cut(rest, "```")
	if !ok || !closed {
		t.Fatal("no yaml block in README.md")
	}
	file, err := checks.Parse("README.md", []byte(example))
	if err != nil {
		t.Fatal(err)
	}
	if len(file.Checks) != 2 {
		t.Errorf("%d checks, want 2", len(file.Checks))
	}
}

func documents(t *testing.T, root string) []string {
	t.Helper()
	found := []string{filepath.Join(root, "README.md")}
	for _, dir := range []string{"docs", "deploy"} {
		err := filepath.WalkDir(filepath.Join(root, dir), func(path string, d fs.DirEntry, err error) error {
			if err == nil && !d.IsDir() {
				found = append(found, path)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return found
}

func goSource(t *testing.T, root string) string {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
			return err
		}
		raw, err := os.ReadFile(path)
		b.Write(raw)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}
