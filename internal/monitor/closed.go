package monitor

import (
	"time"

	"assay/sink"
)

// firstLogTime is the first timestamp that is taken for a time: Kafka shows 0 or -1 for
// records that have none.
var firstLogTime = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

// A doubt is why a partition's newest timestamp is not taken as it is.
type doubt string

const (
	doubtFuture  doubt = "future"  // ahead of the server's clock, and cut to it
	doubtNoTime  doubt = "no_time" // before firstLogTime, so the partition counts nowhere
	doubtNothing doubt = ""        // none
)

var doubts = [...]doubt{doubtFuture, doubtNoTime}

func doubtOf(p sink.LogTime, server time.Time) doubt {
	switch {
	case p.LogTime.After(server):
		return doubtFuture
	case p.LogTime.Before(firstLogTime):
		return doubtNoTime
	default:
		return doubtNothing
	}
}

// believed returns the partitions whose time may decide. Producers write most
// timestamps, so they are evidence of how far the log has come only up to now: one
// record from next week would close a week of minutes that nobody has read.
func believed(partitions []sink.LogTime, server time.Time) []sink.LogTime {
	kept := make([]sink.LogTime, 0, len(partitions))
	for _, p := range partitions {
		switch doubtOf(p, server) {
		case doubtNoTime:
			continue
		case doubtFuture:
			p.LogTime = server
		}
		kept = append(kept, p)
	}
	return kept
}

// active reports whether a partition still holds minutes open: it has a time and its
// ledger got rows within idle of the server's clock.
func active(p sink.LogTime, server time.Time, idle time.Duration) bool {
	return doubtOf(p, server) != doubtNoTime && server.Sub(p.InsertedAt) <= idle
}

// closedUntil is the end of the last closed minute, by believed partitions. A minute is
// closed when the newest timestamp of every active partition's log is at least grace past
// its end; with no active partition, when it ended before the newest timestamp of all. It
// is the zero time while there is no log.
//
// The log decides and not the clock, so that an outage, a backlog or a day simulated in
// two minutes reads the same rows in the same order.
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

// newestLogTime is the event clock, by believed partitions; zero while there is no log.
func newestLogTime(partitions []sink.LogTime) time.Time {
	var newest time.Time
	for _, p := range partitions {
		if p.LogTime.After(newest) {
			newest = p.LogTime
		}
	}
	return newest.UTC()
}
