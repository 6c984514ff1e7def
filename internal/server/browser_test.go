package server

import (
	"context"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	cdplog "github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"assay/internal/monitor"
)

// A browser is a real one on a page of a world. It remembers what the page complained
// about and which addresses it asked for.
type browser struct {
	t   *testing.T
	ctx context.Context

	mu         sync.Mutex // guards the fields below
	complaints []string
	requests   []string
}

func openBrowser(t *testing.T) *browser {
	t.Helper()
	path := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if found, err := exec.LookPath(name); err == nil {
			path = found
			break
		}
	}
	if path == "" {
		t.Fatal("no Chromium on PATH: make browser installs one")
	}
	options := append(slices.Clone(chromedp.DefaultExecAllocatorOptions[:]),
		chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.UserDataDir(t.TempDir()),
		chromedp.Flag("disable-gpu", true), chromedp.Flag("disable-quic", true), chromedp.Flag("disable-component-update", true),
		chromedp.WSURLReadTimeout(time.Minute))
	b := &browser{t: t}
	allocated, stop := chromedp.NewExecAllocator(context.Background(), options...)
	ctx, cancel := chromedp.NewContext(allocated, chromedp.WithListener(b.hear))
	b.ctx = ctx
	t.Cleanup(func() {
		closing, expire := context.WithTimeout(ctx, 10*time.Second)
		defer expire()
		_ = chromedp.Cancel(closing) // it may have ended by itself
		cancel()
		stop()
		chromedp.FromContext(ctx).Allocator.Wait()
	})
	b.do(chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		_, err := cdp.Call(ctx, target, network.Enable, network.EnableParams{})
		return err
	}))
	return b
}

// hear remembers what the tests look at later.
func (b *browser) hear(event any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch e := event.(type) {
	case *network.EventRequestWillBeSent:
		b.requests = append(b.requests, e.Request.URL)
	case *runtime.EventExceptionThrown:
		b.complaints = append(b.complaints, e.ExceptionDetails.Text)
	case *runtime.EventConsoleAPICalled:
		if e.Type == "error" || e.Type == "warning" {
			b.complaints = append(b.complaints, fmt.Sprint(e.Args))
		}
	case *cdplog.EventEntryAdded:
		if e.Entry.Level == "error" || e.Entry.Level == "warning" {
			b.complaints = append(b.complaints, e.Entry.Text)
		}
	}
}

func (b *browser) do(actions ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	if err := chromedp.Do(b.ctx, actions...); err != nil {
		b.t.Fatal(err)
	}
}

// text is what a person, or a screen reader, reads at a place.
func (b *browser) text(selector string) string {
	b.t.Helper()
	return b.js(`document.querySelector("` + selector + `")?.textContent ?? "(nothing)"`)
}

func (b *browser) js(expression string) string {
	b.t.Helper()
	s, err := chromedp.Run(b.ctx, chromedp.Evaluate[string](`String(`+expression+`)`))
	if err != nil {
		b.t.Fatal(err)
	}
	return s
}

// until waits for what a refresh brings.
func (b *browser) until(condition string) {
	b.t.Helper()
	_, err := chromedp.Run(b.ctx, chromedp.Poll[chromedp.Void](condition, chromedp.WithPollingInterval(50*time.Millisecond), chromedp.WithPollingTimeout(20*time.Second)))
	if err != nil {
		b.t.Fatalf("%s: %v\nthe page: %s", condition, err, b.js(`document.body.innerText.slice(0, 2000)`))
	}
}

func (b *browser) see(place string, text string, words ...string) {
	b.t.Helper()
	for _, word := range words {
		if !strings.Contains(text, word) {
			b.t.Errorf("%s: no %q in %q", place, word, text)
		}
	}
}

const stateIs = `document.getElementById("state").textContent === `

func TestThePageShowsRatesIntervalsDetectorsAndAlarms(t *testing.T) {
	w := start(t)
	w.monitor.Store(aDay(w, time.Now().UTC()))
	b := openBrowser(t)
	b.do(chromedp.EmulateViewport(1280, 900), chromedp.Navigate(w.url))
	b.until(`document.querySelectorAll(".plot svg").length === 2`)

	b.see("state", b.text("#state"), "live")
	b.see("mode", b.text("#mode"), "everything invented")
	b.see("pipeline", b.text("#pipeline"), "log read to", "judged in 24 h4,208")
	card := `[data-key=refunds] `
	b.see("rate", b.text(card+".big"), "76.2%")
	b.see("interval", b.text(card+".between"), "between 66.4% and 86.0%")
	b.see("counts", b.text(card+".counted"), "104 judged of 416 in the last hour", "1.2% without an answer", "target 90.0%")
	b.see("detector", b.text(card+".detector"), "ALARM", "Evidence of a fall 4.2e6, limit 182,500", "2.0% tolerated")
	b.see("detector off", b.text("[data-key=facts] .detector"), "off", "no alert.target")
	b.see("people", b.text(card+".people"), "24h91.0%n 240", "7d88.0%n 1,905", "7d, 1,905 imported labels: agreement between 86.5% and 89.4%",
		"beyond chance (kappa) 0.712", "Brier score 0.081", "off by 3.4%, noise taken out (p 0.012)", "12 labels wait")
	if b.js(`document.querySelector("[data-key=facts] .people").hidden`) != "true" {
		t.Error("a check without labels has a panel for them")
	}
	b.see("alarm", b.text("#open-list"), "refunds, all", "open", "pass rate 71.2%")
	b.see("closed alarm", b.text("#past-list"), "facts, all", "closed")

	// Each drawing says in words what it shows.
	b.see("chart", b.js(`document.querySelector("`+card+`.plot svg").getAttribute("aria-label")`), "refunds, all, pass rate over time", "judged", "Lowest", "Target 90.0%")
	b.see("gauge", b.js(`document.querySelector("`+card+`.plain svg").getAttribute("aria-label")`), "4.2e6", "182,500")

	// A gap is a gap: one line for each stretch, and no line where too few were judged.
	if n := b.js(`document.querySelectorAll("` + card + `polyline").length`); n != "3" {
		t.Errorf("%s stretches of the line, want 3: too few, before the gap, after it", n)
	}
	if n := b.js(`document.querySelectorAll("` + card + `.point.hollow").length`); n == "0" {
		t.Error("points of too few rows are not hollow")
	}
	if n := b.js(`document.querySelectorAll("` + card + `[fill='url(#hatch)']").length`); n == "0" {
		t.Error("steps with much missing are not hatched")
	}

	// What an interaction says is text and nothing else.
	if n := b.js(`document.querySelectorAll("main img").length`); n != "0" {
		t.Error("an excerpt became part of the page")
	}
	b.see("excerpt", b.text("#open-list .item"), "<img src=x onerror=alert(1)>")
	b.unhurt(w)
}

func TestThePageIsUsedByKeyboardAndPointer(t *testing.T) {
	w := start(t)
	w.monitor.Store(aDay(w, time.Now().UTC()))
	b := openBrowser(t)
	b.do(chromedp.EmulateViewport(1280, 900), chromedp.Navigate(w.url))
	b.until(`document.querySelectorAll(".plot svg").length === 2`)

	b.do(chromedp.Focus("[data-key=refunds] .plot svg"), chromedp.KeyEvent(kb.ArrowLeft))
	b.until(`document.querySelector("[data-key=refunds] .readout").textContent.includes("judged")`)

	b.do(chromedp.SetValue("[data-key=refunds] select", "app=support"))
	b.js(`document.querySelector("[data-key=refunds] select").dispatchEvent(new Event("change"))`)
	b.until(`document.querySelector("[data-key=refunds] .plot svg").getAttribute("aria-label").startsWith("refunds, app=support")`)
	b.see("slice", b.text("[data-key=refunds] .big"), "66.2%")
	b.see("its detector", b.text("[data-key=refunds] .detector"), "ok", "A fall of 3.1% below the target would be found within 24 h")

	top := `document.querySelector("[data-key=refunds] .plot text").textContent`
	before := b.js(top)
	b.do(chromedp.Click("[data-key=refunds] button"))
	if after := b.js(top); after == before || b.js(`document.querySelector("[data-key=refunds] button").getAttribute("aria-pressed")`) != "true" {
		t.Errorf("zoom: the lowest mark was %s and is %s", before, after)
	}

	// From an alarm to the chart of its slice.
	b.do(chromedp.Click("#open-list .show"))
	b.until(`document.querySelector("[data-key=refunds] .plot svg").getAttribute("aria-label").startsWith("refunds, all")`)
	b.see("choice", b.js(`document.querySelector("[data-key=refunds] select").selectedOptions[0].textContent`), "all (alarm)")

	b.do(chromedp.SetValue("#why-id", "conv-1"), chromedp.Click("#why-form button"))
	b.until(`document.querySelectorAll("#why-answer .item").length === 2`)
	b.see("why", b.text("#why-answer"), "refunds", "facts", "the rate is 0.25")
	b.unhurt(w)
}

func TestThePageFitsANarrowScreenInBothThemes(t *testing.T) {
	w := start(t)
	w.monitor.Store(aDay(w, time.Now().UTC()))
	b := openBrowser(t)
	b.do(chromedp.EmulateViewport(320, 640), chromedp.Navigate(w.url))
	b.until(`document.querySelectorAll(".plot svg").length === 2`)
	ground := func(scheme string) string {
		t.Helper()
		b.do(chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
			_, err := cdp.Call(ctx, target, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
				Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}},
			})
			return err
		}))
		if b.js(`document.documentElement.scrollWidth <= innerWidth`) != "true" {
			t.Errorf("%s: the page is %s wide on a screen of 320", scheme, b.js(`document.documentElement.scrollWidth`))
		}
		return b.js(`getComputedStyle(document.body).backgroundColor`)
	}
	if light, dark := ground("light"), ground("dark"); light == dark {
		t.Errorf("both themes stand on %s", light)
	}
	b.unhurt(w)
}

func TestThePageSaysWhenThereIsNothingToShowOrNothingNew(t *testing.T) {
	w := start(t)
	b := openBrowser(t)
	b.do(chromedp.EmulateViewport(1280, 900), chromedp.Navigate(w.url))
	b.until(stateIs + `"loading" && !document.getElementById("banner").hidden`)
	b.see("loading", b.text("#banner"), "not finished its first round")

	now := time.Now().UTC()
	empty := &monitor.Snapshot{At: now, Clock: "event"}
	for _, c := range w.server.deps.Checks.Checks {
		empty.Checks = append(empty.Checks, monitor.Check{Name: c.Name, Version: c.Version, Evaluator: c.Evaluator, Current: true})
	}
	w.monitor.Store(empty)
	b.do(chromedp.Reload())
	b.until(stateIs + `"live"`)
	b.see("empty", b.text("#nothing"), "Nothing has been read of the log yet")

	old := aDay(w, now)
	old.At = now.Add(-7 * time.Minute)
	w.monitor.Store(old)
	b.do(chromedp.Reload())
	b.until(stateIs + `"stale"`)
	b.see("stale", b.text("#banner"), "7 min old", "Alarms may be missing")
	b.until(`document.querySelectorAll(".plot svg").length === 2`)
	b.unhurt(w)

	// The server goes away under an open page: what was there stays, and is called old.
	if err := w.stop(); err != nil {
		t.Fatal(err)
	}
	b.until(stateIs + `"no answer"`)
	b.see("error", b.text("#banner"), "No answer from this server since", "from before")
	b.see("the last numbers", b.text("[data-key=refunds] .big"), "76.2%")
	if b.js(`document.body.hasAttribute("data-old")`) != "true" {
		t.Error("old numbers look like new ones")
	}
}

// unhurt is what holds on every page: nothing went wrong in it and it asked nobody else.
func (b *browser) unhurt(w *world) {
	b.t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, c := range b.complaints {
		b.t.Errorf("console: %s", c)
	}
	if len(b.requests) < 8 {
		b.t.Errorf("only %d requests were seen", len(b.requests))
	}
	for _, r := range b.requests {
		if !strings.HasPrefix(r, w.url+"/") {
			b.t.Errorf("the page asked %s", r)
		}
	}
}
