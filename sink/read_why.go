package sink

import (
	"context"

	"github.com/ClickHouse/clickhouse-go/v2"
)

// blockOffsets is how many offsets a block of the ledger counts.
const blockOffsets = 32768

// EvaluationsOf returns what was judged about an interaction: the newest row of each
// identity, by check, version and position.
func (db *DB) EvaluationsOf(ctx context.Context, interactionID string) ([]Evaluation, error) {
	return read(ctx, db, query{"page_why_evaluations", page, `
		SELECT check, check_version, ts, interaction_id, repeat, kafka_topic, kafka_partition, kafka_offset, element,
		       tenant, app, model, route, prompt_version, environment, slice_id, slice, attributes, stratum, pi, epoch,
		       toString(status), reason, score, passed, confidence, option, option_names, option_probs, outside, toString(method), judge, judge_model,
		       attempts, latency_ms, input_tokens, output_tokens, cost_nano_usd, excerpt, answer_excerpt, detail, evaluated_at, worker
		FROM {{db}}.evaluations
		WHERE interaction_id = {id:String}
		ORDER BY check, check_version, toStartOfMinute(ts), interaction_id, kafka_topic, kafka_partition, kafka_offset, element, repeat, evaluated_at DESC, inserted_at DESC
		LIMIT 1 BY check, check_version, toStartOfMinute(ts), interaction_id, kafka_topic, kafka_partition, kafka_offset, element, repeat`},
		func(scan func(...any) error) (e Evaluation, err error) {
			var passed *uint8
			err = scan(&e.Check, &e.CheckVersion, &e.Time, &e.InteractionID, &e.Repeat, &e.Topic, &e.Partition, &e.Offset, &e.Element,
				&e.Tenant, &e.App, &e.Model, &e.Route, &e.PromptVersion, &e.Environment, &e.SliceID, &e.Slice, &e.Attributes, &e.Stratum, &e.Pi, &e.Epoch,
				&e.Status, &e.Reason, &e.Score, &passed, &e.Confidence, &e.Option, &e.OptionNames, &e.OptionProbs, &e.Outside, &e.Method, &e.Judge, &e.JudgeModel,
				&e.Attempts, &e.LatencyMS, &e.InputTokens, &e.OutputTokens, &e.CostNanoUSD, &e.Excerpt, &e.AnswerExcerpt, &e.Detail, &e.EvaluatedAt, &e.Worker)
			if passed != nil {
				v := *passed == 1
				e.Passed = &v
			}
			return e, err
		}, clickhouse.Named("id", interactionID))
}

// TextOf returns an interaction's stored text, newest first; nil when none is kept.
func (db *DB) TextOf(ctx context.Context, interactionID string) (*Text, error) {
	found, err := read(ctx, db, query{"page_why_text", page, `
		SELECT ts, interaction_id, kafka_topic, kafka_partition, kafka_offset, element, input, output, expected, criteria, context, messages,
		       tenant, app, model, route, prompt_version, environment, session_id, user_id, trace_id, input_tokens, output_tokens, latency_ms,
		       feedback, status, flags, attributes, toString(text_store), redactions
		FROM {{db}}.interactions WHERE interaction_id = {id:String} ORDER BY ts DESC, stored_at DESC LIMIT 1`},
		func(scan func(...any) error) (t Text, err error) {
			return t, scan(&t.Time, &t.InteractionID, &t.Topic, &t.Partition, &t.Offset, &t.Element, &t.Input, &t.Output, &t.Expected, &t.Criteria, &t.Context, &t.Messages,
				&t.Tenant, &t.App, &t.Model, &t.Route, &t.PromptVersion, &t.Environment, &t.SessionID, &t.UserID, &t.TraceID, &t.InputTokens, &t.OutputTokens, &t.LatencyMS,
				&t.Feedback, &t.Status, &t.Flags, &t.Attributes, &t.Store, &t.Redactions)
		}, clickhouse.Named("id", interactionID))
	if err != nil || len(found) == 0 {
		return nil, err
	}
	return &found[0], nil
}

// deadLetterColumns are in the order of scanDeadLetter.
const deadLetterColumns = `kafka_topic, kafka_partition, kafka_offset, log_time, reason, error, attempts, first_failure, assay_version,
	headers, key, body, body_bytes, toString(body_sha256), stub`

func scanDeadLetter(scan func(...any) error) (d DeadLetter, err error) {
	var key, body, sum string
	var stub uint8
	err = scan(&d.Topic, &d.Partition, &d.Offset, &d.LogTime, &d.Reason, &d.Error, &d.Attempts, &d.FirstFailure, &d.AssayVersion,
		&d.Headers, &key, &body, &d.BodyBytes, &sum, &stub)
	d.Key, d.Body, d.Stub = []byte(key), []byte(body), stub == 1
	copy(d.BodySHA256[:], sum)
	return d, err
}

// DeadLettersAt returns the dead letter of a position of the log, if there is one.
func (db *DB) DeadLettersAt(ctx context.Context, topic string, partition uint32, offset uint64) ([]DeadLetter, error) {
	return read(ctx, db, query{"page_why_dead_letter", page, `
		SELECT ` + deadLetterColumns + ` FROM {{db}}.dead_letters FINAL
		WHERE kafka_topic = {topic:String} AND kafka_partition = {partition:UInt32} AND kafka_offset = {offset:UInt64}`},
		scanDeadLetter, clickhouse.Named("topic", topic), clickhouse.Named("partition", partition), clickhouse.Named("offset", offset))
}

// RecentDeadLetters returns the dead letters that were stored last, newest first.
func (db *DB) RecentDeadLetters(ctx context.Context, limit int) ([]DeadLetter, error) {
	return read(ctx, db, query{"page_dead_letters", page, `
		SELECT ` + deadLetterColumns + ` FROM {{db}}.dead_letters FINAL
		ORDER BY inserted_at DESC, kafka_topic, kafka_partition, kafka_offset LIMIT {limit:UInt32}`},
		scanDeadLetter, clickhouse.Named("limit", uint32(max(limit, 0))))
}

// LedgerCell returns the counts of the block that a position of the log lies in, each
// cell as it was counted furthest. A position was counted when the block's largest
// UptoOffset has passed it.
func (db *DB) LedgerCell(ctx context.Context, topic string, partition uint32, offset uint64) ([]Population, error) {
	return read(ctx, db, query{"page_why_ledger", page, `
		SELECT kafka_topic, kafka_partition, block, segment_from, minute, check, check_version, stratum, toString(decision), reason, pi, epoch,
		       n, upto_offset, log_time, checks_hash
		FROM {{db}}.population FINAL
		WHERE kafka_topic = {topic:String} AND kafka_partition = {partition:UInt32} AND block = {block:UInt64}
		ORDER BY segment_from, minute, check, check_version, stratum, decision, reason, pi, epoch`},
		func(scan func(...any) error) (p Population, err error) {
			return p, scan(&p.Topic, &p.Partition, &p.Block, &p.SegmentFrom, &p.Minute, &p.Check, &p.CheckVersion, &p.Stratum, &p.Decision, &p.Reason,
				&p.Pi, &p.Epoch, &p.N, &p.UptoOffset, &p.LogTime, &p.ChecksHash)
		},
		clickhouse.Named("topic", topic), clickhouse.Named("partition", partition), clickhouse.Named("block", offset/blockOffsets))
}
