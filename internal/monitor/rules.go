package monitor

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"

	"assay/internal/checks"
	"assay/internal/interaction"
)

// The alerts on quality that Rules makes.
const (
	AlertDrift       = "AssayQualityDrift"
	AlertMissing     = "AssayQualityMissing"
	AlertCalibration = "AssayCalibrationShift"
)

// RuleOptions say where the links of alerts lead.
type RuleOptions struct {
	Runbooks string // page that has an anchor for every alert
	Grafana  string // where Grafana is; empty for links without a host
}

// enoughLabels is from how many labels on a judge that is off is reported.
const enoughLabels = 100

// overview is the path of the dashboard that alerts lead to; its uid never changes.
const overview = "/d/assay-overview"

// RuleFile is a file of Prometheus rules.
type RuleFile struct {
	Groups []RuleGroup `json:"groups"`
}

// RuleGroup is evaluated in order, so that alerts see what was just recorded.
type RuleGroup struct {
	Name  string `json:"name"`
	Rules []Rule `json:"rules"`
}

// Rule is an alert, or a recorded expression.
type Rule struct {
	Record        string            `json:"record,omitempty"`
	Alert         string            `json:"alert,omitempty"`
	Expr          string            `json:"expr"`
	For           string            `json:"for,omitempty"`
	KeepFiringFor string            `json:"keep_firing_for,omitempty"`
	Labels        map[string]string `json:"labels,omitempty"`
	Annotations   map[string]string `json:"annotations,omitempty"`
}

// YAML is the file as Prometheus reads it, the same bytes for the same rules.
func (f RuleFile) YAML() ([]byte, error) {
	return yaml.MarshalWithOptions(f, yaml.UseLiteralStyleIfMultiline(true), yaml.Indent(2), yaml.IndentSequence(true))
}

// Rules are the alerts on quality of a checks file: three for each declared slice of a
// check that has an alert.
//
// The drift alert rings while the detector's alarm is open and on nothing else: a
// ratio against a line would ring by chance, hundreds of times a year. It has no
// `for`, because the alarm already is a decision over time, and it keeps firing for a
// while without the series, so that a monitor that restarts resolves nothing.
//
// An alert aggregates over check versions and monitors: a new version of a check is
// the same alert.
func Rules(file *checks.File, o RuleOptions) (RuleFile, error) {
	r := ruleMaker{options: o, dimensions: declaredDimensions(file)}
	group := RuleGroup{Name: "assay-quality", Rules: []Rule{
		r.recent(recordedRate, "assay_quality_pass_rate", ""),
		r.recent(recordedLower, "assay_quality_pass_rate_lower", `,level="0.95"`),
		r.recent(recordedUpper, "assay_quality_pass_rate_upper", `,level="0.95"`),
		r.recent(recordedSamples, "assay_quality_samples", ""),
	}}
	recorded := len(group.Rules)
	for _, c := range file.Checks {
		l, off := limitsOf(c, watched(file), file.Alerts.MaxFalseAlarmsPerYear)
		if off != "" {
			continue
		}
		for name := range c.Alert.Labels {
			if slices.Contains(r.dimensions, name) {
				return RuleFile{}, fmt.Errorf("check %s: alert: labels: %s is a dimension of a declared slice, and would stand for its value; want another name", c.Name, name)
			}
		}
		for _, slice := range file.DeclaredSlices() {
			group.Rules = append(group.Rules, r.drift(c, slice, l), r.missing(c, slice), r.calibration(c, slice))
		}
	}
	if len(group.Rules) == recorded {
		return RuleFile{Groups: []RuleGroup{}}, nil
	}
	return RuleFile{Groups: []RuleGroup{group}}, nil
}

// What is recorded for the texts of alerts.
const (
	recordedRate    = "assay:quality_pass_rate:recent"
	recordedLower   = "assay:quality_pass_rate_lower:recent"
	recordedUpper   = "assay:quality_pass_rate_upper:recent"
	recordedSamples = "assay:quality_samples:recent"
)

// ruleMaker writes the rules of one checks file.
type ruleMaker struct {
	options    RuleOptions
	dimensions []string // that declared slices fix: labels of the series, in order
}

func declaredDimensions(file *checks.File) []string {
	names := map[string]bool{}
	for _, s := range file.Slices {
		for name := range s {
			names[name] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// recent records a metric over the window that an alert speaks of: the last hour, or
// the last day where the hour holds too few rows to say much. The label window says
// which it was.
func (r ruleMaker) recent(record, metric, matchers string) Rule {
	slice := r.by("check")
	version := r.by("check", "check_version")
	kept := r.by("check", "window")
	current := fmt.Sprintf("and on (%s) assay_quality_current == 1", version)
	return Rule{Record: record, Expr: strings.Join([]string{
		fmt.Sprintf("max by (%s) (", kept),
		fmt.Sprintf("  %s{window=\"1h\"%s}", metric, matchers),
		fmt.Sprintf("  and on (%s) assay_quality_samples{window=\"1h\"} >= %d", version, thinHour),
		"  " + current,
		")",
		fmt.Sprintf("or on (%s)", slice),
		fmt.Sprintf("max by (%s) (", kept),
		fmt.Sprintf("  %s{window=\"24h\"%s}", metric, matchers),
		"  " + current,
		")",
	}, "\n")}
}

func (r ruleMaker) drift(c checks.Check, slice interaction.Slice, l limits) Rule {
	ends := "It ends by itself once what came since is above that line for sure"
	if c.Alert.Close == "manual" {
		ends = "It ends when a person closes the alarm"
	}
	line := percent(1 - l.null)
	return Rule{
		Alert:         AlertDrift,
		Expr:          fmt.Sprintf("max(assay_drift_alarm{%s}) == 1", r.matchers(c, slice)),
		KeepFiringFor: "15m",
		Labels:        labelsOfAlert(c, slice),
		Annotations: r.annotations(AlertDrift, c, slice,
			"the pass rate has fallen below "+line,
			fmt.Sprintf("%s (target %s less a tolerance of %s). %s.", r.rateTemplate(c, slice), percent(c.Alert.Target), percent(l.tolerance), ends)),
	}
}

// missing rings where a part of the judgements is missing. Where all of them are,
// there is no window to speak of: that is AssayCheckSilent or AssayJudgeFailing.
func (r ruleMaker) missing(c checks.Check, slice interaction.Slice) Rule {
	version := r.by("check", "check_version")
	return Rule{
		Alert: AlertMissing,
		Expr: strings.Join([]string{
			"max(",
			fmt.Sprintf("  assay_quality_missing_ratio{%s,window=\"1h\"}", r.matchers(c, slice)),
			fmt.Sprintf("  and on (%s) assay_quality_samples{window=\"1h\"} >= %d", version, thinHour),
			fmt.Sprintf("  and on (%s) assay_quality_current == 1", version),
			") > 0.2",
		}, "\n"),
		For:    "15m",
		Labels: labelsOfAlert(c, slice),
		Annotations: r.annotations(AlertMissing, c, slice,
			"judgements are missing",
			"{{ $value | humanizePercentage }} of what was selected in the last hour, by weight, ended without a usable answer. "+
				"What is missing may be worse than the rest: "+r.rateTemplate(c, slice)+"."),
	}
}

// calibration rings where the judge's scores are not what people say, by far more than
// chance: at fewer labels the test would find little, and that little by luck. It is a
// ticket whatever the check's severity, as labels are days old when they come.
func (r ruleMaker) calibration(c checks.Check, slice interaction.Slice) Rule {
	version := r.by("check", "check_version")
	labels := labelsOfAlert(c, slice)
	labels["severity"] = "ticket"
	return Rule{
		Alert: AlertCalibration,
		Expr: strings.Join([]string{
			"max by (origin) (",
			fmt.Sprintf("  assay_calibration_p_value{%s,window=\"7d\"}", r.matchers(c, slice)),
			fmt.Sprintf("  and on (%s, origin) assay_calibration_labels{window=\"7d\"} >= %d", version, enoughLabels),
			fmt.Sprintf("  and on (%s) assay_quality_current == 1", version),
			") < 0.001",
		}, "\n"),
		For:    "1h",
		Labels: labels,
		Annotations: r.annotations(AlertCalibration, c, slice,
			"the judge's scores are not what people say",
			fmt.Sprintf("Over 7 days %s labels ({{ $labels.origin }}) are further from the judge's scores than chance explains (p = {{ printf `%%.2g` $value }}); "+
				"judge and people agree on %s. The rate is the judge's and may be off: %s.",
				r.labelled("assay_calibration_labels", c, slice, "value | printf `%.0f`"),
				r.labelled("assay_calibration_agreement", c, slice, "value | humanizePercentage"), r.rateTemplate(c, slice))),
	}
}

// labelled is a template that shows a calibration gauge for the alert's slice and origin.
func (r ruleMaker) labelled(metric string, c checks.Check, slice interaction.Slice, show string) string {
	selector := strings.ReplaceAll(fmt.Sprintf("max(%s{%s,window='7d'", metric, r.matchers(c, slice)), "%", "%%")
	return fmt.Sprintf("{{ with printf `%s,origin=%%q} and on (%s) assay_quality_current == 1)` $labels.origin | query }}{{ . | first | %s }}{{ else }}unknown{{ end }}",
		selector, r.by("check", "check_version"), show)
}

// labelsOfAlert name the slice by its dimensions, as the series do.
func labelsOfAlert(c checks.Check, slice interaction.Slice) map[string]string {
	labels := map[string]string{"check": c.Name, "severity": c.Alert.Severity}
	for _, more := range []map[string]string{slice, c.Alert.Labels} {
		for name, value := range more {
			labels[name] = verbatim(value)
		}
	}
	return labels
}

func (r ruleMaker) annotations(alert string, c checks.Check, slice interaction.Slice, what, description string) map[string]string {
	name := verbatim(slice.String())
	link := url.Values{"var-check": {c.Name}, "var-slice": {slice.String()}}
	return map[string]string{
		"summary":     c.Name + " on " + name + ": " + what,
		"description": description,
		"slice":       name,
		"rate":        r.recorded(recordedRate, c, slice, "value | humanizePercentage"),
		"interval":    r.intervalTemplate(c, slice),
		"n":           r.recorded(recordedSamples, c, slice, "value | printf `%.0f`"),
		"window":      r.recorded(recordedSamples, c, slice, "label `window`"),
		"runbook_url": r.options.Runbooks + "#" + strings.ToLower(alert),
		"dashboard":   strings.TrimSuffix(r.options.Grafana, "/") + overview + "?" + link.Encode(),
	}
}

func (r ruleMaker) rateTemplate(c checks.Check, slice interaction.Slice) string {
	return fmt.Sprintf("pass rate %s in the last %s, 95%% interval %s, %s judged",
		r.recorded(recordedRate, c, slice, "value | humanizePercentage"), r.recorded(recordedSamples, c, slice, "label `window`"),
		r.intervalTemplate(c, slice), r.recorded(recordedSamples, c, slice, "value | printf `%.0f`"))
}

func (r ruleMaker) intervalTemplate(c checks.Check, slice interaction.Slice) string {
	return r.recorded(recordedLower, c, slice, "value | humanizePercentage") + " to " +
		r.recorded(recordedUpper, c, slice, "value | humanizePercentage")
}

// recorded is a template that shows a record's value for the alert's slice.
func (r ruleMaker) recorded(record string, c checks.Check, slice interaction.Slice, show string) string {
	return fmt.Sprintf("{{ with query `%s{%s}` }}{{ . | first | %s }}{{ else }}unknown{{ end }}", record, r.matchers(c, slice), show)
}

// by is a list of labels with the slices' dimensions.
func (r ruleMaker) by(names ...string) string {
	return strings.Join(append(names, r.dimensions...), ", ")
}

// matchers find the series of one check and slice. A dimension that the slice does not
// fix is absent from them, which an empty matcher asks for.
func (r ruleMaker) matchers(c checks.Check, slice interaction.Slice) string {
	list := []string{"check=" + promString(c.Name)}
	for _, d := range r.dimensions {
		list = append(list, d+"="+promString(slice[d]))
	}
	return strings.Join(list, ",")
}

// promString is a string of PromQL that can stand inside a template's raw string.
func promString(v string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, "'", `\'`, "`", `\x60`, "\n", `\n`, "\r", `\r`).Replace(v) + "'"
}

// verbatim is a text that a template shows as it is.
func verbatim(text string) string { return strings.ReplaceAll(text, "{{", "{{ `{{` }}") }
