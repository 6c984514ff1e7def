package chdb

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// Install puts the pinned library into dataDir with the package client the user
// has: its settings (mirror, proxy, offline cache) apply, and no address of a
// registry is known here. The file is verified before it takes its place, so an
// interrupted or false download leaves what was there. An installed library that
// verifies is kept. progress gets one line per step.
//
// The Python wheel that carries the same engine is no second source: its shared
// object needs a running Python and exports none of the functions used here.
func Install(ctx context.Context, dataDir string, progress io.Writer) error {
	if err := platform(runtime.GOOS, runtime.GOARCH); err != nil {
		return err
	}
	return install(ctx, dataDir, progress, npm, VerifyLibrary)
}

// fetch puts the library's package below dir and returns the library's path.
type fetch func(ctx context.Context, dir string) (string, error)

func install(ctx context.Context, dataDir string, progress io.Writer, get fetch, verify func(path string) error) error {
	if err := PrepareDataDir(dataDir); err != nil {
		return err
	}
	target := filepath.Join(dataDir, engineDir, LibraryFile)
	if isFile(target) == nil {
		say(progress, "verifying %s", target)
		if verify(target) == nil {
			say(progress, "%s %s is installed", Package, PackageVersion)
			return nil
		}
		say(progress, "another library is there; it is replaced")
	}
	if err := os.MkdirAll(filepath.Dir(target), 0o700); err != nil {
		return fmt.Errorf("install the engine: %w", err)
	}
	// In the same directory: a rename across file systems is a copy, and a copy
	// can be seen half done.
	dir, err := os.MkdirTemp(filepath.Dir(target), ".install-")
	if err != nil {
		return fmt.Errorf("install the engine: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	began := time.Now()
	say(progress, "fetching %s %s with npm (about 570 MB on disk)", Package, PackageVersion)
	path, err := get(ctx, dir)
	if err != nil {
		return err
	}
	say(progress, "fetched in %s, verifying", time.Since(began).Round(time.Second))
	if err := verify(path); err != nil {
		return err
	}
	if err := os.Rename(path, target); err != nil {
		return fmt.Errorf("install the engine: %w", err)
	}
	say(progress, "installed %s", target)
	return nil
}

// say tells the user; a terminal that is gone is no reason to stop.
func say(w io.Writer, format string, args ...any) { _, _ = fmt.Fprintf(w, format+"\n", args...) }

// npm fetches the package with the user's npm. No script of the package runs.
func npm(ctx context.Context, dir string) (string, error) {
	client, err := exec.LookPath("npm")
	if err != nil {
		return "", fmt.Errorf("no package client: npm is not on PATH. Install Node.js, or fetch the package %s %s elsewhere and name its %s in ASSAY_CHDB_LIB, or name a ClickHouse server in ASSAY_CLICKHOUSE_ADDR",
			Package, PackageVersion, LibraryFile)
	}
	cmd := exec.CommandContext(ctx, client, "install", "--no-save", "--ignore-scripts", "--no-audit", "--no-fund",
		"--prefix", dir, Package+"@"+PackageVersion)
	cmd.Dir = dir
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			return "", fmt.Errorf("install the engine: %w", ctx.Err())
		}
		return "", fmt.Errorf("npm could not fetch %s %s: %w. Check the network and npm's registry setting, or name a ClickHouse server in ASSAY_CLICKHOUSE_ADDR. npm said:\n%s",
			Package, PackageVersion, err, strings.TrimSpace(said.String()))
	}
	path := filepath.Join(dir, "node_modules", filepath.FromSlash(Package), LibraryFile)
	if err := isFile(path); err != nil {
		return "", errors.Join(fmt.Errorf("the package %s %s holds no %s", Package, PackageVersion, LibraryFile), err)
	}
	return path, nil
}
