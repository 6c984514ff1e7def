package chdb

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// What lies in a data directory (ASSAY_DATA_DIR).
const (
	engineDir     = "engine"     // the installed library
	clickhouseDir = "clickhouse" // the engine's tables
	kafkaDir      = "kafka"      // the embedded Kafka's log; its owner is package demo
	versionFile   = "VERSION"    // marks the directory as ours, names the engine that wrote it
)

// DefaultDataDir is where data go when ASSAY_DATA_DIR is not set.
func DefaultDataDir() (string, error) {
	if base := os.Getenv("XDG_DATA_HOME"); filepath.IsAbs(base) {
		return filepath.Join(base, "assay"), nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("no home directory: set ASSAY_DATA_DIR: %w", err)
	}
	return filepath.Join(home, ".local", "share", "assay"), nil
}

// PrepareDataDir makes dir a data directory of ours, readable by its owner only.
// It refuses a directory with other people's files in it, and one that a newer
// engine has written: an older one cannot be trusted to read its parts.
func PrepareDataDir(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("data directory: %w", err)
	}
	if err := os.Chmod(dir, 0o700); err != nil {
		return fmt.Errorf("data directory: %w", err)
	}
	written, err := writtenBy(dir)
	switch {
	case err != nil:
		return err
	case written == "":
		if err := onlyOurs(dir); err != nil {
			return err
		}
	default:
		above, err := newer(written, LibraryVersion)
		if err != nil {
			return fmt.Errorf("%s: %w", filepath.Join(dir, versionFile), err)
		}
		if above {
			return fmt.Errorf("data directory %s was written by engine %s, this one is %s: use a newer assay, or another ASSAY_DATA_DIR", dir, written, LibraryVersion)
		}
	}
	if written == LibraryVersion {
		return nil
	}
	return writeVersion(dir)
}

// IsDataDir tells whether dir carries our VERSION file. Nothing without it is
// ever deleted.
func IsDataDir(dir string) bool {
	written, err := writtenBy(dir)
	return err == nil && written != ""
}

// versionPrefix is what the one line of the VERSION file starts with.
const versionPrefix = "assay data, engine "

// writtenBy returns the engine's version in the VERSION file, empty without one.
func writtenBy(dir string) (string, error) {
	path := filepath.Join(dir, versionFile)
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("data directory: %w", err)
	}
	version, ok := strings.CutPrefix(strings.TrimSpace(string(text)), versionPrefix)
	if !ok {
		return "", fmt.Errorf("%s is not a VERSION file of assay: choose another ASSAY_DATA_DIR", path)
	}
	return version, nil
}

// writeVersion replaces the file in one step, so that a crash leaves the old one
// or the new one.
func writeVersion(dir string) error {
	file, err := os.CreateTemp(dir, versionFile+".*")
	if err != nil {
		return fmt.Errorf("data directory: %w", err)
	}
	defer func() { _ = os.Remove(file.Name()) }()
	_, err = file.WriteString(versionPrefix + LibraryVersion + "\n")
	if err := errors.Join(err, file.Close()); err != nil {
		return fmt.Errorf("data directory: %w", err)
	}
	if err := os.Rename(file.Name(), filepath.Join(dir, versionFile)); err != nil {
		return fmt.Errorf("data directory: %w", err)
	}
	return nil
}

func onlyOurs(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("data directory: %w", err)
	}
	for _, entry := range entries {
		if !slices.Contains([]string{engineDir, clickhouseDir, kafkaDir, "lost+found"}, entry.Name()) {
			return fmt.Errorf("%s holds files that are not assay's (%s): choose an empty or new directory in ASSAY_DATA_DIR", dir, entry.Name())
		}
	}
	return nil
}
