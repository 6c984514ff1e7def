package stats

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// later names the functions of the bank that other rooms and issues bring, by the
// prefix of their cases. A case that neither this nor cases knows is unmapped.
var later = []string{
	"clopper_pearson_", "jeffreys_", "stratified_", "rogan_gladen", "ppi_py_", "nested_ppi_",
	"ranked_probability_score",
	"multiclass_logloss", "top_label_ece", "classwise_ece", "platt_", "isotonic_pava",
	"temperature_multiclass", "two_prop_z_pooled", "newcombe_diff", "e_bh", "psi", "js",
	"ks_2samp", "wasserstein_1d", "lambda_predmix_eb", "llr_cusum_path", "bernoulli_cusum_arl_",
	"kitagawa", "power_two_sample_", "burn_rate_unreachable", "fisher_",
	"golden_set_threshold_", "overdispersion_sd", "batch_gaussian_cusum",
	"hash_u_", "neyman", "priority_bottom_k", // sampler's
}

type statCase struct {
	Name      string          `json:"name"`
	Inputs    json.RawMessage `json:"inputs"`
	Expected  map[string]any  `json:"expected"`
	Tolerance float64         `json:"tolerance"`
}

type caseInputs struct {
	X, N, Conf float64
	Y, Pi      []float64
	A, B, C    json.RawMessage // sums, or a number
	Fail       []float64
	Q0         float64
	PiMin      float64 `json:"pi_min"`
	P, W       []float64
	Bins       int
	Eps        float64
}

// run answers a case with this package's functions; false when none is meant.
func run(name string, in caseInputs) (map[string]any, bool, error) {
	switch {
	case strings.HasPrefix(name, "wilson_"):
		lo, hi, err := Wilson(in.X, in.N, in.Conf)
		return map[string]any{"lo": lo, "hi": hi}, true, err
	case name == "weighted_sums":
		s, err := NewSums(in.Y, in.Pi)
		return sumKeys(s), true, err
	case strings.HasPrefix(name, "mcnemar_"):
		var b, c int
		if err := errors.Join(json.Unmarshal(in.B, &b), json.Unmarshal(in.C, &c)); err != nil {
			return nil, true, err
		}
		p, midP, err := McNemar(b, c)
		return map[string]any{"p_two_sided": p, "p_mid": midP}, true, err
	case name == "state_merge":
		return sumKeys(sumsOf(in.A).Merge(sumsOf(in.B))), true, nil
	case strings.HasPrefix(name, "hajek_wilson_"):
		s, err := NewSums(in.Y, in.Pi)
		if err != nil {
			return nil, true, err
		}
		e, err := s.PassRate(in.Conf)
		out := map[string]any{"mean": nil, "n_eff": e.NEff, "lo": e.Lo, "hi": e.Hi}
		if e.Mean != nil {
			out["mean"] = *e.Mean
		}
		return out, true, err
	case name == "weighted_score_mean":
		s, err := NewSums(in.Y, in.Pi)
		if err != nil {
			return nil, true, err
		}
		e, err := s.MeanScore(in.Conf)
		if err != nil {
			return nil, true, err
		}
		k := s.Kish()
		lo, hi, err := Wilson(*e.Mean*k, k, in.Conf)
		return map[string]any{"mean": *e.Mean, "var": e.Var, "kish": k, "lo_kish_wilson": lo, "hi_kish_wilson": hi}, true, err
	case strings.HasPrefix(name, "e_sr_weighted"):
		var e ESR
		path := make([]any, len(in.Fail))
		for i, x := range in.Fail {
			e.Step(x, 1/in.Pi[i], 1/in.PiMin, in.Q0)
			path[i] = e.M()
		}
		return map[string]any{"path": path}, true, nil
	}
	return runCalibration(name, in)
}

func runCalibration(name string, in caseInputs) (map[string]any, bool, error) {
	one := func(key string, v *float64, err error) (map[string]any, bool, error) {
		if v == nil {
			return map[string]any{key: nil}, true, err
		}
		return map[string]any{key: *v}, true, err
	}
	switch name {
	case "brier", "brier_weighted":
		v, err := Brier(in.P, in.Y, in.W)
		return one("brier", v, err)
	case "brier_skill":
		v, err := BrierSkill(in.P, in.Y, in.W)
		return one("bss", v, err)
	case "logloss_clip":
		v, err := LogLoss(in.P, in.Y, in.W, in.Eps)
		return one("logloss", v, err)
	case "bin_edges_rule":
		bins := make([]any, len(in.P))
		for i, p := range in.P {
			b, err := Bin(p, in.Bins)
			if err != nil {
				return nil, true, err
			}
			bins[i] = float64(b)
		}
		return map[string]any{"bin": bins}, true, nil
	case "ece_equal_width_10":
		r, err := EqualWidthReliability(in.P, in.Y, in.W, in.Bins)
		return reliabilityKeys(r), true, err
	case "ece_equal_mass_5":
		edges, err := EqualMass(in.P, in.Bins)
		if err != nil {
			return nil, true, err
		}
		r, err := EdgesReliability(in.P, in.Y, in.W, edges)
		out := reliabilityKeys(r)
		list := make([]any, len(edges))
		for i, e := range edges {
			list[i] = e
		}
		out["edges"] = list
		return out, true, err
	}
	return nil, false, nil
}

func reliabilityKeys(r Reliability) map[string]any {
	counts := make([]any, len(r.Bins))
	for i, b := range r.Bins {
		counts[i] = float64(b.N)
	}
	out := map[string]any{"ece": nil, "mce": nil, "counts": counts}
	if ece, mce := r.ECE(); ece != nil {
		out["ece"], out["mce"] = *ece, *mce
	}
	return out
}

func sumKeys(s Sums) map[string]any {
	return map[string]any{"n": float64(s.N), "sw": s.SW, "sw2": s.SW2, "swy": s.SWT, "sw2y": s.SW2T, "swyy": s.SWT2, "sw2y2": s.SW2T2}
}

func sumsOf(raw json.RawMessage) Sums {
	var k map[string]float64
	if json.Unmarshal(raw, &k) != nil {
		return Sums{}
	}
	return Sums{N: uint64(k["n"]), SW: k["sw"], SW2: k["sw2"], SWT: k["swy"], SW2T: k["sw2y"], SWT2: k["swyy"], SW2T2: k["sw2y2"]}
}

func TestCasesStatistics(t *testing.T) {
	file, err := os.Open(filepath.Join(caseBank(t), "statistics.jsonl"))
	if err != nil {
		t.Fatalf("the bank of statistics cases: %v", err)
	}
	defer file.Close()
	passed, mapped := 0, 0
	var waiting, unmapped []string
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<22)
	for lines.Scan() {
		var c statCase
		if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
			t.Fatalf("%s: %v", lines.Text(), err)
		}
		var in caseInputs
		// later cases have inputs of other shapes; those of ours that do not parse fail below
		parseErr := json.Unmarshal(c.Inputs, &in)
		got, ours, err := run(c.Name, in)
		switch {
		case !ours && slices.ContainsFunc(later, func(p string) bool { return strings.HasPrefix(c.Name, p) }):
			waiting = append(waiting, c.Name)
			continue
		case !ours:
			unmapped = append(unmapped, c.Name)
			continue
		case parseErr != nil:
			t.Fatalf("%s: inputs: %v", c.Name, parseErr)
		}
		mapped++
		if err != nil {
			t.Errorf("%s: %v", c.Name, err)
			continue
		}
		ok := true
		for key, want := range c.Expected {
			if msg := differs(got[key], want, c.Tolerance); msg != "" {
				t.Errorf("%s: %s %s", c.Name, key, msg)
				ok = false
			}
		}
		if ok {
			passed++
		}
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	if mapped == 0 {
		t.Error("no case of the bank is ours: the bank or the table of names is wrong")
	}
	t.Logf("statistics: %d of %d", passed, mapped)
	t.Logf("later (%d): %s", len(waiting), strings.Join(waiting, " "))
	if len(unmapped) > 0 {
		t.Logf("unmapped (%d): %s", len(unmapped), strings.Join(unmapped, " "))
	}
}

// differs says how got and want differ, or nothing.
func differs(got, want any, tolerance float64) string {
	switch w := want.(type) {
	case nil:
		if got != nil {
			return fmt.Sprintf("is %v, want null", got)
		}
	case float64:
		if g, ok := got.(float64); !ok || !(math.Abs(g-w) <= tolerance) {
			return fmt.Sprintf("is %v, want %v", got, w)
		}
	case []any:
		g, ok := got.([]any)
		if !ok || len(g) != len(w) {
			return fmt.Sprintf("is %v, want %v", got, want)
		}
		for i := range w {
			if msg := differs(g[i], w[i], tolerance); msg != "" {
				return fmt.Sprintf("[%d] %s", i, msg)
			}
		}
	default:
		return fmt.Sprintf("has the unknown shape %T", want)
	}
	return ""
}

// caseBank is the folder of shared cases: ASSAY_CASES, else beside the repository.
func caseBank(t *testing.T) string {
	t.Helper()
	if dir := os.Getenv("ASSAY_CASES"); dir != "" {
		return dir
	}
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return filepath.Join(dir, "..", "shared", "cases")
		}
		if dir == filepath.Dir(dir) {
			t.Fatal("no go.mod above the package")
		}
		dir = filepath.Dir(dir)
	}
}
