package server

import (
	"os"
	"testing"
	"time"
)

func TestLook(t *testing.T) {
	w := start(t)
	w.monitor.Store(aDay(w, time.Now().UTC()))
	os.WriteFile("/tmp/server/url", []byte(w.url), 0o644)
	for range 600 {
		if _, err := os.Stat("/tmp/server/stop"); err == nil {
			return
		}
		time.Sleep(time.Second)
		s := *w.monitor.Load()
		s.At = time.Now()
		w.monitor.Store(&s)
	}
}
