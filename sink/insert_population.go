package sink

import (
	"errors"
	"fmt"
	"time"
)

func populationTable() table[Population] {
	type P = Population
	decisions := set("filtered", "sampled_out", "not_applicable", "dead_lettered", "selected", "no_interaction", "interaction")
	return table[P]{
		name: "population",
		columns: []column[P]{
			dictionary("kafka_topic", func(r *P) string { return r.Topic }),
			plain("kafka_partition", "UInt32", func(r *P) uint32 { return r.Partition }),
			plain("block", "UInt64", func(r *P) uint64 { return r.Block }),
			plain("segment_from", "UInt64", func(r *P) uint64 { return r.SegmentFrom }),
			second("minute", func(r *P) time.Time { return r.Minute }),
			dictionary("check", func(r *P) string { return r.Check }),
			dictionary("check_version", func(r *P) string { return r.CheckVersion }),
			dictionary("stratum", func(r *P) string { return r.Stratum }),
			plain("decision", "Enum8('filtered' = 1, 'sampled_out' = 2, 'not_applicable' = 3, 'dead_lettered' = 4, 'selected' = 5, 'no_interaction' = 6, 'interaction' = 7)", func(r *P) string { return r.Decision }),
			dictionary("reason", func(r *P) string { return r.Reason }),
			plain("pi", "Float64", func(r *P) float64 { return r.Pi }),
			plain("epoch", "UInt32", func(r *P) uint32 { return r.Epoch }),
			plain("n", "UInt64", func(r *P) uint64 { return r.N }),
			plain("upto_offset", "UInt64", func(r *P) uint64 { return r.UptoOffset }),
			second("log_time", func(r *P) time.Time { return r.LogTime }),
			dictionary("checks_hash", func(r *P) string { return r.ChecksHash }),
		},
		validate: func(r *P) error {
			switch {
			case !(r.Pi >= 0 && r.Pi <= 1):
				return fmt.Errorf("pi %v: want 0 to 1", r.Pi)
			case r.Minute.Unix()%60 != 0:
				return fmt.Errorf("minute %s is not a whole one", r.Minute.UTC().Format(time.RFC3339))
			case r.UptoOffset < r.SegmentFrom:
				return fmt.Errorf("counted up to offset %d from %d", r.UptoOffset, r.SegmentFrom)
			}
			return errors.Join(oneOf("decision", r.Decision, decisions), storable("minute", r.Minute))
		},
		part: func(r *P) int64 { return month(r.Minute) },
		size: func(r *P) int { return 128 },
		label: func(r *P) string {
			return fmt.Sprintf("%s/%d block %d segment %d minute %s check %s decision %s", r.Topic, r.Partition, r.Block, r.SegmentFrom, r.Minute.UTC().Format(time.RFC3339), r.Check, r.Decision)
		},
	}
}
