package pipeline

import (
	"context"
	"fmt"
	"time"

	"assay/consumer"
	"assay/sampler"
	"assay/sink"
)

// recoveryMargin is how much earlier than the ledger's last row an answer above the
// committed offset may have been inserted: a judgement's deadline and a drain are
// added to it.
const recoveryMargin = 10 * time.Minute

// Assign reads what an earlier owner left and says where reading starts.
//
// Counts are cumulative from a segment's first offset, so counting starts there
// again and offsets below the committed one are only counted. Under other rules a
// new segment starts past everything that is counted already: without that, old and
// new decisions for the same offsets would both be in the ledger. What the ledger
// holds was resolved (its rows never run ahead of the watermark), so those offsets
// need no second reading even when the crash came before their commit.
func (p *Pipeline) Assign(ctx context.Context, a consumer.Assignment) (consumer.Partition, int64, error) {
	at := func(err error) error {
		return fmt.Errorf("recovery of %s/%d at %d: %w", a.Topic, a.Partition, a.Committed, err)
	}
	store, topic, partition := p.deps.Recovery, a.Topic, uint32(a.Partition)
	last, counted, err := store.LastSegment(ctx, topic, partition)
	if err != nil {
		return nil, 0, at(err)
	}
	var segments []sink.Segment
	if counted {
		block := uint64(a.Committed) / sampler.BlockSize
		if segments, err = store.Segments(ctx, topic, partition, block); err != nil {
			return nil, 0, at(err)
		}
	}
	from := a.Committed
	if counted {
		from = segmentStart(a.Committed, a.LogStart, p.deps.Checks.Hash, last, segments)
	}

	var since time.Time // a partition without a ledger has no answers worth a bound
	if counted {
		since = last.InsertedAt.Add(-p.cfg.Deadline - recoveryMargin)
	}
	answered, err := store.Answered(ctx, topic, partition, uint64(a.Committed), since)
	if err != nil {
		return nil, 0, at(err)
	}
	if len(answered) > 0 {
		p.deps.Log.Info("found answers of an earlier owner", "topic", topic, "partition", a.Partition,
			"offset", a.Committed, "answers", len(answered))
	}
	return p.newPartition(a, from, answered), from, nil
}

// segmentStart is the offset at which counting starts: the start of the segment that
// covers the committed offset when it was counted under the same rules and its
// records are still in the log, else the first offset that is not counted yet.
func segmentStart(committed, logStart int64, hash string, last sink.Segment, segments []sink.Segment) int64 {
	if last.ChecksHash != hash {
		return max(committed, int64(last.UptoOffset)+1)
	}
	block := uint64(committed) / sampler.BlockSize
	covering := -1
	for i, s := range segments { // ascending
		if s.Block == block && int64(s.SegmentFrom) <= committed {
			covering = i
		}
	}
	if covering < 0 {
		return committed
	}
	s := segments[covering]
	if s.ChecksHash == hash && logStart <= int64(s.SegmentFrom) {
		return int64(s.SegmentFrom)
	}
	return max(committed, int64(s.UptoOffset)+1)
}
