package chdb

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
)

// ErrNoLibrary says that the engine is not installed; the text around it names
// the next step.
var ErrNoLibrary = errors.New("the embedded ClickHouse is not installed")

// ErrPlatform says that the engine does not exist for this machine.
var ErrPlatform = errors.New("the embedded ClickHouse runs on Linux x86-64 with glibc only")

// nextStep ends every message about a missing or wrong library.
const nextStep = "run `make engine` or `assay demo --install-engine`, or name a ClickHouse server in ASSAY_CLICKHOUSE_ADDR"

// FindLibrary returns the library to load: configured (ASSAY_CHDB_LIB) if it is
// not empty, and then nothing else is tried; otherwise the installed one.
func FindLibrary(configured, dataDir string) (string, error) {
	if err := platform(runtime.GOOS, runtime.GOARCH); err != nil {
		return "", err
	}
	if configured != "" {
		if err := isFile(configured); err != nil {
			return "", fmt.Errorf("ASSAY_CHDB_LIB=%s: %w", configured, err)
		}
		return configured, nil
	}
	path := filepath.Join(dataDir, engineDir, LibraryFile)
	if err := isFile(path); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return "", fmt.Errorf("%w (no %s): %s", ErrNoLibrary, path, nextStep)
		}
		return "", err
	}
	return path, nil
}

func platform(goos, goarch string) error {
	if goos == "linux" && goarch == "amd64" {
		return nil
	}
	return fmt.Errorf("%w, this is %s/%s: name a ClickHouse server in ASSAY_CLICKHOUSE_ADDR or use docker compose", ErrPlatform, goos, goarch)
}

func isFile(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%s is not a file", path)
	}
	return nil
}

// VerifyLibrary reads the whole file, about a second, and compares its SHA-256.
func VerifyLibrary(path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	sum := sha256.New()
	if _, err := io.Copy(sum, file); err != nil {
		return fmt.Errorf("read %s: %w", path, err)
	}
	if got := hex.EncodeToString(sum.Sum(nil)); got != LibrarySHA256 {
		return fmt.Errorf("%s is not the library this assay was built for (SHA-256 %s, want %s of %s %s): remove it, then %s",
			path, got, LibrarySHA256, Package, PackageVersion, nextStep)
	}
	return nil
}

// binaryName is the child's program.
const binaryName = "assay-chdb"

// FindBinary returns the child's program: beside the running one, else on PATH.
func FindBinary() (string, error) {
	self, err := os.Executable()
	if err == nil {
		beside := filepath.Join(filepath.Dir(self), binaryName)
		if isFile(beside) == nil {
			return beside, nil
		}
	}
	path, err := exec.LookPath(binaryName)
	if err != nil {
		return "", fmt.Errorf("no program %s beside %s nor on PATH: `make build` builds both", binaryName, self)
	}
	return path, nil
}
