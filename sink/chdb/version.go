package chdb

import (
	"fmt"
	"strconv"
	"strings"
)

// The one library build that is known to work: everything in package engine was
// measured on it. A new build means new numbers here and a run of the tests.
const (
	Package        = "@chdb/lib-linux-x64-gnu" // npm
	PackageVersion = "26.7.3-stable.1"
	LibraryFile    = "libchdb.so"
	LibraryVersion = "26.7.3" // as chdb_version says
	LibrarySHA256  = "36ad4e999882821ef13cf2d0f52c93f48e6ee1b4498b35a201c23ce4b8d15bf5"
)

// newer tells whether version a is above b, number by number ("26.10.1" is above
// "26.7.3").
func newer(a, b string) (bool, error) {
	x, err := numbers(a)
	if err != nil {
		return false, err
	}
	y, err := numbers(b)
	if err != nil {
		return false, err
	}
	for i := range min(len(x), len(y)) {
		if x[i] != y[i] {
			return x[i] > y[i], nil
		}
	}
	return len(x) > len(y), nil
}

func numbers(version string) ([]int, error) {
	var all []int
	for part := range strings.SplitSeq(version, ".") {
		n, err := strconv.Atoi(part)
		if err != nil || n < 0 {
			return nil, fmt.Errorf("version %q: want numbers with dots between", version)
		}
		all = append(all, n)
	}
	return all, nil
}
