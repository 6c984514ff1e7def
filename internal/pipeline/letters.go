package pipeline

import (
	"context"
	"crypto/sha256"
	"errors"
	"strings"

	"assay/internal/interaction"
	"assay/internal/interaction/decode"
	"assay/sink"
)

// Reasons of dead letters that are not the decoder's.
const (
	reasonRowRejected = "row_rejected" // ClickHouse refused a judgement for good
	reasonFault       = "panic"        // the consumer's Fault: handling the record panicked again and again
)

// errorRunes is how much of an error is kept in a dead letter.
const errorRunes = 500

// letter is what is known of a record without looking inside: enough to find it in the
// log and to know that it is the same.
func (pt *partition) letter(rec *interaction.Record) sink.DeadLetter {
	p := pt.pipeline
	return sink.DeadLetter{
		Topic: pt.topic, Partition: pt.id, Offset: uint64(rec.Offset), LogTime: rec.Time,
		Attempts: 1, FirstFailure: p.deps.Now().UTC(), AssayVersion: p.cfg.Version,
		BodyBytes: uint64(len(rec.Value)), BodySHA256: sha256.Sum256(rec.Value), Stub: true,
	}
}

// fill adds what was bad in a record, and its body as far as privacy allows. All of
// it is one dead letter: the table's key is the position, and the body holds every bad
// element.
func (p *Pipeline) fill(letter *sink.DeadLetter, rec *interaction.Record, bad []decode.Bad) {
	errs := make([]string, 0, len(bad))
	for _, b := range bad {
		errs = append(errs, b.Error)
	}
	text, _ := p.privacy.redact(strings.Join(errs, "; "))
	letter.Reason, letter.Error = bad[0].Reason, cut(text, errorRunes)
	letter.Headers = p.privacy.headers(rec.Headers)
	p.privacy.body(letter, rec)
}

// addDeadLetter hands a dead letter to the sink; the record is not resolved before it
// is durable. One that is refused goes again without what came from outside: the
// coordinates must get out, or the partition could never move on.
func (pt *partition) addDeadLetter(ctx context.Context, u *unit, row sink.DeadLetter) {
	err := pt.pipeline.deps.Rows.AddDeadLetters(ctx, []sink.DeadLetter{row}, func(err error) {
		var poison *sink.PoisonError
		switch {
		case !errors.As(err, &poison):
			u.settle(err)
		case bare(row):
			pt.log.Error("a dead letter can never be stored, so its record stays open", "offset", row.Offset, "err", err)
			u.settle(err)
		default:
			row.Headers, row.Key, row.Body, row.Stub = nil, nil, nil, true
			row.Error = "ClickHouse refused this dead letter with its body and headers"
			pt.letters.put(func() { pt.addDeadLetter(pt.judging, u, row) })
		}
	})
	if err != nil {
		u.settle(err)
	}
}

func bare(row sink.DeadLetter) bool { return row.Stub && row.Headers == nil }
