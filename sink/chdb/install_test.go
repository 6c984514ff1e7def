package chdb

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// package of a fetch: a file with the given text.
func delivers(text string) fetch {
	return func(_ context.Context, dir string) (string, error) {
		path := filepath.Join(dir, "deep", LibraryFile)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return "", err
		}
		return path, os.WriteFile(path, []byte(text), 0o600)
	}
}

// right stands for the hash of half a gigabyte.
func right(path string) error {
	text, err := os.ReadFile(path)
	if err == nil && string(text) != "right" {
		err = errors.New("wrong hash")
	}
	return err
}

func TestAnInstallIsWholeOrNotAtAll(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	target := filepath.Join(dir, engineDir, LibraryFile)
	broken := errors.New("the network went away")
	f := func(get fetch, wantErr string, wantText string) {
		t.Helper()
		var said strings.Builder
		err := install(t.Context(), dir, &said, get, right)
		if wantErr == "" && err != nil || wantErr != "" && (err == nil || !strings.Contains(err.Error(), wantErr)) {
			t.Errorf("error %v, want %q", err, wantErr)
		}
		text, _ := os.ReadFile(target)
		if string(text) != wantText {
			t.Errorf("installed is %q, want %q", text, wantText)
		}
		left, err := os.ReadDir(filepath.Join(dir, engineDir))
		if err != nil || len(left) != min(len(wantText), 1) {
			t.Errorf("%d files lie in the engine's directory (%v)", len(left), err)
		}
	}
	f(func(context.Context, string) (string, error) { return "", broken }, broken.Error(), "")
	f(delivers("false"), "wrong hash", "")
	f(delivers("right"), "", "right")
	// what verifies is kept: nothing is fetched
	f(func(context.Context, string) (string, error) { return "", broken }, "", "right")
	// what does not is replaced, once the new one has been verified
	if err := os.WriteFile(target, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	f(delivers("false"), "wrong hash", "old")
	f(delivers("right"), "", "right")
}

func TestWithoutAPackageClientTheMessageNamesTheWay(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("PATH", dir)
	_, err := npm(t.Context(), dir)
	if err == nil {
		t.Fatal("fetched without a client")
	}
	for _, want := range []string{"npm is not on PATH", Package, PackageVersion, "ASSAY_CHDB_LIB", "ASSAY_CLICKHOUSE_ADDR"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q does not say %q", err, want)
		}
	}
	client := "#!/bin/sh\necho 'no such package here' >&2\nexit 1\n"
	if err := os.WriteFile(filepath.Join(dir, "npm"), []byte(client), 0o700); err != nil {
		t.Fatal(err)
	}
	_, err = npm(t.Context(), dir)
	if err == nil || !strings.Contains(err.Error(), "no such package here") || !strings.Contains(err.Error(), Package) {
		t.Errorf("error %v, want the client's own words and the package", err)
	}
}

func TestOnlyOnePlatformIsServed(t *testing.T) {
	if err := platform("linux", "amd64"); err != nil {
		t.Error(err)
	}
	for _, other := range [][2]string{{"linux", "arm64"}, {"darwin", "arm64"}, {"windows", "amd64"}} {
		err := platform(other[0], other[1])
		if !errors.Is(err, ErrPlatform) || !strings.Contains(err.Error(), other[0]+"/"+other[1]) || !strings.Contains(err.Error(), "ASSAY_CLICKHOUSE_ADDR") {
			t.Errorf("%v: %v", other, err)
		}
	}
}

func TestPausesDoubleUpToHalfAMinute(t *testing.T) {
	for deaths, want := range map[int]time.Duration{1: 500 * time.Millisecond, 2: time.Second, 5: 8 * time.Second, 7: 30 * time.Second, 1000: 30 * time.Second} {
		if got := pauseAfter(deaths); got != want {
			t.Errorf("pause after %d deaths is %s, want %s", deaths, got, want)
		}
	}
	now := time.Now()
	deaths := []time.Time{now.Add(-11 * time.Minute), now.Add(-9 * time.Minute), now.Add(-time.Minute)}
	if got := len(recent(deaths, now)); got != 2 {
		t.Errorf("%d deaths count, want the 2 of the last 10 minutes", got)
	}
}

func TestVersionsCompareByNumber(t *testing.T) {
	f := func(a, b string, want bool) {
		t.Helper()
		if got, err := newer(a, b); err != nil || got != want {
			t.Errorf("%s newer than %s: %t, %v", a, b, got, err)
		}
	}
	f("26.7.3", "26.7.3", false)
	f("26.10.0", "26.7.3", true)
	f("26.7.3", "26.10.0", false)
	f("27", "26.7.3", true)
	f("26.7", "26.7.3", false)
	if _, err := newer("26.x", "26.7"); err == nil {
		t.Error("26.x was taken for a version")
	}
}
