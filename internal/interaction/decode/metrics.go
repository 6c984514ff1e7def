package decode

import "github.com/prometheus/client_golang/prometheus"

// An Outcome is what became of a record as a whole. Its values are label values:
// renaming one breaks users' alerts.
type Outcome string

// The outcomes.
const (
	Records    Outcome = "records"     // every element is an interaction or a skip
	Skip       Outcome = "skip"        // nothing to judge and nothing wrong
	Partial    Outcome = "partial"     // some elements are good and some are bad
	DeadLetter Outcome = "dead_letter" // nothing in it could be used
	Scored     Outcome = "score"       // feedback about another interaction
)

func outcomes() []Outcome { return []Outcome{Records, Skip, Partial, DeadLetter, Scored} }

// Metrics counts decoded records.
type Metrics struct{ records *prometheus.CounterVec }

// NewMetrics registers the decoder's counters. Every source's outcomes exist at 0
// under the unknown format, so that the first dead letter of a topic is an increase.
func NewMetrics(reg prometheus.Registerer, sources []Source) *Metrics {
	m := &Metrics{records: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "assay_decode_records_total",
		Help: "Records decoded, by source, the format and envelope they were read as, and outcome.",
	}, []string{"source", "format", "envelope", "outcome"})}
	reg.MustRegister(m.records)
	for _, s := range sources {
		for _, o := range outcomes() {
			m.records.WithLabelValues(s.Topic, unknown, bare, string(o))
		}
	}
	return m
}

// Count adds one decoded record of a topic.
func (m *Metrics) Count(topic string, r Result) { m.Of(topic, r).Inc() }

// Of is the counter of records like this one, for who has many of them.
func (m *Metrics) Of(topic string, r Result) prometheus.Counter {
	return m.records.WithLabelValues(topic, r.Format, r.Envelope, string(r.Outcome))
}
