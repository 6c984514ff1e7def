package server

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"assay/internal/checks"
	"assay/sampler"
	"assay/sink"
)

// WhyStore is what an explanation reads; *sink.DB is one.
type WhyStore interface {
	EvaluationsOf(ctx context.Context, interactionID string) ([]sink.Evaluation, error)
	TextOf(ctx context.Context, interactionID string) (*sink.Text, error)
	DeadLettersAt(ctx context.Context, topic string, partition uint32, offset uint64) ([]sink.DeadLetter, error)
	LedgerCell(ctx context.Context, topic string, partition uint32, offset uint64) ([]sink.Population, error)
	LabelsOf(ctx context.Context, interactionID string) ([]sink.Label, error)
}

// The outcomes of a check that has rows are their status, but that ok is called judged.
const (
	OutcomeJudged       = "judged"
	OutcomeOlderVersion = "older_version" // only versions that the file no longer has judged it
	OutcomeSampledOut   = "sampled_out"
	OutcomeDeadLettered = "dead_lettered"
	OutcomeNotJudged    = "not_judged" // decided, and neither selected nor sampled out
	OutcomePending      = "pending"    // the ledger has not come so far
	OutcomeUnknown      = "unknown"    // neither a row nor a place in the log
)

// Explanation says what became of an interaction.
type Explanation struct {
	ID          string         `json:"id"`
	Position    *Position      `json:"position,omitempty" doc:"Where it stands in the log, as far as that is known"`
	Text        *StoredText    `json:"text,omitempty" doc:"As far as privacy allows"`
	Checks      []CheckOutcome `json:"checks" nullable:"false" doc:"In the order of the checks file, then what it no longer has"`
	Labels      []StoredLabel  `json:"labels" nullable:"false" doc:"What people and logs say about it"`
	DeadLetters []DeadLetter   `json:"dead_letters" nullable:"false" doc:"Of the record at its position"`
	Ledger      *LedgerState   `json:"ledger,omitempty" doc:"How far its part of the log is counted"`
	Notes       []string       `json:"notes" nullable:"false"`
}

// Position is a place in the log.
type Position struct {
	Topic     string `json:"topic"`
	Partition uint32 `json:"partition"`
	Offset    uint64 `json:"offset"`
	Element   uint16 `json:"element"`
}

// CheckOutcome is what one check did with the interaction.
type CheckOutcome struct {
	Check   string            `json:"check"`
	Version string            `json:"version,omitempty" doc:"The checks file's; absent when it has no such check any more"`
	Outcome string            `json:"outcome"`
	Because string            `json:"because,omitempty"`
	U       *float64          `json:"u,omitempty" doc:"The id's place in [0, 1): selected below the rate"`
	Rate    *float64          `json:"rate,omitempty" doc:"The checks file's"`
	Rows    []Judgement       `json:"rows" nullable:"false" doc:"The file's version first, then the latest"`
	Block   map[string]uint64 `json:"block,omitempty" doc:"Decisions of the same block of the log, by name"`
}

// Judgement is a stored row of a check for the interaction.
type Judgement struct {
	Version       string             `json:"version"`
	Current       bool               `json:"current" doc:"The checks file's version"`
	Status        string             `json:"status"`
	Reason        string             `json:"reason,omitempty"`
	Score         *float64           `json:"score"`
	Option        string             `json:"option,omitempty"`
	Passed        *bool              `json:"passed"`
	Confidence    *float64           `json:"confidence"`
	Probabilities map[string]float64 `json:"probabilities,omitempty"`
	Outside       float64            `json:"outside"`
	Method        string             `json:"method,omitempty"`
	Judge         string             `json:"judge"`
	JudgeModel    string             `json:"judge_model,omitempty"`
	Pi            float64            `json:"pi" doc:"Inclusion probability; the row weighs 1/pi"`
	Time          time.Time          `json:"time" doc:"The interaction's"`
	EvaluatedAt   time.Time          `json:"evaluated_at"`
	Position      Position           `json:"position"`
	Repeat        uint8              `json:"repeat"`
	Attempts      uint8              `json:"attempts"`
	LatencyMS     uint32             `json:"latency_ms"`
	CostUSD       float64            `json:"cost_usd"`
	Slice         map[string]string  `json:"slice" nullable:"false"`
	Excerpt       string             `json:"excerpt,omitempty"`
	AnswerExcerpt string             `json:"answer_excerpt,omitempty"`
	Detail        json.RawMessage    `json:"detail,omitempty"`
	Worker        string             `json:"worker"`
}

// StoredText is the interaction as far as it was stored.
type StoredText struct {
	Time          time.Time         `json:"time"`
	Topic         string            `json:"topic"`
	Partition     uint32            `json:"partition"`
	Offset        uint64            `json:"offset"`
	Element       uint16            `json:"element"`
	Stored        string            `json:"stored" doc:"full, excerpt or none"`
	Input         string            `json:"input,omitempty"`
	Output        string            `json:"output,omitempty"`
	Expected      []string          `json:"expected,omitempty"`
	Criteria      string            `json:"criteria,omitempty"`
	Context       []string          `json:"context,omitempty"`
	App           string            `json:"app,omitempty"`
	Model         string            `json:"model,omitempty"`
	Route         string            `json:"route,omitempty"`
	PromptVersion string            `json:"prompt_version,omitempty"`
	Status        string            `json:"status,omitempty" doc:"How the logged call ended"`
	Flags         []string          `json:"flags,omitempty"`
	Attributes    map[string]string `json:"attributes,omitempty"`
}

// DeadLetter is a record that could not be used. Its bytes stay in the table.
type DeadLetter struct {
	Reason    string    `json:"reason"`
	Error     string    `json:"error"`
	LogTime   time.Time `json:"log_time"`
	FirstSeen time.Time `json:"first_failure"`
	Attempts  uint16    `json:"attempts"`
	BodyBytes uint64    `json:"body_bytes"`
}

// LedgerState says how far the block of a position is counted.
type LedgerState struct {
	Counted    bool      `json:"counted" doc:"The position is below what was counted: its record is decided and durable"`
	UptoOffset *uint64   `json:"upto_offset" doc:"The last offset that is counted in its block; null when none is"`
	LogTime    time.Time `json:"log_time" doc:"Of the record there"`
}

// Why explains an interaction from what is stored and, where nothing is, from the hash
// that decided it. It needs nothing of the process that judged.
func Why(ctx context.Context, store WhyStore, file *checks.File, id string) (Explanation, error) {
	why := Explanation{ID: id, Checks: []CheckOutcome{}, Labels: []StoredLabel{}, DeadLetters: []DeadLetter{}, Notes: []string{}}
	rows, err := store.EvaluationsOf(ctx, id)
	if err != nil {
		return why, fmt.Errorf("rows of interaction %q: %w", id, err)
	}
	text, err := store.TextOf(ctx, id)
	if err != nil {
		return why, fmt.Errorf("text of interaction %q: %w", id, err)
	}
	if text != nil {
		why.Text = textOf(text)
	}
	labels, err := store.LabelsOf(ctx, id)
	if err != nil {
		return why, fmt.Errorf("labels of interaction %q: %w", id, err)
	}
	why.Labels = labelsFrom(labels)
	why.locate(rows, file)
	cells, err := why.readLog(ctx, store)
	if err != nil {
		return why, err
	}
	for _, c := range file.Checks {
		why.Checks = append(why.Checks, why.outcome(c, rowsOf(rows, c.Name, c.Version), cells))
	}
	for _, name := range formerChecks(rows, file) {
		o := CheckOutcome{Check: name, Rows: rowsOf(rows, name, "")}
		o.Outcome = outcomeOf(o.Rows[0].Status)
		o.Because = "the checks file has no such check any more"
		why.Checks = append(why.Checks, o)
	}
	why.remark(rows)
	return why, nil
}

// locate finds the interaction's place in the log: in what is stored of it, else in the
// id itself.
func (why *Explanation) locate(rows []sink.Evaluation, file *checks.File) {
	switch {
	case len(rows) > 0:
		r := slices.MaxFunc(rows, func(a, b sink.Evaluation) int { return a.EvaluatedAt.Compare(b.EvaluatedAt) })
		why.Position = &Position{r.Topic, r.Partition, r.Offset, r.Element}
	case why.Text != nil:
		why.Position = &Position{why.Text.Topic, why.Text.Partition, why.Text.Offset, why.Text.Element}
	default:
		p, ok := positionIn(why.ID)
		switch {
		case !ok:
		case slices.Contains(file.Topics(), p.Topic):
			why.Position = &p
			why.Notes = append(why.Notes, "The id names a place in the log. When the record there carries an id of its own, its judgements are kept under that one.")
		default:
			why.Notes = append(why.Notes, fmt.Sprintf("The id looks like a place in the log, but no source of %s reads topic %s.", file.Path, p.Topic))
		}
	}
}

// positionIn reads topic/partition/offset[#element], the id that is given to what was
// logged without one.
func positionIn(id string) (Position, bool) {
	place, element, many := strings.Cut(id, "#")
	parts := strings.Split(place, "/")
	if len(parts) != 3 || parts[0] == "" {
		return Position{}, false
	}
	partition, err := strconv.ParseUint(parts[1], 10, 32)
	if err != nil {
		return Position{}, false
	}
	offset, err := strconv.ParseUint(parts[2], 10, 63)
	if err != nil {
		return Position{}, false
	}
	p := Position{Topic: parts[0], Partition: uint32(partition), Offset: offset}
	if many {
		n, err := strconv.ParseUint(element, 10, 16)
		if err != nil {
			return Position{}, false
		}
		p.Element = uint16(n)
	}
	return p, true
}

// readLog reads what is known of the record at the position and returns the cells of
// its segment of the block.
func (why *Explanation) readLog(ctx context.Context, store WhyStore) ([]sink.Population, error) {
	p := why.Position
	if p == nil {
		return nil, nil
	}
	letters, err := store.DeadLettersAt(ctx, p.Topic, p.Partition, p.Offset)
	if err != nil {
		return nil, fmt.Errorf("dead letters at %s/%d/%d: %w", p.Topic, p.Partition, p.Offset, err)
	}
	for _, d := range letters {
		why.DeadLetters = append(why.DeadLetters, DeadLetter{d.Reason, d.Error, d.LogTime, d.FirstFailure, d.Attempts, d.BodyBytes})
	}
	block, err := store.LedgerCell(ctx, p.Topic, p.Partition, p.Offset)
	if err != nil {
		return nil, fmt.Errorf("ledger at %s/%d/%d: %w", p.Topic, p.Partition, p.Offset, err)
	}
	var cells []sink.Population
	for _, c := range block {
		// A later segment counts from its own start: the position's is the last
		// one that begins at or before it.
		switch {
		case c.SegmentFrom > p.Offset:
			continue
		case len(cells) > 0 && c.SegmentFrom > cells[0].SegmentFrom:
			cells = cells[:0]
		case len(cells) > 0 && c.SegmentFrom < cells[0].SegmentFrom:
			continue
		}
		cells = append(cells, c)
	}
	why.Ledger = &LedgerState{}
	for _, c := range cells {
		if why.Ledger.UptoOffset == nil || c.UptoOffset > *why.Ledger.UptoOffset {
			upto := c.UptoOffset
			why.Ledger.UptoOffset, why.Ledger.LogTime = &upto, c.LogTime
		}
	}
	why.Ledger.Counted = why.Ledger.UptoOffset != nil && *why.Ledger.UptoOffset >= p.Offset
	return cells, nil
}

// outcome says what a check of the file did.
func (why *Explanation) outcome(c checks.Check, rows []Judgement, cells []sink.Population) CheckOutcome {
	u, rate := sampler.U(c.Sample.Salt, why.ID), c.Sample.Rate
	o := CheckOutcome{Check: c.Name, Version: c.Version, U: &u, Rate: &rate, Rows: rows}
	for _, cell := range cells {
		if cell.Check == c.Name && cell.CheckVersion == c.Version {
			if o.Block == nil {
				o.Block = make(map[string]uint64)
			}
			o.Block[cell.Decision] += cell.N
		}
	}
	chance := fmt.Sprintf("u = %.6f, the rate is %g now: in the sample", u, rate)
	if u >= rate {
		chance = fmt.Sprintf("u = %.6f, the rate is %g now: not in the sample, whatever filter and fields say", u, rate)
	}
	switch {
	case len(rows) > 0 && rows[0].Current:
		o.Outcome = outcomeOf(rows[0].Status)
		o.Because = rows[0].Reason
	case len(rows) > 0:
		o.Outcome = OutcomeOlderVersion
		o.Because = fmt.Sprintf("%s by version %s of the check; the checks file has version %s now", outcomeOf(rows[0].Status), rows[0].Version, c.Version)
	case len(why.DeadLetters) > 0:
		o.Outcome = OutcomeDeadLettered
		o.Because = "the record could not be used: " + why.DeadLetters[0].Reason
	case why.Ledger == nil: // nobody has recorded anything about this id
		o.Outcome = OutcomeUnknown
		o.Because = chance + "; no row and no place in the log are known: sampled out, filtered, not applicable, " +
			"dead-lettered, not read yet, still in flight, or no such interaction"
	case !why.Ledger.Counted:
		o.Outcome = OutcomePending
		o.Because = chance + "; " + why.Ledger.reach() + ", so the record is not read yet, in flight, or older than what the ledger keeps"
	case u >= rate:
		o.Outcome = OutcomeSampledOut
		o.Because = chance
	default:
		o.Outcome = OutcomeNotJudged
		o.Because = chance + ", and the ledger has counted it without a row: " + o.candidates(cells)
	}
	return o
}

func (l *LedgerState) reach() string {
	if l.UptoOffset == nil {
		return "the ledger has counted nothing of its block"
	}
	return fmt.Sprintf("the ledger has counted its block up to offset %d", *l.UptoOffset)
}

// candidates names the decisions of the block that leave no row. Where only one occurs,
// it is the one.
func (o CheckOutcome) candidates(cells []sink.Population) string {
	counts := make(map[string]uint64)
	for _, c := range cells {
		switch {
		case c.Check == o.Check && (c.Decision == "filtered" || c.Decision == "not_applicable"):
			name := c.Decision
			if c.Reason != "" {
				name += " (" + c.Reason + ")"
			}
			counts[name] += c.N
		case c.Check == "" && c.Decision == "no_interaction":
			counts["nothing to judge in the record ("+c.Reason+")"] += c.N
		}
	}
	if len(counts) == 0 {
		return "no decision of its block explains that; the rows may have passed their retention"
	}
	names := make([]string, 0, len(counts))
	for name, n := range counts {
		names = append(names, fmt.Sprintf("%s, %d in its block", name, n))
	}
	slices.Sort(names)
	return strings.Join(names, "; or ")
}

// remark adds what is true of the interaction as a whole.
func (why *Explanation) remark(rows []sink.Evaluation) {
	places := make(map[Position]bool)
	for _, r := range rows {
		places[Position{r.Topic, r.Partition, r.Offset, r.Element}] = true
	}
	if len(places) > 1 {
		why.Notes = append(why.Notes, fmt.Sprintf("The id stands at %d places in the log; each was judged, and estimates count an id once a minute.", len(places)))
	}
	if len(rows) > 0 && why.Text == nil {
		why.Notes = append(why.Notes, "No text is stored: privacy says so, or its retention has passed.")
	}
}

// outcomeOf names the outcome of a row.
func outcomeOf(status string) string {
	if status == "ok" {
		return OutcomeJudged
	}
	return status
}

// formerChecks are the checks that have rows and are not in the file.
func formerChecks(rows []sink.Evaluation, file *checks.File) []string {
	var names []string
	for _, r := range rows {
		if _, ok := file.Check(r.Check); !ok && !slices.Contains(names, r.Check) {
			names = append(names, r.Check)
		}
	}
	slices.Sort(names)
	return names
}

// rowsOf are a check's rows: those of the version first, then the latest.
func rowsOf(rows []sink.Evaluation, check, version string) []Judgement {
	own := []Judgement{}
	for _, r := range rows {
		if r.Check == check {
			own = append(own, judgementOf(r, version))
		}
	}
	slices.SortStableFunc(own, func(a, b Judgement) int {
		if a.Current != b.Current {
			if a.Current {
				return -1
			}
			return 1
		}
		return cmp.Or(b.EvaluatedAt.Compare(a.EvaluatedAt), cmp.Compare(a.Version, b.Version))
	})
	return own
}
