package sink

import (
	"context"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
)

// An AnswerKey is a judgement's identity within one partition of the log.
type AnswerKey struct {
	Offset         uint64
	Element        uint16
	Check, Version string
	Repeat         uint8
}

// Answered returns which judgements of offsets at or above from exist already, so that
// a restart does not ask again. Shed and error rows are no answers. insertedSince
// bounds the scan: many partitions share a part, so offsets alone skip little.
func (db *DB) Answered(ctx context.Context, topic string, partition uint32, from uint64, insertedSince time.Time) (map[AnswerKey]struct{}, error) {
	// Any answered version of a row counts, so the status may be asked before LIMIT BY.
	keys, err := read(ctx, db, query{"recovery_answered", scan, `
		SELECT kafka_offset, element, check, check_version, repeat
		FROM {{db}}.evaluations
		WHERE kafka_topic = {topic:String} AND kafka_partition = {partition:UInt32} AND kafka_offset >= {from:UInt64}
		  AND inserted_at >= {since:DateTime('UTC')} AND status NOT IN ('shed', 'error')
		LIMIT 1 BY kafka_offset, element, check, check_version, repeat`},
		func(scan func(...any) error) (k AnswerKey, err error) {
			return k, scan(&k.Offset, &k.Element, &k.Check, &k.Version, &k.Repeat)
		},
		clickhouse.Named("topic", topic), clickhouse.Named("partition", partition), clickhouse.Named("from", from), atSecond("since", insertedSince))
	if err != nil {
		return nil, err
	}
	found := make(map[AnswerKey]struct{}, len(keys))
	for _, k := range keys {
		found[k] = struct{}{}
	}
	return found, nil
}

// A Segment is the part of a block of the ledger that was counted under one rules hash.
type Segment struct {
	Block, SegmentFrom, UptoOffset uint64
	ChecksHash                     string
	InsertedAt                     time.Time // newest of its rows
	Kept                           bool      // it counts records of which something is kept for later ones
}

// ReasonKept marks the counts of records of which something is kept for later ones: halves
// of interactions, and facts that several share.
const ReasonKept = "kept"

// Segments returns all segments of blocks from fromBlock on, ascending by block and
// first offset.
func (db *DB) Segments(ctx context.Context, topic string, partition uint32, fromBlock uint64) ([]Segment, error) {
	return read(ctx, db, query{"recovery_segments", scan, `
		SELECT block, segment_from, max(upto_offset), argMax(checks_hash, upto_offset), max(inserted_at), max(check = '' AND reason = '` + ReasonKept + `')
		FROM {{db}}.population
		WHERE kafka_topic = {topic:String} AND kafka_partition = {partition:UInt32} AND block >= {block:UInt64}
		GROUP BY block, segment_from ORDER BY block, segment_from`},
		func(scan func(...any) error) (s Segment, err error) {
			var kept uint8
			err = scan(&s.Block, &s.SegmentFrom, &s.UptoOffset, &s.ChecksHash, &s.InsertedAt, &kept)
			s.Kept = kept == 1
			return s, err
		},
		clickhouse.Named("topic", topic), clickhouse.Named("partition", partition), clickhouse.Named("block", fromBlock))
}

// LastSegment returns where counting stands for a partition; false when nothing was
// ever counted.
func (db *DB) LastSegment(ctx context.Context, topic string, partition uint32) (Segment, bool, error) {
	// The first step reads one granule from the end of the key, whatever the ledger's age.
	blocks, err := read(ctx, db, query{"recovery_last_block", page, `
		SELECT block FROM {{db}}.population
		WHERE kafka_topic = {topic:String} AND kafka_partition = {partition:UInt32}
		ORDER BY kafka_topic DESC, kafka_partition DESC, block DESC LIMIT 1`},
		func(scan func(...any) error) (block uint64, err error) { return block, scan(&block) },
		clickhouse.Named("topic", topic), clickhouse.Named("partition", partition))
	if err != nil || len(blocks) == 0 {
		return Segment{}, false, err
	}
	segments, err := db.Segments(ctx, topic, partition, blocks[0])
	if err != nil || len(segments) == 0 {
		return Segment{}, false, err
	}
	return segments[len(segments)-1], true, nil
}
