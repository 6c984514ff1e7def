package testkit

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// Tool writes a command into dir that runs one of Kafka's own classes, as the scripts of
// its distribution do.
func (k *KafkaCluster) Tool(tb testing.TB, dir, name, class string) {
	tb.Helper()
	script := fmt.Sprintf("#!/bin/sh\nexec java -Xmx256m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Dorg.slf4j.simpleLogger.defaultLogLevel=error -cp '%s' %s \"$@\"\n",
		filepath.Join(k.jars, "*"), class)
	// a process forked while the file is open for writing would keep it from being run
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(script), 0o700); err != nil {
		tb.Fatal(err)
	}
}
