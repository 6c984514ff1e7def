package testkit

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// alertingWait bounds a start of Prometheus or Alertmanager.
const alertingWait = time.Minute

// PrometheusOptions say what a Prometheus scrapes and which rules it evaluates.
type PrometheusOptions struct {
	Targets      []string // host:port, scraped as job assay
	Rules        []string // texts of rule files
	Alertmanager *Alertmanager
	Every        time.Duration // between two scrapes and two evaluations; 500ms when 0
}

// Prometheus is a running server that ends with the test.
type Prometheus struct{ URL string }

// StartPrometheus starts a real Prometheus on a free port and waits until it works.
func StartPrometheus(tb testing.TB, o PrometheusOptions) *Prometheus {
	tb.Helper()
	if o.Every == 0 {
		o.Every = 500 * time.Millisecond
	}
	dir := tb.TempDir()
	var files []string
	for i, text := range o.Rules {
		name := filepath.Join(dir, fmt.Sprintf("%d.rules.yml", i))
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			tb.Fatal(err)
		}
		files = append(files, name)
	}
	every := fmt.Sprintf("%dms", o.Every.Milliseconds()) // Prometheus reads no 1.5s
	config := map[string]any{
		"global":     map[string]any{"scrape_interval": every, "scrape_timeout": every, "evaluation_interval": every},
		"rule_files": files,
		"scrape_configs": []any{map[string]any{
			"job_name": "assay", "static_configs": []any{map[string]any{"targets": o.Targets}},
		}},
	}
	if o.Alertmanager != nil {
		config["alerting"] = map[string]any{"alertmanagers": []any{map[string]any{
			"static_configs": []any{map[string]any{"targets": []string{strings.TrimPrefix(o.Alertmanager.URL, "http://")}}},
		}}}
	}
	text, err := json.Marshal(config) // JSON is YAML
	if err != nil {
		tb.Fatal(err)
	}
	file := filepath.Join(dir, "prometheus.yml")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		tb.Fatal(err)
	}
	addr := freeAddr(tb)
	p := &Prometheus{URL: "http://" + addr}
	startServer(tb, alertingProgram(tb, "prometheus"), p.URL+"/-/ready",
		"--config.file="+file, "--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.listen-address="+addr,
		// an alert is sent again this often while nothing changes, and Alertmanager
		// forgets one that is not sent four times
		"--rules.alert.resend-delay=1s")
	return p
}

// A Sample is one element of an instant query's answer.
type Sample struct {
	Labels map[string]string
	Value  float64
}

// Query evaluates an expression now.
func (p *Prometheus) Query(tb testing.TB, expr string) []Sample {
	tb.Helper()
	var answer struct {
		Status string `json:"status"`
		Error  string `json:"error"`
		Data   struct {
			Result []struct {
				Metric map[string]string `json:"metric"`
				Value  [2]any            `json:"value"`
			} `json:"result"`
		} `json:"data"`
	}
	p.get(tb, "/api/v1/query?query="+url.QueryEscape(expr), &answer)
	if answer.Status != "success" {
		tb.Fatalf("query %s: %s", expr, answer.Error)
	}
	samples := make([]Sample, 0, len(answer.Data.Result))
	for _, r := range answer.Data.Result {
		text, _ := r.Value[1].(string)
		v, err := strconv.ParseFloat(text, 64)
		if err != nil {
			tb.Fatalf("query %s: value %v: %v", expr, r.Value, err)
		}
		samples = append(samples, Sample{r.Metric, v})
	}
	return samples
}

// RuleErrors are the errors of the rules' last evaluations, by rule.
func (p *Prometheus) RuleErrors(tb testing.TB) map[string]string {
	tb.Helper()
	var answer struct {
		Data struct {
			Groups []struct {
				Rules []struct {
					Name      string `json:"name"`
					Health    string `json:"health"`
					LastError string `json:"lastError"`
				} `json:"rules"`
			} `json:"groups"`
		} `json:"data"`
	}
	p.get(tb, "/api/v1/rules", &answer)
	errs := map[string]string{}
	for _, g := range answer.Data.Groups {
		for _, r := range g.Rules {
			if r.Health == "err" {
				errs[r.Name] = r.LastError
			}
		}
	}
	return errs
}

func (p *Prometheus) get(tb testing.TB, path string, into any) {
	tb.Helper()
	body, code, err := httpGet(p.URL + path)
	if err != nil {
		tb.Fatal(err)
	}
	if err := json.Unmarshal([]byte(body), into); err != nil {
		tb.Fatalf("GET %s: %d %s: %v", path, code, body, err)
	}
}

// Promtool runs promtool in a folder and returns what it printed and whether it was
// content.
func Promtool(tb testing.TB, dir string, args ...string) (output string, ok bool) {
	tb.Helper()
	return runTool(tb, alertingProgram(tb, "promtool"), dir, args)
}

func runTool(tb testing.TB, program, dir string, args []string) (output string, ok bool) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), alertingWait)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil && cmd.ProcessState == nil {
		tb.Fatal(err)
	}
	return string(out), err == nil
}

// alertingProgram finds a program of Prometheus or Alertmanager by one of its names.
func alertingProgram(tb testing.TB, names ...string) string {
	tb.Helper()
	for _, name := range names {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	tb.Fatalf("%s is not on PATH; `make prometheus` installs it", names[0])
	return ""
}

// startServer runs a program until the test ends and returns when ready answers 200.
func startServer(tb testing.TB, program, ready string, args ...string) {
	tb.Helper()
	output := &lockedBuffer{}
	cmd := exec.Command(program, args...)
	cmd.Stdout, cmd.Stderr = output, output
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		tb.Fatal(err)
	}
	done := make(chan struct{})
	var ended error // read after done
	go func() {
		ended = cmd.Wait()
		close(done)
	}()
	tb.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-done
		if tb.Failed() {
			tb.Logf("%s printed:\n%s", filepath.Base(program), output)
		}
	})
	Eventually(tb, alertingWait, filepath.Base(program)+" is ready", func() error {
		select {
		case <-done:
			tb.Fatalf("%s ended: %v", filepath.Base(program), ended)
		default:
		}
		body, code, err := httpGet(ready)
		if err == nil && code != http.StatusOK {
			err = fmt.Errorf("%d %s", code, body)
		}
		return err
	})
}
