package testkit

import (
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

//go:embed kafka/pom.xml
var kafkaPOM []byte

// jarsWait bounds the download of the broker, about 44 MB.
const jarsWait = 5 * time.Minute

// kafkaJars returns the folder with the broker's jars, downloaded by the first test
// that needs them and kept in the user's cache. A changed list has a folder of its own.
func kafkaJars(ctx context.Context) (string, error) {
	for _, program := range []string{"java", "mvn"} {
		if _, err := exec.LookPath(program); err != nil {
			return "", fmt.Errorf("tests on a real Kafka broker need %s on PATH, `make kafka` installs it: %w", program, err)
		}
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		cache = os.TempDir()
	}
	sum := sha256.Sum256(kafkaPOM)
	dir := filepath.Join(cache, "assay-testkit", "kafka-"+hex.EncodeToString(sum[:4]))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	lock, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return "", err
	}
	defer func() { _ = lock.Close() }()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return "", fmt.Errorf("lock %s: %w", lock.Name(), err)
	}
	jars := filepath.Join(dir, "jars")
	if _, err := os.Stat(jars); !errors.Is(err, fs.ErrNotExist) {
		return jars, err
	}
	if err := os.WriteFile(filepath.Join(dir, "pom.xml"), kafkaPOM, 0o600); err != nil {
		return "", err
	}
	// a download that breaks off leaves a folder of another name
	partial := filepath.Join(dir, "partial")
	if err := os.RemoveAll(partial); err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, jarsWait)
	defer cancel()
	cmd := exec.CommandContext(ctx, "mvn", "-q", "-B", "dependency:copy-dependencies", "-DincludeScope=runtime", "-DoutputDirectory="+partial)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("mvn dependency:copy-dependencies in %s: %w\n%s", dir, err, out)
	}
	return jars, os.Rename(partial, jars)
}
