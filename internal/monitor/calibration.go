package monitor

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash"
	"hash/fnv"
	"math"
	"time"

	"assay/evaluators"
	"assay/internal/checks"
	"assay/internal/interaction"
	"assay/internal/stats"
	"assay/sink"
)

// calibrationSpans are the windows in which the judge is held against people, the
// longest last.
var calibrationSpans = [...]span{
	{"24h", 24 * time.Hour},
	{"7d", 7 * 24 * time.Hour},
}

// labelOrigins are those whose labels are compared with the judge, never mixed: of
// sampled ones the chance of being labelled is known, of imported ones it is taken to
// be the same for all. Volunteered labels are left out by the store.
var labelOrigins = [...]string{"sampled", "imported"}

const (
	// calibrationBins of equal mass; more of them find finer faults in more labels.
	calibrationBins  = 10
	calibrationDraws = 1000
	// logLossEps is how sure a probability counts at most.
	logLossEps = 1e-6
)

// placeWithin is how long a label without a judged interaction is looked for.
const placeWithin = 7 * 24 * time.Hour

// Calibration says how far the judge's verdicts and scores agree with people's labels in
// a window. Weights are 1/(pi pi2), so that it speaks of all the traffic.
type Calibration struct {
	Window string    `json:"window"` // 24h, 7d
	Origin string    `json:"origin"` // of the labels: sampled, or imported
	From   time.Time `json:"from"`
	To     time.Time `json:"to"` // exclusive

	Labels    uint64    `json:"labels"` // labelled interactions with a judge's answer
	NEff      float64   `json:"n_eff"`
	Agreement Rate      `json:"agreement"` // share on which the judge's verdict is people's
	Confusion Confusion `json:"confusion"`
	Kappa     *float64  `json:"kappa"` // agreement beyond chance; nil where all said the same

	// Of the probability of passing: of the options that pass, or the score where no
	// option does; nil where scores are no probabilities.
	Brier        *float64 `json:"brier"`
	BrierSkill   *float64 `json:"brier_skill"`
	LogLoss      *float64 `json:"log_loss"`
	ErrorSquared *float64 `json:"error_squared"` // mean squared distance of said and seen, less its noise: may be below 0
	Error        *float64 `json:"error"`         // its root, 0 below 0
	PValue       *float64 `json:"p_value"`       // of scores that mean what they say
}

// Confusion holds weighted shares of the labelled interactions. People passed one when at
// least half of its raters did.
type Confusion struct {
	BothPassed  float64 `json:"both_passed"`
	JudgeAlone  float64 `json:"judge_alone"`  // passed by the judge, not by people
	PeopleAlone float64 `json:"people_alone"` // passed by people, not by the judge
	BothFailed  float64 `json:"both_failed"`
}

// LabelQueue counts labels whose interaction has no judgement.
type LabelQueue struct {
	Waiting   uint64 `json:"waiting"`   // looked for in every round
	Unmatched uint64 `json:"unmatched"` // older than 7 days: given up
}

// A labelStock is what a round finds of labels before it asks more about them. Most
// checks have none, and the questions are dear.
type labelStock struct {
	waiting bool
	checks  map[string]bool // with rows of labels that a window may hold
}

// placeLabels moves labels to judgements that came after them. It goes before the
// rollup, so that their minutes are dirty in the same round.
func (m *Monitor) placeLabels(ctx context.Context, v view) (labelStock, error) {
	stock := labelStock{checks: map[string]bool{}}
	counts, err := m.store.LabelCounts(ctx, v.now.Add(-calibrationSpans[len(calibrationSpans)-1].length))
	if err != nil {
		return stock, fmt.Errorf("rows of labels: %w", err)
	}
	for _, c := range counts {
		stock.waiting = stock.waiting || c.Waiting > 0
		stock.checks[c.Check] = true // those that wait may find their place now
	}
	if !stock.waiting {
		// A label that comes to wait is newer than this, and so is its judgement, but for
		// the lookback.
		m.labelsTo, m.labelsKnown = v.server, true
		return stock, nil
	}
	labelled := v.server.Add(-placeWithin)
	// Before the first round of a process anything may have been judged meanwhile.
	judged := labelled
	if m.labelsKnown {
		judged = m.labelsTo.Add(-m.cfg.Lookback)
	}
	n, err := m.store.PlaceLabels(ctx, labelled, judged)
	if err != nil {
		return stock, fmt.Errorf("labels that wait: %w", err)
	}
	if n > 0 {
		m.log.Info("labels found their interactions", "labels", n)
	}
	m.labelsTo, m.labelsKnown = v.server, true
	return stock, nil
}

// calibrateAll holds every state against people, and counts the labels that have none.
func (m *Monitor) calibrateAll(ctx context.Context, v view, labels labelStock, states []Check) error {
	next := make(map[string]calibrated, len(m.calibrations)) // without sets that are gone
	for _, c := range m.file.Checks {
		if v.now.IsZero() || !labels.checks[c.Name] {
			continue
		}
		if err := m.calibrate(ctx, c, v.now, states, next); err != nil {
			return err
		}
	}
	m.calibrations = next
	if !labels.waiting {
		return nil
	}
	return m.queues(ctx, v.server, states)
}

func (m *Monitor) calibrate(ctx context.Context, c checks.Check, now time.Time, states []Check, next map[string]calibrated) error {
	end := windowEnd(now)
	rows, err := m.store.LabelledRows(ctx, c.Name, end.Add(-calibrationSpans[len(calibrationSpans)-1].length), end)
	if err != nil {
		return fmt.Errorf("labelled rows of check %s: %w", c.Name, err)
	}
	for i := range states {
		if states[i].Name != c.Name {
			continue
		}
		for j := range states[i].Slices {
			for _, w := range calibrationSpans {
				for _, origin := range labelOrigins {
					s := labelledSet{check: c, version: states[i].Version, slice: states[i].Slices[j].Slice, window: w, origin: origin, from: end.Add(-w.length), to: end}
					found, err := m.calibration(s, rows, next)
					if err != nil {
						return fmt.Errorf("calibration of check %s version %s on %s, %s labels of %s: %w", c.Name, s.version, s.slice, origin, w.name, err)
					}
					if found != nil {
						states[i].Slices[j].Calibration = append(states[i].Slices[j].Calibration, *found)
					}
				}
			}
		}
	}
	return nil
}

// queues puts the counts of labels without a judgement into the current versions.
func (m *Monitor) queues(ctx context.Context, server time.Time, states []Check) error {
	queues, err := m.store.LabelQueues(ctx, server.Add(-placeWithin))
	if err != nil {
		return fmt.Errorf("labels without a judgement: %w", err)
	}
	for i := range states {
		if !states[i].Current {
			continue
		}
		for _, q := range queues {
			if q.Check == states[i].Name {
				states[i].LabelQueue = LabelQueue{Waiting: q.Waiting, Unmatched: q.Unmatched}
			}
		}
	}
	return nil
}

// A labelledSet is whose rows one Calibration is of.
type labelledSet struct {
	check   checks.Check
	version string
	slice   interaction.Slice
	window  span
	origin  string

	from, to time.Time
}

// key names the set for the cache and, hashed, is the seed of its draws: any monitor
// draws the same.
func (s labelledSet) key() string {
	return s.check.Name + "\x00" + s.version + "\x00" + s.slice.String() + "\x00" + s.window.name + "\x00" + s.origin
}

func (s labelledSet) seed() uint64 {
	h := fnv.New64a()
	h.Write([]byte(s.key()))
	return h.Sum64()
}

// A calibrated is the result of one set's rows. Labels come in bursts and rounds in
// seconds; a p value of thousands of labels takes a thousand draws of each.
type calibrated struct {
	digest [sha256.Size]byte
	result Calibration
}

// calibration is nil without rows. What it finds, or knew, is put into next.
func (m *Monitor) calibration(s labelledSet, all []sink.LabelledRow, next map[string]calibrated) (*Calibration, error) {
	var rows []sink.LabelledRow
	h := sha256.New()
	for _, r := range all {
		if r.CheckVersion == s.version && r.Origin == s.origin && !r.Time.Before(s.from) && s.slice.Contains(r.Slice) {
			rows = append(rows, r)
			digestRow(h, r)
		}
	}
	if len(rows) == 0 {
		return nil, nil
	}
	var digest [sha256.Size]byte
	h.Sum(digest[:0])
	known, ok := m.calibrations[s.key()]
	if !ok || known.digest != digest {
		result, err := calibrationOf(rows, lessIsBetter(s.check), s.seed())
		if err != nil {
			return nil, err
		}
		known = calibrated{digest, result}
	}
	next[s.key()] = known
	out := known.result
	out.Window, out.Origin, out.From, out.To = s.window.name, s.origin, s.from, s.to
	return &out, nil
}

func digestRow(h hash.Hash, r sink.LabelledRow) {
	var b [8]byte
	for _, v := range [...]float64{r.Pi, r.Pi2, r.Says, r.People} {
		binary.LittleEndian.PutUint64(b[:], math.Float64bits(v))
		h.Write(b[:])
	}
	passed := byte(0)
	if r.Passed {
		passed = 1
	}
	h.Write([]byte{passed})
}

// lessIsBetter reports whether a low score of the check is a good one.
func lessIsBetter(c checks.Check) bool {
	for _, spec := range evaluators.Table() {
		if spec.Name == c.Evaluator {
			return spec.Passes != evaluators.AtLeast
		}
	}
	return false
}

// calibrationOf compares rows, at least one. Scores of which less is better are turned
// round, so that they speak of passing.
func calibrationOf(rows []sink.LabelledRow, turn bool, seed uint64) (Calibration, error) {
	n := len(rows)
	p, y, w := make([]float64, n), make([]float64, n), make([]float64, n)
	agrees, pi := make([]float64, n), make([]float64, n)
	var c stats.Confusion
	probabilities := true
	for i, r := range rows {
		pi[i] = r.Pi * r.Pi2
		p[i], y[i], w[i] = r.Says, r.People, 1/pi[i]
		if turn {
			p[i] = 1 - r.Says
		}
		probabilities = probabilities && p[i] >= 0 && p[i] <= 1
		switch people := r.People >= .5; {
		case people && r.Passed:
			c.TP += w[i]
		case people:
			c.FN += w[i]
		case r.Passed:
			c.FP += w[i]
		default:
			c.TN += w[i]
		}
		if (r.People >= .5) == r.Passed {
			agrees[i] = 1
		}
	}
	out := Calibration{Labels: uint64(n)}
	sums, err := stats.NewSums(agrees, pi)
	if err != nil {
		return out, err
	}
	out.NEff = sums.Kish()
	if out.Agreement, err = rate(sums.PassRate); err != nil {
		return out, err
	}
	if out.Kappa, err = c.Kappa(); err != nil {
		return out, err
	}
	total := c.TP + c.FP + c.FN + c.TN
	out.Confusion = Confusion{BothPassed: c.TP / total, JudgeAlone: c.FP / total, PeopleAlone: c.FN / total, BothFailed: c.TN / total}
	if !probabilities {
		return out, nil
	}
	return out, out.score(p, y, w, seed)
}

// score adds what the probabilities p say of the outcomes y.
func (c *Calibration) score(p, y, w []float64, seed uint64) (err error) {
	if c.Brier, err = stats.Brier(p, y, w); err != nil {
		return err
	}
	if c.BrierSkill, err = stats.BrierSkill(p, y, w); err != nil {
		return err
	}
	if c.LogLoss, err = stats.LogLoss(p, y, w, logLossEps); err != nil {
		return err
	}
	edges, err := stats.EqualMass(p, calibrationBins)
	if err != nil {
		return err
	}
	r, err := stats.EdgesReliability(p, y, w, edges)
	if err != nil {
		return err
	}
	if c.ErrorSquared = r.Debiased(); c.ErrorSquared != nil {
		root := math.Sqrt(max(0, *c.ErrorSquared))
		c.Error = &root
	}
	c.PValue, err = r.CalibrationP(p, w, calibrationDraws, seed)
	return err
}
