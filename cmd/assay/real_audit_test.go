package main

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// coordinates are where a record lies.
type coordinates struct {
	partition uint32
	offset    uint64
}

// A log is what another client library finds on a topic.
type logged struct {
	ids  map[coordinates]string // of flat records
	ends map[int32]int64        // of all partitions, markers included
}

// readLog reads a topic from its start to its end, without the records of aborted
// transactions.
func readLog(t *testing.T, brokers []string, topic string) logged {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(brokers...), kgo.ConsumeTopics(topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.KeepControlRecords(), kgo.FetchMaxWait(200*time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	out := logged{ids: make(map[coordinates]string), ends: logEnds(t, client, topic)}
	left := make(map[int32]bool)
	for p, end := range out.ends {
		if end > 0 {
			left[p] = true
		}
	}
	for len(left) > 0 {
		fetches := client.PollFetches(t.Context())
		if err := fetches.Err(); err != nil {
			t.Fatal(err)
		}
		for _, r := range fetches.Records() {
			if r.Offset == out.ends[r.Partition]-1 {
				delete(left, r.Partition)
			}
			if r.Attrs.IsControl() {
				continue
			}
			var body struct {
				ID string `json:"id"`
			}
			if err := json.Unmarshal(r.Value, &body); err != nil {
				t.Fatalf("offset %d: %v", r.Offset, err)
			}
			out.ids[coordinates{uint32(r.Partition), uint64(r.Offset)}] = body.ID
		}
	}
	return out
}

func logEnds(t *testing.T, client *kgo.Client, topic string) map[int32]int64 {
	t.Helper()
	meta := kmsg.NewPtrMetadataRequest()
	mt := kmsg.NewMetadataRequestTopic()
	mt.Topic = &topic
	meta.Topics = append(meta.Topics, mt)
	found, err := meta.RequestWith(t.Context(), client)
	if err != nil {
		t.Fatal(err)
	}
	req := kmsg.NewPtrListOffsetsRequest()
	rt := kmsg.NewListOffsetsRequestTopic()
	rt.Topic = topic
	for _, p := range found.Topics[0].Partitions {
		rp := kmsg.NewListOffsetsRequestTopicPartition()
		rp.Partition, rp.Timestamp = p.Partition, -1
		rt.Partitions = append(rt.Partitions, rp)
	}
	req.Topics = append(req.Topics, rt)
	out := make(map[int32]int64)
	for _, shard := range client.RequestSharded(t.Context(), req) {
		if shard.Err != nil {
			t.Fatal(shard.Err)
		}
		for _, p := range shard.Resp.(*kmsg.ListOffsetsResponse).Topics[0].Partitions {
			if err := kerr.ErrorForCode(p.ErrorCode); err != nil {
				t.Fatalf("end of %s/%d: %v", topic, p.Partition, err)
			}
			out[p.Partition] = p.Offset
		}
	}
	return out
}

// committedOffsets are a group's, as the broker holds them.
func committedOffsets(t *testing.T, brokers []string, group, topic string, partitions int) map[int32]int64 {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(brokers...))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	req := kmsg.NewPtrOffsetFetchRequest()
	req.Group = group
	rt := kmsg.NewOffsetFetchRequestTopic()
	rt.Topic = topic
	for p := range partitions {
		rt.Partitions = append(rt.Partitions, int32(p))
	}
	req.Topics = append(req.Topics, rt)
	rg := kmsg.NewOffsetFetchRequestGroup()
	rg.Group = group
	gt := kmsg.NewOffsetFetchRequestGroupTopic()
	gt.Topic, gt.Partitions = topic, rt.Partitions
	rg.Topics = append(rg.Topics, gt)
	req.Groups = append(req.Groups, rg)
	res, err := req.RequestWith(t.Context(), client)
	if err != nil {
		t.Fatal(err)
	}
	out := make(map[int32]int64)
	for _, g := range res.Groups {
		for _, topic := range g.Topics {
			for _, p := range topic.Partitions {
				out[p.Partition] = p.Offset
			}
		}
	}
	return out
}

// A found is what an audit counted.
type found struct {
	logged, selected, rows, lost, doubled int
	raw                                   uint64 // stored, before rows of one key became one
}

// audit holds what a finished run left against the log: one row for every record that
// the sampling hash selects and none for others, each at its record's place; the
// ledger's counts, also by the minute; offsets committed to the end.
func audit(t *testing.T, conn clickhouse.Conn, brokers []string, group, topic, check string, rate float64) found {
	t.Helper()
	log := readLog(t, brokers, topic)
	out := found{logged: len(log.ids)}
	want := make(map[coordinates]bool)
	for at, id := range log.ids {
		if hashU(check, id) < rate {
			want[at] = true
		}
	}
	out.selected = len(want)

	rows, err := conn.Query(t.Context(), "SELECT interaction_id, kafka_partition, kafka_offset, toString(status) FROM evaluations FINAL WHERE check = ?", check)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	seen := make(map[coordinates]bool)
	for rows.Next() {
		var id, status string
		var at coordinates
		if err := rows.Scan(&id, &at.partition, &at.offset, &status); err != nil {
			t.Fatal(err)
		}
		switch {
		case seen[at]:
			out.doubled++
			t.Errorf("%s at %+v is doubled", id, at)
		case log.ids[at] != id:
			t.Errorf("%s at %+v was judged, the log has %q there", id, at, log.ids[at])
		case !want[at]:
			t.Errorf("%s at %+v was judged and not selected", id, at)
		case status != "ok":
			t.Errorf("%s at %+v has status %s", id, at, status)
		}
		seen[at] = true
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	out.rows = len(seen)
	for at := range want {
		if !seen[at] {
			if out.lost++; out.lost <= 5 {
				t.Errorf("%s at %+v is lost", log.ids[at], at)
			}
		}
	}
	if err := conn.QueryRow(t.Context(), "SELECT count() FROM evaluations").Scan(&out.raw); err != nil {
		t.Fatal(err)
	}

	auditLedger(t, conn, check, out)
	committed := committedOffsets(t, brokers, group, topic, len(log.ends))
	if fmt.Sprint(committed) != fmt.Sprint(log.ends) {
		t.Errorf("committed %v, the log ends at %v", committed, log.ends)
	}
	return out
}

func auditLedger(t *testing.T, conn clickhouse.Conn, check string, want found) {
	t.Helper()
	count := func(sql string, args ...any) (n uint64) {
		t.Helper()
		if err := conn.QueryRow(t.Context(), sql, args...).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	for _, c := range []struct {
		decision, column, check string
		want                    int
	}{
		{"interaction", "n_interactions", "", want.logged},
		{"selected", "n_selected", check, want.selected},
		{"sampled_out", "n_sampled_out", check, want.logged - want.selected},
	} {
		if n := count("SELECT sum(n) FROM population FINAL WHERE check = ? AND decision = ?", c.check, c.decision); n != uint64(c.want) {
			t.Errorf("the ledger has %d %s, want %d", n, c.decision, c.want)
		}
		if n := count("SELECT sum("+c.column+") FROM population_1m FINAL WHERE check = ?", c.check); n != uint64(c.want) {
			t.Errorf("the minutes have %d %s, want %d", n, c.decision, c.want)
		}
	}
}
