package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"assay/consumer"
	"assay/internal/interaction"
	"assay/internal/interaction/decode"
	"assay/internal/pipeline"
	"assay/sampler"
)

// examplesShown is how many decoded examples a sample has.
const examplesShown = 3

// topicSample is what a topic's newest records are read as, and what each check could do
// with them.
type topicSample struct {
	Topic        string          `json:"topic"`
	Records      int             `json:"records"`
	From         time.Time       `json:"from"`
	To           time.Time       `json:"to"`
	PerSecond    float64         `json:"records_per_second"` // the sum of the partitions
	Formats      []formatSample  `json:"formats"`
	Skips        map[string]int  `json:"skips,omitempty"`
	Bad          map[string]int  `json:"dead_letters,omitempty"`
	BadExample   string          `json:"dead_letter_example,omitempty"`
	Scores       int             `json:"scores,omitempty"`
	Joined       uint64          `json:"joined,omitempty"`
	Unjoined     int             `json:"without_other_half,omitempty"`
	Interactions int             `json:"interactions"`
	Judgeable    int             `json:"judgeable"`
	WithoutText  int             `json:"without_text"`
	NotJudged    map[string]int  `json:"not_judgeable,omitempty"`
	TextSwitches []string        `json:"text_switches,omitempty"` // what would make their producers log text
	Checks       []checkSample   `json:"checks"`
	Unmatched    []string        `json:"unmatched_fields,omitempty"`
	Examples     []decodedRecord `json:"examples"`
	Load         *loadSample     `json:"load,omitempty"`

	formats  map[[2]string]*formatSample
	textLess map[string]int  // interactions without text, by format
	shown    map[string]bool // kinds that have an example
}

type formatSample struct {
	Format   string `json:"format"`
	Envelope string `json:"envelope"`
	Records  int    `json:"records"`
}

// checkSample is what one check could do with a sample's interactions.
type checkSample struct {
	Check    string         `json:"check"`
	Filtered int            `json:"filtered"`
	CanJudge int            `json:"can_judge"`
	Selected int            `json:"selected"`
	Why      map[string]int `json:"why_not,omitempty"`
}

// loadSample is Little's law with the sample's own rates.
type loadSample struct {
	SelectedPerSecond float64 `json:"selected_per_second"`
	JudgementSeconds  float64 `json:"judgement_seconds"`
	Unresolved        float64 `json:"unresolved"`
	Window            int     `json:"window"`
}

// sample reads n of the newest records of each source's topic, or of one, and tells what
// they are read as. Nobody joins a group for it and nothing is committed.
func (d *doctor) sample(ctx context.Context, n int, only string) ([]*topicSample, error) {
	if d.file == nil {
		return nil, d.verdict()
	}
	if err := d.env.Kafka.Validate(); err != nil {
		return nil, errUsage{err}
	}
	sources, err := decodeSources(d.file, d.app.environ)
	if err != nil {
		return nil, errUsage{err}
	}
	decoder, err := decode.New(d.env.Decode, sources)
	if err != nil {
		return nil, errUsage{err}
	}
	preview, err := pipeline.NewPreview(d.file)
	if err != nil {
		return nil, errUsage{err}
	}
	topics := d.file.Topics()
	if only != "" {
		if !slices.Contains(topics, only) {
			return nil, errUsage{fmt.Errorf("--topic %s: %s has no such source; it has %s", only, d.file.Path, strings.Join(topics, ", "))}
		}
		topics = []string{only}
	}
	look, err := consumer.NewInspector(d.env.Kafka)
	if err != nil {
		return nil, errUsage{err}
	}
	defer look.Close()
	before := &doctor{app: d.app, env: d.env, file: d.file, probed: d.probed}
	if !before.brokers(ctx, look) {
		return nil, before.report()
	}
	before.judges(ctx) // for how long a judgement takes; what fails there is no matter of a sample
	var (
		out  []*topicSample
		errs []error
	)
	for _, topic := range topics {
		reading, cancel := context.WithTimeout(ctx, 4*doctorWait)
		records, err := look.Tail(reading, topic, n)
		cancel()
		if err != nil {
			errs = append(errs, err) // the others may be read all the same
			continue
		}
		out = append(out, d.sampleOf(topic, records, decoder, preview))
	}
	return out, errors.Join(errs...)
}

func (d *doctor) sampleOf(topic string, records []interaction.Record, decoder *decode.Decoder, preview *pipeline.Preview) *topicSample {
	s := &topicSample{
		Topic: topic, Records: len(records), Skips: map[string]int{}, Bad: map[string]int{}, NotJudged: map[string]int{},
		Formats: []formatSample{}, Checks: []checkSample{}, Examples: []decodedRecord{},
		formats: map[[2]string]*formatSample{}, textLess: map[string]int{}, shown: map[string]bool{},
	}
	for _, c := range d.file.Checks {
		s.Checks = append(s.Checks, checkSample{Check: c.Name, Why: map[string]int{}})
	}
	joiners := make(map[int]*decode.Joiner) // halves find each other within a partition
	selected := 0
	for _, rec := range records {
		j := joiners[rec.Partition]
		if j == nil {
			j = decoder.NewJoiner(topic)
			joiners[rec.Partition] = j
		}
		if s.From.IsZero() || rec.Time.Before(s.From) {
			s.From = rec.Time
		}
		if rec.Time.After(s.To) {
			s.To = rec.Time
		}
		selected += s.take(j.Decode(rec), preview)
	}
	for _, p := range slices.Sorted(maps.Keys(joiners)) {
		s.Unjoined += joiners[p].Counts().Waiting
		s.Joined += joiners[p].Counts().Joined
	}
	for _, f := range s.formats {
		s.Formats = append(s.Formats, *f)
	}
	slices.SortFunc(s.Formats, func(a, b formatSample) int {
		return cmp.Or(cmp.Compare(b.Records, a.Records), cmp.Compare(a.Format, b.Format), cmp.Compare(a.Envelope, b.Envelope))
	})
	for _, format := range slices.Sorted(maps.Keys(s.textLess)) {
		if hint := decode.TextSwitch(format); hint != "" {
			s.TextSwitches = append(s.TextSwitches, format+": "+hint)
		}
	}
	for _, field := range decoder.Missed(topic) {
		s.Unmatched = append(s.Unmatched, field+": "+d.path(topic, field))
	}
	if s.PerSecond = perSecond(records, s.To); s.PerSecond > 0 {
		took := time.Duration(0)
		for _, c := range d.file.Checks {
			if c.Judge != "" {
				took = max(took, d.took(c.Judge))
			}
		}
		rate := s.PerSecond * float64(selected) / float64(len(records))
		s.Load = &loadSample{SelectedPerSecond: rate, JudgementSeconds: took.Seconds(), Unresolved: rate * took.Seconds(), Window: d.env.Consumer.Window}
	}
	return s
}

// perSecond is how fast records came until a moment, the sum of their partitions: the
// newest records of a quiet partition reach much further back than those of a busy one.
func perSecond(records []interaction.Record, until time.Time) (sum float64) {
	type run struct {
		first, last time.Time
		n           int
	}
	runs := make(map[int]run)
	for _, rec := range records { // in the order of their times
		r, ok := runs[rec.Partition]
		if !ok {
			r.first = rec.Time
		}
		r.last = rec.Time
		r.n++
		runs[rec.Partition] = r
	}
	for _, r := range runs {
		if span := r.last.Sub(r.first).Seconds(); span > 0 {
			// one that has fallen silent counts with its silence
			sum += min(float64(r.n-1)/span, float64(r.n)/until.Sub(r.first).Seconds())
		}
	}
	return sum
}

// take adds what a record became; it returns 1 when some check selects something of it.
func (s *topicSample) take(res decode.Result, preview *pipeline.Preview) (selected int) {
	key := [2]string{res.Format, res.Envelope}
	if s.formats[key] == nil {
		s.formats[key] = &formatSample{Format: res.Format, Envelope: res.Envelope}
	}
	s.formats[key].Records++
	s.Scores += len(res.Scores)
	for _, reason := range res.Skips {
		s.Skips[reason]++
	}
	for _, b := range res.Bad {
		s.Bad[b.Reason]++
		s.BadExample = cmp.Or(s.BadExample, b.Reason+": "+b.Error)
	}
	for i := range res.Interactions {
		it := &res.Interactions[i]
		s.Interactions++
		if it.Judgeable {
			s.Judgeable++
		} else {
			s.NotJudged[it.SkipReason]++
		}
		if it.Status == interaction.NoContent {
			s.WithoutText++
			s.textLess[res.Format]++
		}
		for _, decision := range preview.Decide(it) {
			c := &s.Checks[decision.Check]
			switch decision.Kind {
			case sampler.Filtered:
				c.Filtered++
			case sampler.NotApplicable:
				c.Why[decision.Reason]++
			case sampler.Selected:
				selected = 1
				c.Selected++
				c.CanJudge++
			default:
				c.CanJudge++
			}
		}
		s.example(it, res, preview)
	}
	return selected
}

// example keeps an interaction when it shows something that those before do not: another
// format, another reason.
func (s *topicSample) example(it *interaction.Interaction, res decode.Result, preview *pipeline.Preview) {
	kind := res.Format + "\x00" + res.Envelope + "\x00" + it.SkipReason
	if s.shown[kind] || len(s.Examples) == examplesShown {
		return
	}
	s.shown[kind] = true
	s.Examples = append(s.Examples, decodedOf("", decode.Result{Interactions: []interaction.Interaction{shortened(*it, preview)}}).Records[0])
}

// shortened is an interaction with its texts as the file's privacy lets them be shown.
func shortened(it interaction.Interaction, preview *pipeline.Preview) interaction.Interaction {
	show := func(text *string) *string {
		if text == nil {
			return nil
		}
		short := preview.Excerpt(text)
		if short == "" && *text != "" {
			short = fmt.Sprintf("(%d bytes, not shown: privacy)", len(*text))
		}
		return &short
	}
	all := func(texts []string) []string {
		out := make([]string, len(texts))
		for i := range texts {
			out[i] = *show(&texts[i])
		}
		return out
	}
	it.Input, it.Output, it.Criteria = show(it.Input), show(it.Output), show(it.Criteria)
	it.Expected, it.Context = all(it.Expected), all(it.Context)
	it.Messages, it.Attributes = nil, maps.Clone(it.Attributes)
	for name, text := range it.Attributes {
		it.Attributes[name] = *show(&text)
	}
	if it.Error != nil {
		it.Error = &interaction.ProviderError{Code: it.Error.Code, Type: it.Error.Type, Message: *show(&it.Error.Message)}
	}
	return it
}

// path is where a source's override looks for a field.
func (d *doctor) path(topic, field string) string {
	for _, s := range d.file.Sources {
		if s.Topic == topic {
			return s.Fields[field]
		}
	}
	return ""
}
