package pipeline

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"assay/internal/checks"
	"assay/internal/interaction/decode"
)

type metrics struct {
	interactions *prometheus.CounterVec // by topic
	decisions    *prometheus.CounterVec // by check, decision
	evaluations  *prometheus.CounterVec // by check, status
	deadLetters  *prometheus.CounterVec // by topic, reason
	joins        *prometheus.CounterVec // by topic, outcome
	feedback     *prometheus.CounterVec // by topic, outcome
	recovered    *prometheus.CounterVec // by check
	panics       *prometheus.CounterVec // by check
	textLost     prometheus.Counter
	fast         *prometheus.CounterVec // by topic, result
}

func newMetrics(reg prometheus.Registerer, f *checks.File) *metrics {
	with := promauto.With(reg)
	m := &metrics{
		interactions: with.NewCounterVec(prometheus.CounterOpts{
			Name: "assay_interactions_total", Help: "Interactions read."}, []string{"topic"}),
		decisions: with.NewCounterVec(prometheus.CounterOpts{
			Name: "assay_decisions_total", Help: "Decisions made, one per interaction and check."}, []string{"check", "decision"}),
		evaluations: with.NewCounterVec(prometheus.CounterOpts{
			Name: "assay_evaluations_total", Help: "Judgements ended, by status."}, []string{"check", "status"}),
		deadLetters: with.NewCounterVec(prometheus.CounterOpts{
			Name: "assay_dead_letters_total", Help: "Records or elements that could not be used."}, []string{"topic", "reason"}),
		joins: with.NewCounterVec(prometheus.CounterOpts{
			Name: "assay_decode_joins_total", Help: "Interactions whose halves stand in several records, by what became of them."}, []string{"topic", "outcome"}),
		feedback: with.NewCounterVec(prometheus.CounterOpts{
			Name: "assay_feedback_total", Help: "What logs say about interactions, by what became of it."}, []string{"topic", "outcome"}),
		recovered: with.NewCounterVec(prometheus.CounterOpts{
			Name: "assay_recovery_skipped_total", Help: "Judgements that an earlier owner had finished."}, []string{"check"}),
		panics: with.NewCounterVec(prometheus.CounterOpts{
			Name: "assay_judging_panics_total", Help: "Judgements that ended in a panic; their rows have status error."}, []string{"check"}),
		textLost: with.NewCounter(prometheus.CounterOpts{
			Name: "assay_texts_lost_total", Help: "Texts of judged interactions that ClickHouse rejected."}),
	}
	m.fast = with.NewCounterVec(prometheus.CounterOpts{
		Name: "assay_decode_fast_total", Help: "Records on the fast path, which reads what decisions need and no more."}, []string{"topic", "result"})
	rate := with.NewGaugeVec(prometheus.GaugeOpts{
		Name: "assay_sampling_rate", Help: "Inclusion probability in force."}, []string{"check", "stratum"})
	for _, s := range f.Sources {
		m.interactions.WithLabelValues(s.Topic)
		for _, result := range fastResults() {
			m.fast.WithLabelValues(s.Topic, result)
		}
		for _, outcome := range feedbackOutcomes() {
			m.feedback.WithLabelValues(s.Topic, outcome)
		}
		for _, outcome := range joinOutcomes() {
			m.joins.WithLabelValues(s.Topic, outcome)
		}
		for _, reason := range append(decode.Reasons(), reasonRowRejected, reasonFault) {
			m.deadLetters.WithLabelValues(s.Topic, reason)
		}
	}
	for _, c := range f.Checks {
		rate.WithLabelValues(c.Name, "").Set(c.Sample.Rate)
		m.recovered.WithLabelValues(c.Name)
		m.panics.WithLabelValues(c.Name)
		for _, d := range []string{"filtered", "not_applicable", "sampled_out", "selected"} {
			m.decisions.WithLabelValues(c.Name, d)
		}
		for _, s := range []string{"ok", "unscored", "not_applicable", "shed", "error"} {
			m.evaluations.WithLabelValues(c.Name, s)
		}
	}
	return m
}
