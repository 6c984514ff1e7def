package testkit

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
)

// buildProgram builds cmd/<name> of this repository and returns a copy of it and
// the function that removes the copy. Packages are tested in processes side by
// side: a lock lets one of them build while the others wait, and is given back at
// once (kept while the program ran, it stopped every other test that builds).
// What runs is the copy, which no later build can touch.
func buildProgram(ctx context.Context, name string) (path string, remove func(), err error) {
	root, err := RepositoryRoot()
	if err != nil {
		return "", nil, err
	}
	built, err := buildDir(root)
	if err != nil {
		return "", nil, err
	}
	lock, err := os.OpenFile(filepath.Join(built, name+".lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return "", nil, err
	}
	defer func() { _ = lock.Close() }()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return "", nil, fmt.Errorf("lock %s: %w", lock.Name(), err)
	}
	source := filepath.Join(built, name)
	cmd := exec.CommandContext(ctx, "go", "build", "-o", source, "./cmd/"+name)
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", nil, fmt.Errorf("go build ./cmd/%s: %w\n%s", name, err, out)
	}
	dir, err := os.MkdirTemp("", "assay-test-program-")
	if err != nil {
		return "", nil, err
	}
	path = filepath.Join(dir, name)
	if err := copyProgram(source, path); err != nil {
		return "", nil, errors.Join(err, os.RemoveAll(dir))
	}
	return path, func() { _ = os.RemoveAll(dir) }, nil
}

// copyProgram holds off forks of this process while the file is open for
// writing: a process started in that moment would keep it open, and an open file
// cannot be executed.
func copyProgram(source, target string) error {
	code, err := os.ReadFile(source)
	if err != nil {
		return err
	}
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	file, err := os.OpenFile(target, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o700)
	if err != nil {
		return err
	}
	_, err = file.Write(code)
	return errors.Join(err, file.Close())
}
