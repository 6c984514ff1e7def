package pipeline

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"assay/consumer"
	"assay/evaluators"
	"assay/evaluators/judge"
	"assay/internal/checks"
	"assay/internal/interaction"
	"assay/internal/interaction/decode"
	"assay/sampler"
	"assay/sink"
)

// Config is what the pipeline is told.
type Config struct {
	Deadline time.Duration // for one interaction and check, from the moment it has a slot
	Worker   string        // this process's name in the rows
	Version  string        // of Assay, in dead letters
}

// Judge is a judge as cmd/assay stacked it.
type Judge struct {
	judge.Judge
	InFlight int // questions it takes at once; 0 means one for each core

	// Wait returns when the judge can be asked, or ctx ends; nil: it always can. It is
	// called with the slot held and before the deadline starts, so an outage of the judge
	// fills the window and stops fetching, and ends no judgement.
	Wait func(ctx context.Context) error
}

// rowWriter is what the pipeline needs of the sink's writer.
type rowWriter interface {
	AddEvaluations(ctx context.Context, rows []sink.Evaluation, settled func(error)) error
	AddTexts(ctx context.Context, rows []sink.Text, settled func(error)) error
	AddDeadLetters(ctx context.Context, rows []sink.DeadLetter, settled func(error)) error
	InsertPopulation(ctx context.Context, rows []sink.Population) error
	Flush(ctx context.Context) error
}

// recoveryReader is what an assignment asks of ClickHouse.
type recoveryReader interface {
	Answered(ctx context.Context, topic string, partition uint32, from uint64, since time.Time) (map[sink.AnswerKey]struct{}, error)
	Segments(ctx context.Context, topic string, partition uint32, fromBlock uint64) ([]sink.Segment, error)
	LastSegment(ctx context.Context, topic string, partition uint32) (sink.Segment, bool, error)
}

// Deps are the parts the pipeline works with; every field is required.
type Deps struct {
	Checks   *checks.File
	Decoder  *decode.Decoder
	Sources  []decode.Source  // the decoder's
	Judges   map[string]Judge // by the checks file's names
	Rows     rowWriter
	Labels   labelWriter
	Recovery recoveryReader
	Now      func() time.Time
	Log      *slog.Logger
	Reg      prometheus.Registerer
}

// Pipeline is the consumer's handler. It is immutable but for what its partitions own.
type Pipeline struct {
	cfg     Config
	deps    Deps
	checks  []check // by index of the file's checks
	rules   string  // hash of all that a count depends on: the ledger's segments stand under it
	sampler *sampler.Sampler
	privacy *privacy
	slots   map[string]*slots // by judge
	writers *slots            // of labels

	feedback map[string]map[string]checks.Feedback // by topic and name of a score
	metrics  *metrics
	decoded  *decode.Metrics
	plan     *decode.Plan // what decisions read; nil: every record is decoded in full
}

// check is a check of the file with what it takes to judge.
type check struct {
	checks.Check
	evaluator evaluators.Evaluator
	judge     judge.Judge
	wait      func(context.Context) error // Judge.Wait
	slots     *slots
	panicked  *atomic.Bool // a stack was logged
}

// New checks that every check of the file has its evaluator and its judge. Checks that
// compute have none: their slots stand under the empty name.
func New(cfg Config, deps Deps) (*Pipeline, error) {
	if cfg.Deadline <= 0 {
		return nil, fmt.Errorf("pipeline: deadline %s: want more than 0", cfg.Deadline)
	}
	p := &Pipeline{
		cfg: cfg, deps: deps,
		rules:   rulesHash(deps.Checks.Hash, deps.Decoder.Fingerprint()),
		slots:   make(map[string]*slots),
		writers: newSlots(labelWriters), feedback: feedbackOf(deps.Checks),
		privacy: newPrivacy(deps.Checks),
		metrics: newMetrics(deps.Reg, deps.Checks),
		decoded: decode.NewMetrics(deps.Reg, deps.Sources),
	}
	var errs []error
	for _, c := range deps.Checks.Checks {
		ev, err := newEvaluator(c)
		if err != nil {
			errs = append(errs, fmt.Errorf("check %s: %w", c.Name, err))
			continue
		}
		j, ok := deps.Judges[c.Judge]
		if !ok && needsJudge(c) {
			errs = append(errs, fmt.Errorf("check %s: no judge %q", c.Name, c.Judge))
			continue
		}
		if p.slots[c.Judge] == nil {
			p.slots[c.Judge] = newSlots(slotsFor(j.InFlight))
		}
		p.checks = append(p.checks, check{Check: c, evaluator: ev, judge: j, wait: j.Wait, slots: p.slots[c.Judge], panicked: new(atomic.Bool)})
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	p.sampler = sampler.New(deps.Checks, p.applicable)
	if plan, err := deps.Checks.Plan(); err == nil {
		p.plan = &plan
	} else {
		deps.Log.Info("every record is decoded in full", "because", err)
	}
	return p, nil
}

// rulesHash joins the two that decide what a record counts as: how it is read, and what
// is decided about it.
func rulesHash(checks, decoder string) string {
	sum := sha256.Sum256([]byte(checks + "\x00" + decoder))
	return hex.EncodeToString(sum[:8])
}

// applicable reports whether a check can judge an interaction at all; it is asked
// before sampling, so that not_applicable is counted on the whole population.
func (p *Pipeline) applicable(i int, it *interaction.Interaction) (reason string, ok bool) {
	return p.checks[i].evaluator.Applicable(p.checks[i].Item(it))
}

var _ consumer.Handler = (*Pipeline)(nil)
