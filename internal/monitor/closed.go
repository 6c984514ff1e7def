package monitor

import (
	"time"

	"assay/sink"
)

// active reports whether a partition still holds minutes open: its ledger got rows
// within idle of the server's clock.
func active(p sink.LogTime, server time.Time, idle time.Duration) bool {
	return server.Sub(p.InsertedAt) <= idle
}

// closedUntil is the end of the last closed minute. A minute is closed when the newest
// timestamp of every active partition's log is at least grace past its end; with no
// active partition, when it ended before the newest timestamp of all. It is the zero
// time while there is no log.
//
// The log decides and not the clock, so that an outage, a backlog or a day simulated in
// two minutes reads the same rows in the same order. Timestamps are the log's, so a
// record that claims to come from next week closes nothing.
func closedUntil(partitions []sink.LogTime, server time.Time, idle, grace time.Duration) time.Time {
	var slowest, newest time.Time
	for _, p := range partitions {
		if p.LogTime.After(newest) {
			newest = p.LogTime
		}
		if active(p, server, idle) && (slowest.IsZero() || p.LogTime.Before(slowest)) {
			slowest = p.LogTime
		}
	}
	switch {
	case newest.IsZero():
		return time.Time{}
	case slowest.IsZero():
		return newest.UTC().Truncate(time.Minute)
	default:
		return slowest.Add(-grace).UTC().Truncate(time.Minute)
	}
}

// newestLogTime is the event clock; zero while there is no log.
func newestLogTime(partitions []sink.LogTime) time.Time {
	var newest time.Time
	for _, p := range partitions {
		if p.LogTime.After(newest) {
			newest = p.LogTime
		}
	}
	return newest.UTC()
}
