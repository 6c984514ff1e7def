package testkit

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// RepositoryRoot is the folder of go.mod. Tests run in their package's folder,
// so it is looked for upwards.
func RepositoryRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		_, err := os.Stat(filepath.Join(dir, "go.mod"))
		if err == nil {
			return dir, nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", errors.New("no go.mod in this folder or above it")
		}
		dir = parent
	}
}

// buildDir keeps the programs that tests build, one folder per checkout so that
// two of them do not build over each other.
func buildDir(root string) (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		cache = os.TempDir()
	}
	sum := sha256.Sum256([]byte(root))
	dir := filepath.Join(cache, "assay-testkit", hex.EncodeToString(sum[:8]))
	return dir, os.MkdirAll(dir, 0o700)
}
