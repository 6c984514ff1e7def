package demo

import _ "embed"

//go:embed checks.yaml
var checksFile []byte

// Checks returns the demo's checks file, a copy for the caller.
func Checks() []byte { return append([]byte(nil), checksFile...) }
