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
// committed offset may have been inserted: a judgement's deadline and how long a half may
// keep the watermark below what is judged already are added to it.
const recoveryMargin = 10 * time.Minute

// Assign reads what an earlier owner left and says where reading starts.
//
// Counts are cumulative from a segment's first offset, so counting starts there
// again and offsets below the committed one are only counted. Under other rules a
// new segment starts past everything that is counted already: without that, old and
// new decisions for the same offsets would both be in the ledger. What the ledger
// holds was resolved (its rows never run ahead of the watermark), so those offsets
// need no second reading even when the crash came before their commit.
//
// Where records carry halves, reading starts earlier still: see joinedFrom.
func (p *Pipeline) Assign(ctx context.Context, a consumer.Assignment) (consumer.Partition, int64, error) {
	at := func(err error) error {
		return fmt.Errorf("recovery of %s/%d at %d: %w", a.Topic, a.Partition, a.Committed, err)
	}
	log := p.deps.Log.With("topic", a.Topic, "partition", a.Partition)
	store, topic, partition := p.deps.Recovery, a.Topic, uint32(a.Partition)
	last, counted, err := store.LastSegment(ctx, topic, partition)
	if err != nil {
		return nil, 0, at(err)
	}
	from, read := a.Committed, a.Committed
	var since time.Time // a partition without a ledger has no answers worth a bound
	if counted {
		segments, err := store.Segments(ctx, topic, partition, uint64(a.Committed)/sampler.BlockSize)
		if err != nil {
			return nil, 0, at(err)
		}
		from = segmentStart(a, p.rules, last, segments)
		read = from
		if !otherLog(a, last) {
			var cut bool
			if read, cut, err = p.joinedFrom(ctx, a, from); err != nil {
				return nil, 0, at(err)
			}
			if cut {
				from = max(from, uncounted(a, last, segments))
			}
		}
		since = last.InsertedAt.Add(-p.cfg.Deadline - recoveryMargin - p.deps.Decoder.NewJoiner(a.Topic).Wait())
	}
	if from > a.Committed {
		log.Info("left out offsets that are counted and resolved already", "committed", a.Committed, "offset", from)
	}
	if read < from {
		log.Info("records carry halves of interactions, so reading starts earlier", "counted", from, "offset", read)
	}
	if counted && otherLog(a, last) {
		// An answer is known by its offset, and these offsets hold other records now.
		log.Warn("the ledger knows offsets beyond the log's end, so the log is another one: its records are judged whatever is stored for their offsets",
			"end", a.LogEnd, "counted", last.UptoOffset)
		return p.newPartition(a, from, nil), read, nil
	}

	answered, err := store.Answered(ctx, topic, partition, uint64(a.Committed), since)
	if err != nil {
		return nil, 0, at(err)
	}
	if len(answered) > 0 {
		log.Info("found answers of an earlier owner", "offset", a.Committed, "answers", len(answered))
	}
	return p.newPartition(a, from, answered), read, nil
}

// joinedFrom says where reading has to start so that the joiner knows at from what it
// would know if it had read the whole log: counting again must find the same interactions
// under the same offsets. That is the joiner's reach before from, and not before the first
// record that was ever counted, where its first owner knew nothing either. A partition of
// which nothing was kept on that stretch needs none of it, however long it is.
//
// cut says that retention has taken a part of the stretch. What is counted there already
// cannot be counted again then.
func (p *Pipeline) joinedFrom(ctx context.Context, a consumer.Assignment, from int64) (read int64, cut bool, err error) {
	read, err = a.Reach(ctx, from, p.deps.Decoder.NewJoiner(a.Topic).Reach())
	if err != nil {
		return from, false, err
	}
	// One block more: what retention took of the stretch stood before read.
	block := max(read/sampler.BlockSize-1, 0)
	segments, err := p.deps.Recovery.Segments(ctx, a.Topic, uint32(a.Partition), uint64(block))
	if err != nil {
		return from, false, err
	}
	kept, first := false, from
	for _, s := range segments {
		if int64(s.SegmentFrom) < from {
			kept = kept || s.Kept
			first = min(first, int64(s.SegmentFrom))
		}
	}
	if !kept {
		return from, false, nil
	}
	// The log's start may be an offset without a record, so its first record tells.
	before, err := a.Reach(ctx, read, 0)
	if err != nil {
		return from, false, err
	}
	return max(read, first), before == read && first < a.LogStart, nil
}

// otherLog reports that the topic was deleted and made again: nothing can be counted
// beyond the end of the log it was counted in.
func otherLog(a consumer.Assignment, last sink.Segment) bool {
	return int64(last.UptoOffset) >= a.LogEnd
}

// setForward is how far the committed offset is ahead of the counts when somebody must
// have moved it. Less is also what transactions' markers and aborted records leave.
const setForward = 1000

// segmentStart is the offset at which counting starts: the start of the segment that
// covers the committed offset when counting it again gives what the ledger holds, else
// the first offset that is not counted yet. segments are those of the committed
// offset's block and of all later ones, ascending.
//
// It does not give what the ledger holds when
//   - the segment or a later one was counted under other rules,
//   - a later one starts inside its block: this count would run on into it,
//   - the log no longer has the segment's first records,
//   - the segment ends far before the committed offset: somebody set that forward, and
//     what lies between was never judged.
//
// Where it does, counting on in the same segment is better than starting another: an
// evicted owner that stores its ledger late then writes the same cells and not others.
// For the same reason a new segment starts at the first offset that is not counted even
// when the committed one is a few markers further: every owner finds the same one.
// An offset set back before everything that is counted is read from there all the same.
func segmentStart(a consumer.Assignment, hash string, last sink.Segment, segments []sink.Segment) int64 {
	block := uint64(a.Committed) / sampler.BlockSize
	covering := -1
	for i, s := range segments {
		if s.Block == block && int64(s.SegmentFrom) <= a.Committed {
			covering = i
		}
	}
	next := uncounted(a, last, segments)
	if last.ChecksHash != hash {
		return next
	}
	if covering < 0 {
		return a.Committed
	}
	for i, s := range segments[covering:] {
		if s.ChecksHash != hash || i > 0 && s.SegmentFrom != s.Block*sampler.BlockSize {
			return next
		}
	}
	from := int64(segments[covering].SegmentFrom)
	if from < a.LogStart || setAhead(a, last, segments) {
		return next
	}
	return from
}

// uncounted is the first offset that is not counted yet.
func uncounted(a consumer.Assignment, last sink.Segment, segments []sink.Segment) int64 {
	if setAhead(a, last, segments) || otherLog(a, last) {
		return a.Committed
	}
	return lastCounted(last, segments) + 1
}

// setAhead reports that the committed offset was set forward by somebody.
func setAhead(a consumer.Assignment, last sink.Segment, segments []sink.Segment) bool {
	return lastCounted(last, segments)+setForward < a.Committed
}

// lastCounted is the last offset that is counted.
func lastCounted(last sink.Segment, segments []sink.Segment) int64 {
	n := int64(last.UptoOffset)
	for _, s := range segments {
		n = max(n, int64(s.UptoOffset))
	}
	return n
}
