package server

import (
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// A dashboard's link to an interaction opens the page with its answer, and following
// another one does too.
func TestALinkToAnInteractionSaysWhy(t *testing.T) {
	w := start(t)
	w.monitor.Store(aDay(w, time.Now().UTC()))
	b := openBrowser(t)
	b.do(chromedp.Navigate(w.url + "/#why=conv-1"))
	b.until(`document.querySelectorAll("#why-answer .item").length === 2`)
	b.see("why", b.text("#why-answer"), "refunds", "facts")
	for link, id := range map[string]string{"#why=a%2Fb%20c": "a/b c", "#why=100%": "100%"} {
		b.js(`location.hash = "` + link + `"`)
		b.until(`document.getElementById("why-id").value === "` + id + `"`)
	}
	b.unhurt(w)
}
