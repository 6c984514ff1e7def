package checks

import (
	_ "embed"
	"slices"
)

//go:embed example.yaml
var example []byte

// Example is a commented checks file that says what each key does: `assay init` writes
// it and the docs show it.
func Example() []byte { return slices.Clone(example) }
