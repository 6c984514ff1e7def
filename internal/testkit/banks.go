package testkit

import (
	"os"
	"path/filepath"
	"testing"
)

// Cases is the folder of the case banks: ASSAY_CASES, or shared/cases beside the
// checkout. Without it the test fails.
func Cases(tb testing.TB) string { return banks(tb, "ASSAY_CASES", "cases") }

// Data is the folder of human-labelled data: ASSAY_DATA, or shared/data beside the
// checkout. Without it the test fails.
func Data(tb testing.TB) string { return banks(tb, "ASSAY_DATA", "data") }

func banks(tb testing.TB, variable, folder string) string {
	tb.Helper()
	dir := os.Getenv(variable)
	if dir == "" {
		root, err := RepositoryRoot()
		if err != nil {
			tb.Fatal(err)
		}
		dir = filepath.Join(root, "..", "shared", folder)
	}
	if _, err := os.Stat(dir); err != nil {
		tb.Fatalf("%s is not there; %s names another folder: %v", dir, variable, err)
	}
	return dir
}
