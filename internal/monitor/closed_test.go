package monitor

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"assay/sink"
)

func TestAMinuteIsClosedByTheLogOfEveryActivePartition(t *testing.T) {
	server := time.Date(2026, 8, 1, 9, 0, 0, 0, time.UTC)
	clock := func(text string) time.Time {
		if len(text) == len(time.TimeOnly) {
			text = "2026-03-14 " + text
		}
		at, err := time.Parse(time.DateTime, text)
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
		got := closedUntil(believed(logTimes, server), server, 10*time.Minute, 5*time.Minute)
		if want == "" {
			if !got.IsZero() {
				t.Errorf("%v: closed until %s, want nothing closed", partitions, got)
			}
			return
		}
		if !got.Equal(clock(want)) {
			t.Errorf("%v: closed until %s, want %s", partitions, got.Format(time.DateTime), want)
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
	// a timestamp of the future says no more than the server's clock
	f("2026-08-01 08:55:00", partition{"2126-03-14 12:00:00", 0})
	f("2026-08-01 08:55:00", partition{"2026-08-01 09:00:01", 0})
	f("2026-08-01 09:00:00", partition{"2126-03-14 12:00:00", time.Hour}, partition{"12:00:00", time.Hour})
	// and closes nothing for the others
	f("11:55:00", partition{"2126-03-14 12:00:00", 0}, partition{"12:00:00", 0})
	// a partition without times holds nothing open and closes nothing
	f("11:55:00", partition{"1970-01-01 00:00:00", 0}, partition{"12:00:00", 0})
	f("11:55:00", partition{"1999-12-31 23:59:59", 0}, partition{"12:00:00", 0})
	f("12:00:00", partition{"1970-01-01 00:00:00", 0}, partition{"12:00:00", time.Hour})
	f("", partition{"1970-01-01 00:00:00", 0})
	f("", partition{"1970-01-01 00:00:00", time.Hour})
	// from 2000 on it is a time, if an old one
	f("1999-12-31 23:55:00", partition{"2000-01-01 00:00:00", 0}, partition{"12:00:00", 0})
}

// The story: a producer writes records of the next century, another none at all.
func TestTimestampsOutOfRangeMoveNoClockAndAreCounted(t *testing.T) {
	store := newMemory()
	w := newWorld(t, store, aFile(.90, .02, 1, 4))
	w.load(time.Hour, batch{check: "refund", pi: 1, ok: 60, pass: 57})
	want := w.round()
	store.others = []sink.LogTime{
		{Topic: "log", Partition: 1, LogTime: morning.AddDate(100, 0, 0), InsertedAt: store.clock},
		{Topic: "log", Partition: 2, LogTime: time.Unix(0, 0), InsertedAt: store.clock},
	}
	got := w.round()
	if !got.ClosedUntil.Equal(want.ClosedUntil) || !got.Now.Equal(store.clock) {
		t.Errorf("closed until %v at %v, want still %v and no later than the server's %v", got.ClosedUntil, got.Now, want.ClosedUntil, store.clock)
	}
	var active []bool
	for _, p := range got.Partitions {
		active = append(active, p.Active)
	}
	if !slices.Equal(active, []bool{true, true, false}) {
		t.Errorf("active %v: want every partition but the one without times", active)
	}
	const text = `
# HELP assay_monitor_log_times_out_of_range_total Partitions, counted in every round, whose newest Kafka timestamp is ahead of ClickHouse's clock (future: cut to it) or from before 2000 (no_time: ignored).
# TYPE assay_monitor_log_times_out_of_range_total counter
assay_monitor_log_times_out_of_range_total{reason="future"} 1
assay_monitor_log_times_out_of_range_total{reason="no_time"} 1
`
	if err := testutil.GatherAndCompare(w.reg, strings.NewReader(text), "assay_monitor_log_times_out_of_range_total"); err != nil {
		t.Error(err)
	}
}
