package testkit

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"
)

// Alertmanager is a running server that ends with the test.
type Alertmanager struct{ URL string }

// StartAlertmanager starts a real Alertmanager with a configuration's text on a free
// port and waits until it works.
func StartAlertmanager(tb testing.TB, config string) *Alertmanager {
	tb.Helper()
	dir := tb.TempDir()
	file := filepath.Join(dir, "alertmanager.yml")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		tb.Fatal(err)
	}
	addr := freeAddr(tb)
	a := &Alertmanager{URL: "http://" + addr}
	startServer(tb, alertingProgram(tb, "prometheus-alertmanager", "alertmanager"), a.URL+"/-/ready",
		"--config.file="+file, "--storage.path="+filepath.Join(dir, "data"), "--web.listen-address="+addr,
		"--cluster.listen-address=") // alone
	return a
}

// An AlertmanagerAlert is an alert as Alertmanager holds it.
type AlertmanagerAlert struct {
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
	Status      struct {
		State       string   `json:"state"` // active, suppressed
		InhibitedBy []string `json:"inhibitedBy"`
	} `json:"status"`
}

// Alerts are those that fire now, inhibited ones included.
func (a *Alertmanager) Alerts(tb testing.TB) []AlertmanagerAlert {
	tb.Helper()
	body, _, err := httpGet(a.URL + "/api/v2/alerts")
	if err != nil {
		tb.Fatal(err)
	}
	var alerts []AlertmanagerAlert
	if err := json.Unmarshal([]byte(body), &alerts); err != nil {
		tb.Fatalf("%s: %v", body, err)
	}
	return alerts
}

// Send raises alerts by their labels, as Prometheus would.
func (a *Alertmanager) Send(tb testing.TB, alerts ...map[string]string) {
	tb.Helper()
	type alert struct {
		Labels map[string]string `json:"labels"`
	}
	body := make([]alert, 0, len(alerts))
	for _, labels := range alerts {
		body = append(body, alert{labels})
	}
	text, err := json.Marshal(body)
	if err != nil {
		tb.Fatal(err)
	}
	client := &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	res, err := client.Post(a.URL+"/api/v2/alerts", "application/json", bytes.NewReader(text))
	if err != nil {
		tb.Fatal(err)
	}
	_ = res.Body.Close()
	if res.StatusCode != http.StatusOK {
		tb.Fatalf("alerts %s: %s", text, res.Status)
	}
}

// Amtool runs amtool and returns what it printed and whether it was content.
func Amtool(tb testing.TB, args ...string) (output string, ok bool) {
	tb.Helper()
	return runTool(tb, alertingProgram(tb, "amtool"), tb.TempDir(), args)
}

// A Notification is one message of Alertmanager to its webhook.
type Notification struct {
	Receiver    string            `json:"receiver"`
	Status      string            `json:"status"` // firing, resolved
	GroupLabels map[string]string `json:"groupLabels"`
	Alerts      []NotifiedAlert   `json:"alerts"`
}

// A NotifiedAlert is one alert of a message.
type NotifiedAlert struct {
	Status      string            `json:"status"` // firing, resolved
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
	StartsAt    time.Time         `json:"startsAt"`
}

// A Webhook is the receiver at the end of the way of an alert.
type Webhook struct {
	URL string

	mu       sync.Mutex // guards received and faults
	received []Notification
	faults   []error
}

// NewWebhook starts a receiver that ends with the test. Start it before the
// Alertmanager that writes to it.
func NewWebhook(tb testing.TB) *Webhook {
	tb.Helper()
	w := &Webhook{}
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var n Notification
		err := json.NewDecoder(r.Body).Decode(&n)
		w.mu.Lock()
		defer w.mu.Unlock()
		if err != nil {
			w.faults = append(w.faults, err)
			return
		}
		w.received = append(w.received, n)
	}))
	w.URL = server.URL
	tb.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
		for _, err := range w.faults {
			tb.Errorf("the webhook got a message that it cannot read: %v", err)
		}
	})
	return w
}

// Notifications are the messages so far, in order.
func (w *Webhook) Notifications() []Notification {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.received)
}

// Alerts are the alerts of all messages so far that are in the state, in order; the
// same one may come again and again.
func (w *Webhook) Alerts(status string) []NotifiedAlert {
	var found []NotifiedAlert
	for _, n := range w.Notifications() {
		for _, a := range n.Alerts {
			if a.Status == status {
				found = append(found, a)
			}
		}
	}
	return found
}
