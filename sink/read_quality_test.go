package sink

import (
	"bufio"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"assay/internal/testkit"
)

// statisticsCase returns one case of the bank by its name.
func statisticsCase(t *testing.T, name string, inputs, expected any) {
	t.Helper()
	dir := os.Getenv("ASSAY_CASES")
	if dir == "" {
		root, err := testkit.RepositoryRoot()
		if err != nil {
			t.Fatal(err)
		}
		dir = filepath.Join(root, "..", "shared", "cases")
	}
	f, err := os.Open(filepath.Join(dir, "statistics.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var c struct {
			Name             string
			Inputs, Expected json.RawMessage
		}
		if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
			t.Fatal(err)
		}
		if c.Name != name {
			continue
		}
		for into, raw := range map[any]json.RawMessage{inputs: c.Inputs, expected: c.Expected} {
			if err := json.Unmarshal(raw, into); err != nil {
				t.Fatal(err)
			}
		}
		return
	}
	t.Fatalf("no case %s in the bank (%v)", name, lines.Err())
}

// ppiStates names the nineteen sums of the bank after the columns of quality_1m.
var ppiStates = map[string]string{
	"A0": "sw", "A1": "sws", "Q0": "sw2", "Q1": "sw2s", "Q2": "sw2s2", "B0": "b0", "Bf": "bf", "By": "by",
	"D0": "d0", "Df": "df", "Dff": "dff", "Dy": "dy", "Dyy": "dyy", "Dfy": "dfy",
	"X0": "x0", "Xf": "xf", "Xff": "xff", "Xy": "xy", "Xfy": "xfy",
}

// ppiClosedForm is the corrected mean of sums over minutes: a is what a labelled row
// adds to the human mean, b what it adds to the difference of the judge's two means.
const ppiClosedForm = `
	WITH sums AS (SELECT sum(sw) a0, sum(sws) a1, sum(sw2) q0, sum(sw2s) q1, sum(sw2s2) q2, sum(b0) sb0, sum(bf) sbf, sum(by) sby,
			sum(d0) sd0, sum(df) sdf, sum(dff) sdff, sum(dy) sdy, sum(dyy) sdyy, sum(dfy) sdfy,
			sum(x0) sx0, sum(xf) sxf, sum(xff) sxff, sum(xy) sxy, sum(xfy) sxfy FROM {{db}}.quality_1m FINAL),
		means AS (SELECT *, a1 / a0 AS f1, sbf / sb0 AS f2, sby / sb0 AS y2 FROM sums),
		products AS (SELECT *,
			(sdyy - 2 * y2 * sdy + y2 * y2 * sd0) / (sb0 * sb0) AS aa,
			(sxfy - f1 * sxy - y2 * sxf + f1 * y2 * sx0) / (a0 * sb0) - (sdfy - f2 * sdy - y2 * sdf + f2 * y2 * sd0) / (sb0 * sb0) AS ab,
			(q2 - 2 * f1 * q1 + f1 * f1 * q0) / (a0 * a0) + (sdff - 2 * f2 * sdf + f2 * f2 * sd0) / (sb0 * sb0) - 2 * (sxff - (f1 + f2) * sxf + f1 * f2 * sx0) / (a0 * sb0) AS bb
			FROM means),
		best AS (SELECT *, least(greatest(-ab / bb, 0), 1) AS lam FROM products)
	SELECT lam, y2 + lam * (f1 - f2), aa + 2 * lam * ab + lam * lam * bb FROM best`

func TestSumsOfMinutesReproduceTheCorrectedMean(t *testing.T) {
	var in struct {
		F, Pi1, Y, Pi2, Labelled []float64
	}
	var want struct{ Lam, Mean, Var float64 }
	statisticsCase(t, "nested_ppi_hajek_lam_None", &in, &want)
	var states struct{ States map[string]float64 }
	var same struct{ Lam, Mean, Var float64 }
	statisticsCase(t, "nested_ppi_from_states", &states, &same)

	db := migratedDB(t)
	var rows []Evaluation
	var labels []label
	for i, f := range in.F {
		e := evaluation(i * 7) // over several minutes and slices
		e.Pi, e.Score, e.Passed = in.Pi1[i], ptr(float32(f)), ptr(f >= 0.5)
		rows = append(rows, e)
		if in.Labelled[i] == 1 {
			labels = append(labels, label{id: e.InteractionID, ts: e.Time, rater: "ann", revision: 1, passed: in.Y[i] == 1, pi2: in.Pi2[i]})
		}
	}
	insertAll(t, db, evaluationsTable(), rows)
	insertLabels(t, db, labels...)
	rollAll(t, db, noon.Add(time.Hour))

	for name, column := range ppiStates {
		// scores are stored in 4 bytes
		if got, want := number(t, db, "SELECT sum("+column+") AS x FROM {{db}}.quality_1m FINAL"), states.States[name]; !near(got, want, 1e-6) {
			t.Errorf("sum(%s) = %v, the bank's %s is %v", column, got, name, want)
		}
	}
	type estimate struct{ lam, mean, variance float64 }
	got, err := readOne(t.Context(), db, query{"test", page, ppiClosedForm}, func(scan func(...any) error) (e estimate, err error) {
		return e, scan(&e.lam, &e.mean, &e.variance)
	})
	if err != nil || !near(got.lam, want.Lam, 1e-6) || !near(got.mean, want.Mean, 1e-6) || !near(got.variance, want.Var, 1e-6) || same != want {
		t.Errorf("lambda, mean, variance %+v (%v), want %+v", got, err, want)
	}
}

func near(got, want, relative float64) bool {
	return math.Abs(got-want) <= relative*max(math.Abs(want), 1e-300)
}

// The same sums by hand, for a slice, for everything and in steps.
func TestQualityIsTheSumOfItsRows(t *testing.T) {
	db := migratedDB(t)
	ctx := t.Context()
	const n = 600
	var rows []Evaluation
	weights := []float64{1, 4, 2}
	want := map[string]*QualitySums{"": {}, "m1": {}}
	for i := range n {
		e := evaluation(i)
		model := e.Slice["model"]
		e.Pi = 1 / weights[i%3]
		e.Passed, e.Score, e.Option = ptr(i%2 == 0), ptr(float32(i%4)/4), []string{"yes", "no"}[i%2]
		switch {
		case i%20 == 1:
			e = failure(e, "error", "timeout")
		case i%20 == 3:
			e = failure(e, "shed", "budget")
		case i%20 == 5:
			e = failure(e, "unscored", "unparsable")
		case i%20 == 7:
			e = failure(e, "not_applicable", "too_long")
		}
		rows = append(rows, e)
		for key, q := range want {
			if key != "" && key != model {
				continue
			}
			w := 1 / e.Pi
			q.InputTokens += 300
			q.OutputTokens++
			q.CostNanoUSD += 45_000
			switch e.Status {
			case "error":
				q.NError++
				q.SWError += w
			case "shed":
				q.NShed++
				q.SWShed += w
			case "unscored":
				q.NUnscored++
				q.SWUnscored += w
			case "not_applicable":
				q.NNotApplicable++
			default:
				s, v := float64(*e.Score), float64(*bit(e.Passed))
				q.N++
				q.NOK++
				q.X += uint64(v)
				q.SW += w
				q.SW2 += w * w
				q.SWV += w * v
				q.SW2V += w * w * v
				q.SWS += w * s
				q.SW2S += w * w * s
				q.SWS2 += w * s * s
				q.SW2S2 += w * w * s * s
				if q.OptionW == nil {
					q.OptionNames, q.OptionW, q.ChosenW = []string{"yes", "no"}, make([]float64, 2), make([]float64, 2)
				}
				q.OptionW[0] += w * 0.75
				q.OptionW[1] += w * 0.25
				q.ChosenW[i%2] += w
			}
		}
	}
	insertAll(t, db, evaluationsTable(), rows)
	other := evaluation(1)
	other.CheckVersion, other.Time = "v2", noon.Add(30*time.Minute)
	insertAll(t, db, evaluationsTable(), []Evaluation{other})
	rollAll(t, db, noon.Add(time.Hour))

	f := func(slice map[string]string, want QualitySums, piMin float64) {
		t.Helper()
		want.CheckVersion, want.Slice, want.From, want.PiMin, want.LastMinute = "v1", slice, noon, piMin, noon.Add(9*time.Minute)
		got, err := db.Quality(ctx, "refunds", slice, noon, noon.Add(10*time.Minute))
		if err != nil || len(got) != 1 || !reflect.DeepEqual(got[0], want) {
			t.Errorf("slice %v: got\n%+v (%v), want\n%+v", slice, got, err, want)
		}
		buckets, err := db.QualityBuckets(ctx, "refunds", "v1", slice, noon, noon.Add(10*time.Minute), 5*time.Minute)
		if err != nil || len(buckets) != 2 || !buckets[0].From.Equal(noon) || !buckets[1].From.Equal(noon.Add(5*time.Minute)) ||
			buckets[0].N+buckets[1].N != want.N || buckets[0].SWS2+buckets[1].SWS2 != want.SWS2 {
			t.Errorf("slice %v in steps: %+v (%v)", slice, buckets, err)
		}
	}
	f(nil, *want[""], 0.25)
	f(map[string]string{"app": "support", "model": "m1"}, *want["m1"], 0.25)
	if got, err := db.Quality(ctx, "refunds", map[string]string{"app": "nobody"}, noon, noon.Add(time.Hour)); err != nil || len(got) != 0 {
		t.Errorf("an empty slice has %+v (%v)", got, err)
	}
	got, err := db.Quality(ctx, "refunds", nil, noon, noon.Add(time.Hour))
	if err != nil || len(got) != 2 || got[1].CheckVersion != "v2" {
		t.Errorf("versions %+v (%v), want the newer one last", got, err)
	}
}

func TestWorstItemsComeLowestFirstAndOnce(t *testing.T) {
	db := migratedDB(t)
	var rows []Evaluation
	for i := range 20 {
		e := evaluation(i)
		e.Score = ptr(float32((i*7)%20) / 20)
		rows = append(rows, e)
	}
	again := rows[0] // was the worst; a later answer lifts it
	again.Score, again.EvaluatedAt = ptr(float32(0.99)), again.EvaluatedAt.Add(time.Minute)
	insertAll(t, db, evaluationsTable(), append(rows, failure(evaluation(30), "error", "timeout")))
	insertAll(t, db, evaluationsTable(), []Evaluation{again})
	f := func(slice map[string]string, want ...string) {
		t.Helper()
		items, err := db.WorstItems(t.Context(), "refunds", "v1", slice, noon, noon.Add(time.Hour), 3)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, i := range items {
			got = append(got, i.InteractionID)
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("slice %v: %v, want %v", slice, got, want)
		}
	}
	f(nil, "int-000003", "int-000006", "int-000009")
	f(map[string]string{"model": "m1"}, "int-000001", "int-000004", "int-000007")
}
