package testkit_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"assay/internal/testkit"
)

// The whole way of an alert, with nothing of Assay's in it: a series, a rule, a
// route, a message; and back.
func TestAnAlertReachesTheWebhookAndResolves(t *testing.T) {
	var broken atomic.Bool
	broken.Store(true)
	target := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		v := 0
		if broken.Load() {
			v = 1
		}
		fmt.Fprintf(w, "thing_broken{part=\"wheel\"} %d\n", v)
	}))
	t.Cleanup(func() {
		target.CloseClientConnections()
		target.Close()
	})
	webhook := testkit.NewWebhook(t)
	alerts := testkit.StartAlertmanager(t, fmt.Sprintf(`
route: { receiver: all, group_by: [part], group_wait: 100ms, group_interval: 500ms }
receivers: [{ name: all, webhook_configs: [{ url: %q }] }]`, webhook.URL))
	prometheus := testkit.StartPrometheus(t, testkit.PrometheusOptions{
		Targets: []string{strings.TrimPrefix(target.URL, "http://")}, Alertmanager: alerts,
		Rules: []string{`
groups:
  - name: things
    rules:
      - alert: Broken
        expr: thing_broken == 1
        annotations: { summary: "the {{ $labels.part }} is broken" }
      - record: impossible
        expr: label_replace(up, "job", "", "", "") or thing_broken * on (nothing) group_left () (up or thing_broken)`},
	})

	testkit.Eventually(t, 30*time.Second, "the alert has come", func() error {
		if len(webhook.Alerts("firing")) == 0 {
			return fmt.Errorf("messages %v, Prometheus holds %v", webhook.Notifications(), prometheus.Query(t, "ALERTS"))
		}
		return nil
	})
	a := webhook.Alerts("firing")[0]
	if a.Labels["alertname"] != "Broken" || a.Labels["part"] != "wheel" || a.Annotations["summary"] != "the wheel is broken" {
		t.Errorf("the alert says %+v", a)
	}
	if held := alerts.Alerts(t); len(held) != 1 || held[0].Status.State != "active" || held[0].Labels["part"] != "wheel" {
		t.Errorf("Alertmanager holds %+v", held)
	}
	if up := prometheus.Query(t, `up{job="assay"}`); len(up) != 1 || up[0].Value != 1 {
		t.Errorf("up is %v", up)
	}
	if errs := prometheus.RuleErrors(t); len(errs) != 1 || !strings.Contains(errs["impossible"], "many-to-many") {
		t.Errorf("rules failed with %v, want one: many-to-many matching", errs)
	}

	broken.Store(false)
	testkit.Eventually(t, 30*time.Second, "the alert is resolved", func() error {
		if len(webhook.Alerts("resolved")) == 0 {
			return fmt.Errorf("messages %v", webhook.Notifications())
		}
		return nil
	})
}

func TestTheToolsSayWhetherAFileIsRight(t *testing.T) {
	if out, ok := testkit.Promtool(t, t.TempDir(), "check", "rules", "nothing.yml"); ok || !strings.Contains(out, "nothing.yml") {
		t.Errorf("promtool on a file that is not there: %t, %s", ok, out)
	}
	if out, ok := testkit.Amtool(t, "--version"); !ok || !strings.Contains(out, "amtool") {
		t.Errorf("amtool --version: %t, %s", ok, out)
	}
}
