package monitor

import (
	"testing"
	"time"

	"assay/sink"
)

func TestAMinuteIsClosedByTheLogOfEveryActivePartition(t *testing.T) {
	server := time.Date(2026, 8, 1, 9, 0, 0, 0, time.UTC)
	clock := func(text string) time.Time {
		at, err := time.Parse("2006-01-02 15:04:05", "2026-03-14 "+text)
		if err != nil {
			t.Fatal(err)
		}
		return at
	}
	type partition struct {
		log  string
		idle time.Duration // since its last ledger row
	}
	f := func(want string, partitions ...partition) {
		t.Helper()
		var logTimes []sink.LogTime
		for i, p := range partitions {
			logTimes = append(logTimes, sink.LogTime{Topic: "log", Partition: uint32(i), LogTime: clock(p.log), InsertedAt: server.Add(-p.idle)})
		}
		got := closedUntil(logTimes, server, 10*time.Minute, 5*time.Minute)
		if want == "" {
			if !got.IsZero() {
				t.Errorf("%v: closed until %s, want nothing closed", partitions, got)
			}
			return
		}
		if !got.Equal(clock(want)) {
			t.Errorf("%v: closed until %s, want %s", partitions, got.Format(time.TimeOnly), want)
		}
	}

	// no log yet
	f("")
	// one active partition: five minutes behind it, whole minutes only
	f("11:55:00", partition{"12:00:00", 0})
	f("11:54:00", partition{"11:59:59", 0})
	f("11:55:00", partition{"12:00:59", 0})
	// the slowest active one decides
	f("09:25:00", partition{"12:00:00", 0}, partition{"09:30:10", 9 * time.Minute})
	// until it is idle: it may have no traffic at all
	f("11:55:00", partition{"12:00:00", 0}, partition{"09:30:10", 11 * time.Minute})
	// exactly at the limit it still counts
	f("09:25:00", partition{"12:00:00", 0}, partition{"09:30:10", 10 * time.Minute})
	// a log that stopped: every minute that ended before its newest record, no grace
	f("12:00:00", partition{"12:00:30", time.Hour}, partition{"09:30:10", time.Hour})
	f("12:00:00", partition{"12:00:00", time.Hour})
}
