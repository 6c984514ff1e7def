package main

import (
	"io"
	"os"
)

// openInput opens a file that the command line names; - is standard input.
func openInput(path string) (io.ReadCloser, error) {
	if path == "-" {
		return io.NopCloser(os.Stdin), nil
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, errUsage{err}
	}
	return f, nil
}
