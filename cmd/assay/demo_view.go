package main

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"assay/internal/demo"
	"assay/internal/monitor"
)

// demoView shows a demo while it runs: a table that is drawn over itself in a terminal,
// a line now and then elsewhere, and every alarm as it opens and closes.
type demoView struct {
	run      *demoRun
	terminal bool

	mu    sync.Mutex // guards the fields below
	clock time.Time  // of the newest event produced
	seen  map[string]monitor.Alarm

	lines   int       // drawn and to be drawn over; of watch alone
	printed time.Time // simulated time of the last plain line; of watch alone
}

// A plain line every so often of simulated time.
const demoLineEvery = 2 * time.Hour

// tableWidth is what the table needs: in a narrower terminal its lines would wrap, and
// drawing over them would miss.
const tableWidth = 130

func newDemoView(d *demoRun) *demoView {
	return &demoView{run: d, terminal: terminalWidth(d.app.out) >= tableWidth, seen: make(map[string]monitor.Alarm)}
}

// produced adds events to the truth. It is called by the one goroutine that plays.
func (v *demoView) produced(events []demo.Event) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, e := range events {
		v.run.tally.Add(e)
		v.run.events = append(v.run.events, e.Truths...)
	}
	v.clock = events[len(events)-1].Record.Time
}

// watch draws until ctx ends, and once more then.
func (v *demoView) watch(ctx context.Context) error {
	tick := time.NewTicker(500 * time.Millisecond)
	defer tick.Stop()
	for {
		v.draw()
		select {
		case <-ctx.Done():
			v.draw()
			return nil
		case <-tick.C:
		}
	}
}

func (v *demoView) draw() {
	s := v.run.sys.monitor.Snapshot()
	if s == nil {
		return
	}
	v.mu.Lock()
	clock := v.clock
	v.mu.Unlock()
	v.tellAlarms(s)
	if v.terminal {
		table := v.table(s, clock)
		v.erase()
		fmt.Fprint(v.run.app.out, table)
		v.lines = strings.Count(table, "\n")
		return
	}
	if s.Now.Sub(v.printed) >= demoLineEvery {
		v.printed = s.Now
		fmt.Fprintln(v.run.app.out, v.line(s))
	}
}

func (v *demoView) erase() {
	if v.lines > 0 {
		fmt.Fprintf(v.run.app.out, "\x1b[%dA\x1b[J", v.lines)
		v.lines = 0
	}
}

// tellAlarms prints what opened or closed since the last look.
func (v *demoView) tellAlarms(s *monitor.Snapshot) {
	byTime := slices.SortedFunc(slices.Values(s.Alarms), func(a, b monitor.Alarm) int { return a.OpenedAt.Compare(b.OpenedAt) })
	for _, al := range byTime {
		v.mu.Lock()
		old, known := v.seen[al.ID]
		v.seen[al.ID] = al
		v.mu.Unlock()
		if known && old.State == al.State {
			continue
		}
		v.erase()
		out := v.run.app.out
		switch {
		case al.State == "closed":
			if !known {
				fmt.Fprintf(out, "ALARM OPENED  %s  %s\n", al.OpenedAt.Format("15:04"), al.Summary)
			}
			fmt.Fprintf(out, "ALARM CLOSED  %s  %s on %s: the rate since the opening is back above its bound\n",
				al.ClosedAt.Format("15:04"), al.Check, al.Slice)
		default:
			fmt.Fprintf(out, "ALARM OPENED  %s  %s\n", al.OpenedAt.Format("15:04"), al.Summary)
		}
	}
}

// alarms are all that were seen.
func (v *demoView) alarms() []monitor.Alarm {
	v.mu.Lock()
	defer v.mu.Unlock()
	var out []monitor.Alarm
	for _, al := range v.seen {
		out = append(out, al)
	}
	return out
}

// line is the state in one line.
func (v *demoView) line(s *monitor.Snapshot) string {
	parts := []string{s.Now.Format("Jan 2 15:04")}
	for _, c := range s.Checks {
		if !c.Current || len(c.Slices) == 0 {
			continue
		}
		w, _ := c.Slices[0].Window("1h")
		parts = append(parts, fmt.Sprintf("%s %s, n %d", c.Name, windowRate(w), w.N))
	}
	return strings.Join(parts, "   ")
}

func windowRate(w monitor.Window) string {
	if w.PassRate.Value == nil {
		return "-"
	}
	return rate(*w.PassRate.Value, w.PassRate.Lower, w.PassRate.Upper)
}

// table is the state as a terminal shows it.
func (v *demoView) table(s *monitor.Snapshot, clock time.Time) string {
	opts := v.run.sim.Options()
	done := clock.Sub(opts.Start).Seconds() / opts.End.Sub(opts.Start).Seconds()
	const width = 48
	filled := int(math.Round(width * min(1, max(0, done))))
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s  [%s%s] %3.0f%%   log read to %s\n\n", clock.Format("Jan 2 15:04"),
		strings.Repeat("=", filled), strings.Repeat(" ", width-filled), 100*done, s.Now.Format("15:04"))
	t := newTable(&b, "check", "slice", "last hour (95%)", "n", "24 hours (95%)", "n", "missing", "evidence of a fall")
	for _, c := range s.Checks {
		if !c.Current {
			continue
		}
		for _, sl := range c.Slices {
			hour, _ := sl.Window("1h")
			dayWindow, _ := sl.Window("24h")
			missing := "-"
			if dayWindow.MissingShare != nil {
				missing = percent(*dayWindow.MissingShare)
			}
			t.AppendRow([]any{c.Name, sl.Slice.String(), windowRate(hour), hour.N, windowRate(dayWindow), dayWindow.N, missing, evidence(sl.Detector)})
		}
	}
	t.Render()
	return b.String()
}

// evidence is a detector's state: how far the evidence is on the way to its limit, on
// a logarithmic scale.
func evidence(d *monitor.Detector) string {
	switch {
	case d == nil:
		return "-"
	case d.State == monitor.DetectorAlarm:
		return "ALARM"
	case d.State == monitor.DetectorOff:
		return "off"
	}
	const width = 10
	part := math.Log10(max(1, d.EValue)) / math.Log10(max(10, d.Threshold))
	filled := int(math.Round(width * min(1, part)))
	return fmt.Sprintf("%s%s %.0e of %.0e", strings.Repeat("#", filled), strings.Repeat(".", width-filled), max(1, d.EValue), d.Threshold)
}
