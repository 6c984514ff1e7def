package consumer

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"strings"
	"testing"
	"time"

	"github.com/segmentio/kafka-go/protocol"
)

// wire is one record of a batch under construction.
type wire struct {
	key, value []byte
	headers    []protocol.Header
}

// encode writes a batch as the library would, and returns it without its length.
func encode(tb testing.TB, attributes protocol.Attributes, records ...wire) []byte {
	tb.Helper()
	out := make([]protocol.Record, len(records))
	for i, r := range records {
		out[i] = protocol.Record{Time: time.UnixMilli(1000 + int64(i)), Key: protocol.NewBytes(r.key), Value: protocol.NewBytes(r.value), Headers: r.headers}
	}
	var buf bytes.Buffer
	rs := protocol.RecordSet{Version: 2, Attributes: attributes, Records: protocol.NewRecordReader(out...)}
	if _, err := rs.WriteTo(&buf); err != nil {
		tb.Fatal(err)
	}
	return buf.Bytes()[4:]
}

// edit changes a batch's head and seals it again.
func edit(b []byte, change func(b []byte)) []byte {
	b = bytes.Clone(b)
	change(b)
	binary.BigEndian.PutUint32(b[17:], crc32.Checksum(b[21:], castagnoli()))
	return b
}

func castagnoli() *crc32.Table { return crc32.MakeTable(crc32.Castagnoli) }

func setBase(offset int64) func([]byte) {
	return func(b []byte) { binary.BigEndian.PutUint64(b, uint64(offset)) }
}

func readBatch(tb testing.TB, raw []byte) (*batch, []wireRecord) {
	tb.Helper()
	b, _, err := cutBatch(raw, castagnoli())
	if err != nil || b == nil {
		tb.Fatalf("batch %v, error %v", b, err)
	}
	body, err := b.open(nil, 1<<20)
	if err != nil {
		tb.Fatal(err)
	}
	c := cursor{b: body}
	var out []wireRecord
	for range b.count {
		r, err := b.next(&c)
		if err != nil {
			tb.Fatal(err)
		}
		out = append(out, r)
	}
	return b, out
}

func TestABatchIsReadAsItWasWritten(t *testing.T) {
	for _, compression := range []protocol.Attributes{0, protocol.Gzip, protocol.Snappy, protocol.Lz4, protocol.Zstd} {
		raw := edit(encode(t, compression,
			wire{key: []byte("k"), value: []byte("v"), headers: []protocol.Header{{Key: "h", Value: []byte("x")}, {Key: "h"}}},
			wire{value: []byte{}},
			wire{key: []byte{}},
		), setBase(700))
		b, records := readBatch(t, raw)
		if b.base != 700 || b.last != 702 || len(records) != 3 {
			t.Fatalf("%s: base %d, last %d, %d records", compression, b.base, b.last, len(records))
		}
		if r := records[0]; string(r.key) != "k" || string(r.value) != "v" || r.offset != 700 || r.time != 1000 || r.nHeaders != 2 {
			t.Errorf("%s: first record %+v", compression, r)
		}
		// null and empty are not the same: one is a tombstone
		if r := records[1]; r.key != nil || r.value == nil || len(r.value) != 0 {
			t.Errorf("%s: empty value %v, null key %v", compression, r.value, r.key)
		}
		if r := records[2]; r.value != nil || r.key == nil {
			t.Errorf("%s: null value %v, empty key %v", compression, r.value, r.key)
		}
	}
}

func TestLogAppendTimeIsTheBrokersTime(t *testing.T) {
	raw := edit(encode(t, 0, wire{value: []byte("a")}, wire{value: []byte("b")}), func(b []byte) {
		b[22] |= attrLogAppendTime
		binary.BigEndian.PutUint64(b[35:], 9999)
	})
	_, records := readBatch(t, raw)
	for _, r := range records {
		if r.time != 9999 {
			t.Errorf("time %d, want the batch's 9999", r.time)
		}
	}
}

func TestABatchThatCompactionEmptiedStillHasAnEnd(t *testing.T) {
	raw := edit(encode(t, 0, wire{value: []byte("a")}), func(b []byte) {
		binary.BigEndian.PutUint64(b, 100)
		binary.BigEndian.PutUint32(b[23:], 41) // last offset delta
		binary.BigEndian.PutUint32(b[57:], 0)  // records
	})
	b, records := readBatch(t, raw)
	if b.last != 141 || len(records) != 0 {
		t.Errorf("last %d with %d records, want 141 with none", b.last, len(records))
	}
}

func TestDamageIsToldFromACutOffBatch(t *testing.T) {
	good := encode(t, 0, wire{value: []byte("abc")})
	f := func(raw []byte, reason string) {
		t.Helper()
		b, _, err := cutBatch(raw, castagnoli())
		var corrupt *CorruptError
		switch {
		case reason == "" && (err != nil || b != nil):
			t.Errorf("batch %v, error %v: want neither", b, err)
		case reason != "" && (!errors.As(err, &corrupt) || !strings.Contains(err.Error(), reason)):
			t.Errorf("error %v, want %q", err, reason)
		}
	}
	f(good[:len(good)-1], "")
	f(good[:10], "")
	f(nil, "")
	flipped := bytes.Clone(good)
	flipped[len(flipped)-2] ^= 1
	f(flipped, "checksum")
	old := bytes.Clone(good)
	old[16] = 1
	f(old, "message format 1")
	short := bytes.Clone(good)
	binary.BigEndian.PutUint32(short[8:], 3)
	f(short, "batch of 3 bytes")
}

func TestACompressedBatchMayNotGrowWithoutEnd(t *testing.T) {
	raw := encode(t, protocol.Zstd, wire{value: make([]byte, 1<<20)})
	b, _, err := cutBatch(raw, castagnoli())
	if err != nil {
		t.Fatal(err)
	}
	var corrupt *CorruptError
	if _, err := b.open(nil, 1<<19); !errors.As(err, &corrupt) {
		t.Errorf("error %v, want the bound", err)
	}
	out, err := b.open(nil, 1<<21)
	if err != nil || len(out) < 1<<20 {
		t.Errorf("%d bytes, error %v", len(out), err)
	}
}

func control(tb testing.TB, base, producer int64, kind byte) []byte {
	raw := encode(tb, 0, wire{key: []byte{0, 0, 0, kind}, value: []byte{0, 0, 0, 0, 0, 0}})
	return edit(raw, func(b []byte) {
		binary.BigEndian.PutUint64(b, uint64(base))
		b[22] |= attrControl | attrTransactional
		binary.BigEndian.PutUint64(b[43:], uint64(producer))
	})
}

func transactional(tb testing.TB, base, producer int64) []byte {
	return edit(encode(tb, 0, wire{value: []byte("x")}), func(b []byte) {
		binary.BigEndian.PutUint64(b, uint64(base))
		b[22] |= attrTransactional
		binary.BigEndian.PutUint64(b[43:], uint64(producer))
	})
}

func TestOnlyTheAbortedTransactionIsLeftOut(t *testing.T) {
	// producer 1 aborts, commits the next; producer 2 commits in between
	log := [][]byte{
		transactional(t, 10, 1), // aborted
		transactional(t, 11, 2),
		edit(encode(t, 0, wire{value: []byte("plain")}), setBase(12)),
		transactional(t, 13, 1), // aborted
		control(t, 14, 1, 0),    // abort marker
		transactional(t, 15, 1),
		control(t, 16, 2, 1), // commit markers
		control(t, 17, 1, 1),
	}
	f := newAbortFilter([]abortedTxn{{producer: 1, first: 10}})
	var kept []int64
	for _, raw := range log {
		b, _, err := cutBatch(raw, castagnoli())
		if err != nil {
			t.Fatal(err)
		}
		drop, err := f.drops(b)
		if err != nil {
			t.Fatal(err)
		}
		if !drop {
			kept = append(kept, b.base)
		}
	}
	if want := []int64{11, 12, 15}; len(kept) != 3 || kept[0] != want[0] || kept[1] != want[1] || kept[2] != want[2] {
		t.Errorf("kept %v, want %v", kept, want)
	}
}

func FuzzReadingABatch(f *testing.F) {
	f.Add(encode(f, 0, wire{key: []byte("k"), value: []byte("v"), headers: []protocol.Header{{Key: "h"}}}))
	f.Add(encode(f, protocol.Snappy, wire{value: []byte("v")}, wire{}))
	f.Add(control(f, 3, 4, 0))
	f.Fuzz(func(t *testing.T, raw []byte) {
		if len(raw) > 21 { // sealed again, so that what lies behind the checksum is read
			raw = edit(raw, func([]byte) {})
		}
		b, rest, err := cutBatch(raw, castagnoli())
		if err != nil || b == nil {
			return
		}
		if len(rest) >= len(raw) || b.last < b.base {
			t.Fatalf("%d of %d bytes left, offsets %d to %d", len(rest), len(raw), b.base, b.last)
		}
		body, err := b.open(nil, 1<<16)
		if err != nil {
			return
		}
		if len(body) > max(1<<16, len(raw)) {
			t.Fatalf("%d bytes from %d", len(body), len(raw))
		}
		c := cursor{b: body}
		for range b.count {
			r, err := b.next(&c)
			if err != nil {
				return
			}
			if r.offset < b.base || r.offset > b.last {
				t.Fatalf("offset %d outside %d to %d", r.offset, b.base, b.last)
			}
		}
	})
}

func FuzzParsingAFetchAnswer(f *testing.F) {
	f.Add([]byte{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 1, 't', 0, 0, 0, 0}, int16(11))
	f.Fuzz(func(t *testing.T, raw []byte, version int16) {
		a, err := parseFetch(raw, version, "t", 0)
		if err == nil && len(a.records) > len(raw) {
			t.Fatalf("%d bytes of records in %d", len(a.records), len(raw))
		}
	})
}
