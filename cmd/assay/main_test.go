package main

import (
	"testing"

	"go.uber.org/goleak"

	"assay/internal/testkit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(testkit.Engines(m)) }
