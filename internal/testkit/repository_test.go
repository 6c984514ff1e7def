package testkit_test

import (
	"bytes"
	"encoding/json"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// mayImport is the whole permission: what a folder's packages may import of ours,
// directly. A name covers the folder itself, "X/..." also what is below it. Test files are
// free.
var mayImport = map[string][]string{
	"cmd/assay":                   {"..."},
	"cmd/assay-chdb":              {"sink/chdb/engine"},
	"consumer":                    {"internal/interaction"},
	"sampler":                     {"internal/interaction", "internal/checks"},
	"evaluators":                  {"internal/interaction", "evaluators/judge"},
	"evaluators/judge":            {},
	"evaluators/judge/openai":     {"evaluators/judge"},
	"evaluators/judge/embedded":   {"evaluators/judge"},
	"evaluators/judge/simulated":  {"evaluators/judge"},
	"evaluators/aggregate":        {"evaluators", "internal/stats"},
	"sink":                        {"internal/interaction"},
	"sink/chdb":                   {},
	"sink/chdb/engine":            {},
	"dashboards":                  {},
	"internal/interaction":        {},
	"internal/interaction/decode": {"internal/interaction"},
	"internal/checks":             {"internal/interaction", "internal/interaction/decode", "evaluators", "evaluators/judge/..."},
	"internal/pipeline":           {"internal/interaction", "internal/interaction/decode", "internal/checks", "consumer", "sampler", "evaluators", "evaluators/judge", "sink"},
	"internal/stats":              {},
	"internal/monitor":            {"internal/interaction", "sink", "internal/stats", "internal/checks", "sampler", "evaluators", "evaluators/judge"},
	"internal/server":             {"internal/interaction", "internal/checks", "sampler", "evaluators", "evaluators/judge", "evaluators/aggregate", "sink", "internal/monitor", "dashboards"},
	"internal/demo":               {"internal/interaction"},
	"internal/testkit":            {"..."},
	"bench":                       {"..."},
}

type goPackage struct {
	ImportPath string
	Dir        string
	Imports    []string
	Deps       []string
	GoFiles    []string
}

func packages(t *testing.T) (root string, all []goPackage) {
	t.Helper()
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}").Output()
	if err != nil {
		t.Fatalf("go list -m: %v", err)
	}
	root = strings.TrimSpace(string(out))
	cmd := exec.Command("go", "list", "-deps", "-json=ImportPath,Dir,Imports,Deps,GoFiles", "./...")
	cmd.Dir = root
	raw, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	for dec.More() {
		var p goPackage
		if err := dec.Decode(&p); err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(p.ImportPath, "assay/") {
			all = append(all, p)
		}
	}
	if len(all) < 15 {
		t.Fatalf("only %d packages listed", len(all))
	}
	return root, all
}

func TestPackagesImportOnlyWhatTheirFolderMay(t *testing.T) {
	_, all := packages(t)
	for _, p := range all {
		folder := strings.TrimPrefix(p.ImportPath, "assay/")
		allowed, ok := mayImport[folder]
		for name := folder; !ok && name != "."; name = filepath.Dir(name) {
			if name == "bench" {
				allowed, ok = mayImport[name], true
			}
		}
		if !ok {
			t.Errorf("%s is not in the folder table", folder)
			continue
		}
		for _, imp := range p.Imports {
			of, ours := strings.CutPrefix(imp, "assay/")
			if ours && !permits(allowed, of) {
				t.Errorf("%s imports %s", folder, of)
			}
		}
	}
}

func permits(allowed []string, folder string) bool {
	for _, a := range allowed {
		if a == "..." || a == folder {
			return folder != "sink/chdb/engine" || a == folder
		}
		if below, ok := strings.CutSuffix(a, "/..."); ok && (folder == below || strings.HasPrefix(folder, below+"/")) {
			return true
		}
	}
	return false
}

// The worker starts anywhere: what would tie it to glibc or to a fake Kafka stays in the
// demo and in the child.
func TestHeavyLibrariesStayInTheirRooms(t *testing.T) {
	_, all := packages(t)
	for _, p := range all {
		for _, dep := range p.Deps {
			switch {
			case strings.HasPrefix(dep, "github.com/ebitengine/purego") &&
				p.ImportPath != "assay/sink/chdb/engine" && p.ImportPath != "assay/cmd/assay-chdb":
				t.Errorf("%s depends on purego", p.ImportPath)
			case strings.HasPrefix(dep, "github.com/twmb/franz-go") && !mayUseKfake(p.ImportPath):
				t.Errorf("%s depends on %s", p.ImportPath, dep)
			}
		}
	}
}

func mayUseKfake(path string) bool {
	return path == "assay/internal/demo" || path == "assay/internal/testkit" || path == "assay/cmd/assay" ||
		strings.HasPrefix(path, "assay/bench")
}

func TestEveryPackageSaysItsContractInDocGo(t *testing.T) {
	root, all := packages(t)
	for _, p := range all {
		rel, _ := filepath.Rel(root, p.Dir)
		doc := "doc.go"
		if slices.Contains(p.GoFiles, "main.go") && !slices.Contains(p.GoFiles, doc) {
			doc = "main.go" // a command's contract is its usage
		}
		var with []string
		for _, name := range p.GoFiles {
			f, err := parser.ParseFile(token.NewFileSet(), filepath.Join(p.Dir, name), nil, parser.PackageClauseOnly|parser.ParseComments)
			if err != nil {
				t.Fatal(err)
			}
			if f.Doc != nil {
				with = append(with, name)
			}
		}
		if !slices.Equal(with, []string{doc}) {
			t.Errorf("%s: package comment in %v, want it in %s alone", rel, with, doc)
		}
	}
}

// Each direct dependency has its line of why.
func TestEveryDependencyHasItsReason(t *testing.T) {
	root, _ := packages(t)
	mod, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	reasons, err := os.ReadFile(filepath.Join(root, "docs", "decisions", "dependencies.md"))
	if err != nil {
		t.Fatal(err)
	}
	direct := 0
	for line := range strings.Lines(string(mod)) {
		fields := strings.Fields(line)
		if !strings.HasPrefix(line, "\t") || len(fields) != 2 {
			continue // an indirect one has a comment
		}
		direct++
		if !bytes.Contains(reasons, []byte(fields[0])) {
			t.Errorf("docs/decisions/dependencies.md does not say what %s is here for", fields[0])
		}
	}
	if direct < 20 {
		t.Errorf("only %d direct dependencies found in go.mod", direct)
	}
}

// A clone has no machine's paths and no package registry's host in it.
func TestTheTreeNamesNoMachine(t *testing.T) {
	root, _ := packages(t)
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if d.Name() == ".git" || d.Name() == "bin" {
				return filepath.SkipDir
			}
			return nil
		}
		switch filepath.Ext(path) {
		case ".go", ".md", ".sql", ".yaml", ".yml", ".json", ".html", ".js", ".css", "":
		default:
			return nil
		}
		raw, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, bad := range []string{"/" + "work/", "/" + "root/", "registry." + "npmjs", "proxy." + "golang", "pypi." + "org", "deb." + "debian"} {
			if bytes.Contains(raw, []byte(bad)) {
				t.Errorf("%s names %q", path, bad)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
