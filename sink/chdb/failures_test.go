package chdb_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sethvargo/go-envconfig"

	"assay/sink/chdb"
)

func deps() chdb.Deps { return chdb.Deps{Log: slog.New(slog.DiscardHandler)} }

// program is a child that does what script says: how a child can fail cannot be
// had from the real one on order.
func program(t *testing.T, script string) chdb.Config {
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join(dir, "child")
	must(t, os.WriteFile(path, []byte("#!/bin/sh\nread token\n"+script+"\n"), 0o700))
	library := filepath.Join(dir, chdb.LibraryFile)
	must(t, os.WriteFile(library, nil, 0o600))
	return chdb.Config{
		DataDir: filepath.Join(dir, "data"), Library: library, Binary: path, Queue: 1, MaxMemory: 1 << 30,
		MaxTime: time.Minute, StartWait: 10 * time.Second, StopWait: time.Second,
	}
}

func runError(t *testing.T, cfg chdb.Config) string {
	t.Helper()
	child, err := chdb.New(cfg, deps())
	must(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	err = child.Run(ctx)
	if err == nil {
		t.Fatal("Run ended without an error")
	}
	if _, ready := child.Ready(ctx); ready == nil || ready.Error() != err.Error() {
		t.Errorf("Ready says %v, want Run's %v", ready, err)
	}
	return err.Error()
}

func contains(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("%q does not say %q", text, part)
		}
	}
}

func TestAFailedFirstStartIsNotTriedAgain(t *testing.T) {
	contains(t, runError(t, program(t, `echo '{"error":"the disk is on fire"}'; exit 1`)), "the disk is on fire")
	contains(t, runError(t, program(t, `exit 7`)), "exit status 7")
	contains(t, runError(t, program(t, `echo '{"library":"25.1.0"}'; exec sleep 60`)), "25.1.0", chdb.LibraryVersion, "make engine")
	silent := program(t, `exec sleep 60`)
	silent.StartWait = time.Second
	contains(t, runError(t, silent), "no answer within 1s")
}

func TestAChildThatKeepsDyingIsGivenUpWithItsLastWords(t *testing.T) {
	cfg := program(t, fmt.Sprintf(`i=0; while [ $i -lt 70 ]; do i=$((i+1)); echo "word $i." >&2; done
echo '{"library":"%s"}'; exit 9`, chdb.LibraryVersion))
	cfg.MaxRestarts = 1
	text := runError(t, cfg)
	contains(t, text, "ended 2 times within 10m0s", "exit status 9", "word 21.", "word 70.")
	if strings.Contains(text, "word 20.") {
		t.Errorf("more than the last 50 lines: %q", text)
	}
}

func TestAMissingLibraryNamesTheNextStep(t *testing.T) {
	_, err := chdb.FindLibrary("", t.TempDir())
	if !errors.Is(err, chdb.ErrNoLibrary) {
		t.Fatalf("error %v, want ErrNoLibrary", err)
	}
	contains(t, err.Error(), "make engine", "assay demo --install-engine", "ASSAY_CLICKHOUSE_ADDR")

	// What was configured is meant: nothing else is taken in its place.
	dir := t.TempDir()
	must(t, os.MkdirAll(filepath.Join(dir, "engine"), 0o700))
	installed := filepath.Join(dir, "engine", chdb.LibraryFile)
	must(t, os.WriteFile(installed, nil, 0o600))
	if got, err := chdb.FindLibrary("", dir); err != nil || got != installed {
		t.Errorf("found %q, %v, want %q", got, err, installed)
	}
	_, err = chdb.FindLibrary(filepath.Join(dir, "other.so"), dir)
	if err == nil {
		t.Fatal("a configured library that is missing was replaced by another one")
	}
	contains(t, err.Error(), "ASSAY_CHDB_LIB", "other.so")
	if _, err := chdb.FindLibrary(dir, dir); err == nil {
		t.Error("a directory was taken for a library")
	}
}

func TestAWrongLibraryNamesHashAndNextStep(t *testing.T) {
	path := filepath.Join(t.TempDir(), chdb.LibraryFile)
	must(t, os.WriteFile(path, []byte("not a library"), 0o600))
	err := chdb.VerifyLibrary(path)
	if err == nil {
		t.Fatal("13 bytes were taken for the library")
	}
	contains(t, err.Error(), path, chdb.LibrarySHA256, "make engine")

	// Loaded all the same, it does not start.
	cfg := config(t, dataDir(t))
	right := cfg.Library
	cfg.Library = path
	contains(t, runError(t, cfg), path, "load")
	must(t, chdb.VerifyLibrary(right))
}

func TestADataDirectoryIsOursOrRefused(t *testing.T) {
	base := t.TempDir()
	fresh := filepath.Join(base, "a", "b")
	must(t, chdb.PrepareDataDir(fresh))
	must(t, chdb.PrepareDataDir(fresh))
	if !chdb.IsDataDir(fresh) || chdb.IsDataDir(base) {
		t.Errorf("ours %t, foreign %t", chdb.IsDataDir(fresh), chdb.IsDataDir(base))
	}
	info, err := os.Stat(fresh)
	must(t, err)
	if info.Mode().Perm() != 0o700 {
		t.Errorf("mode %v, want 0700", info.Mode().Perm())
	}
	f := func(version string, want ...string) {
		t.Helper()
		dir := filepath.Join(t.TempDir(), "data")
		must(t, os.MkdirAll(dir, 0o755))
		must(t, os.WriteFile(filepath.Join(dir, "VERSION"), []byte(version), 0o600))
		err := chdb.PrepareDataDir(dir)
		if len(want) == 0 {
			must(t, err)
			return
		}
		if err == nil {
			t.Errorf("VERSION %q was accepted", version)
			return
		}
		contains(t, err.Error(), want...)
	}
	// older and equal engines' directories are taken over
	f("assay data, engine 26.6.9\n")
	f("assay data, engine " + chdb.LibraryVersion + "\n")
	// 26.10 is above 26.7: numbers, not text
	f("assay data, engine 26.10.0\n", "26.10.0", "ASSAY_DATA_DIR")
	f("assay data, engine 27\n", "27", "ASSAY_DATA_DIR")
	f("1.0.2 of another program\n", "not a VERSION file of assay")
	f("assay data, engine new\n", "VERSION")

	foreign := t.TempDir()
	must(t, os.WriteFile(filepath.Join(foreign, "thesis.txt"), nil, 0o600))
	err = chdb.PrepareDataDir(foreign)
	if err == nil {
		t.Fatal("a directory with other files was taken")
	}
	contains(t, err.Error(), "thesis.txt", "ASSAY_DATA_DIR")
	file := filepath.Join(base, "file")
	must(t, os.WriteFile(file, nil, 0o600))
	if err := chdb.PrepareDataDir(filepath.Join(file, "data")); err == nil {
		t.Error("a directory below a file was made")
	}
}

func TestEveryFaultOfTheConfigurationIsNamed(t *testing.T) {
	_, err := chdb.New(chdb.Config{Queue: -1, MaxRestarts: -1}, deps())
	if err == nil {
		t.Fatal("an empty configuration was taken")
	}
	contains(t, err.Error(), "ASSAY_DATA_DIR", "ASSAY_CHDB_QUEUE=-1", "ASSAY_CHDB_MAX_MEMORY=0", "ASSAY_CHDB_MAX_TIME=0s",
		"ASSAY_CHDB_START_WAIT=0s", "ASSAY_CHDB_MAX_RESTARTS=-1")
}

func TestTheDefaultsAreValid(t *testing.T) {
	cfg := chdb.Config{DataDir: t.TempDir()}
	err := envconfig.ProcessWith(t.Context(), &envconfig.Config{Target: &cfg, Lookuper: envconfig.MapLookuper(map[string]string{"LIB": "/lib.so"})})
	must(t, err)
	must(t, cfg.Validate())
	if cfg.Library != "/lib.so" || cfg.Queue != 256 || cfg.MaxRestarts != 5 {
		t.Errorf("read as %+v", cfg)
	}
}
