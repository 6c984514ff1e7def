package consumer

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"

	"github.com/segmentio/kafka-go/compress"
)

// batchHead is the length of a record batch up to its records (format v2).
const batchHead = 61

// The bits of a batch's attributes.
const (
	attrCompression   = 0x07
	attrLogAppendTime = 0x08
	attrTransactional = 0x10
	attrControl       = 0x20
)

// A batch is one record batch as it lies in the log. Its last offset counts even when
// compaction has emptied it: reading goes on behind it.
type batch struct {
	base       int64
	last       int64 // offset of its last record, present or not
	attributes int16
	firstTime  int64 // Unix milliseconds
	maxTime    int64
	producer   int64
	count      int
	body       []byte // the records, perhaps compressed
}

func (b *batch) control() bool       { return b.attributes&attrControl != 0 }
func (b *batch) transactional() bool { return b.attributes&attrTransactional != 0 }

// cutBatch reads the batch at the head of b and returns what follows it. A batch that
// the broker cut off at the end of its answer is nil without an error.
func cutBatch(b []byte, table *crc32.Table) (*batch, []byte, error) {
	if len(b) < 17 {
		return nil, nil, nil
	}
	base := int64(binary.BigEndian.Uint64(b))
	length := int(int32(binary.BigEndian.Uint32(b[8:])))
	if magic := b[16]; magic != 2 {
		return nil, nil, &CorruptError{Offset: base, Reason: fmt.Sprintf(
			"message format %d: only format 2 (Kafka 0.11 and later) is read", magic)}
	}
	if length < batchHead-12 {
		return nil, nil, &CorruptError{Offset: base, Reason: fmt.Sprintf("batch of %d bytes", length)}
	}
	if length > len(b)-12 {
		return nil, nil, nil
	}
	raw, rest := b[:12+length], b[12+length:]
	// the checksum covers everything behind itself: base offset and leader epoch
	// before it are written by the broker
	if got, want := crc32.Checksum(raw[21:], table), binary.BigEndian.Uint32(raw[17:]); got != want {
		return nil, nil, &CorruptError{Offset: base, Reason: fmt.Sprintf("checksum %08x, stored %08x", got, want)}
	}
	c := cursor{b: raw[21:]}
	out := &batch{base: base}
	out.attributes = c.int16()
	out.last = base + int64(c.int32())
	out.firstTime = c.int64()
	out.maxTime = c.int64()
	out.producer = c.int64()
	c.int16() // producer epoch
	c.int32() // base sequence
	out.count = int(c.int32())
	out.body = c.b
	if c.err != nil || out.last < base || out.count < 0 {
		return nil, nil, &CorruptError{Offset: base, Reason: "batch head"}
	}
	return out, rest, nil
}

// open returns the batch's records, decompressed into scratch when they are
// compressed. limit bounds what a compressed batch may grow to.
func (b *batch) open(scratch []byte, limit int) ([]byte, error) {
	kind := b.attributes & attrCompression
	if kind == 0 {
		return b.body, nil
	}
	codec := compress.Compression(kind).Codec()
	if codec == nil {
		return nil, &CorruptError{Offset: b.base, Reason: fmt.Sprintf("compression %d", kind)}
	}
	r := codec.NewReader(bytes.NewReader(b.body))
	defer r.Close()
	out, err := readUpTo(r, scratch[:0], limit)
	if err != nil {
		return nil, &CorruptError{Offset: b.base, Reason: "decompression: " + err.Error()}
	}
	return out, nil
}

// readUpTo reads all of r behind dst, and fails past limit bytes: a few compressed
// kilobytes may hold gigabytes.
func readUpTo(r io.Reader, dst []byte, limit int) ([]byte, error) {
	for {
		if len(dst) == cap(dst) {
			if len(dst) >= limit {
				var probe [1]byte
				if n, err := r.Read(probe[:]); n == 0 && err == io.EOF {
					return dst, nil
				}
				return nil, fmt.Errorf("more than %d bytes", limit)
			}
			grown := make([]byte, len(dst), min(max(2*cap(dst), 64<<10), limit))
			copy(grown, dst)
			dst = grown
		}
		n, err := r.Read(dst[len(dst):cap(dst)])
		dst = dst[:len(dst)+n]
		switch {
		case err == io.EOF:
			return dst, nil
		case err != nil:
			return nil, err
		}
	}
}

// wireRecord is a record as it lies in a batch. Its bytes are the batch's.
type wireRecord struct {
	offset     int64
	time       int64 // Unix milliseconds
	key, value []byte
	headers    cursor // not yet read
	nHeaders   int
}

// next reads one record of an opened batch.
func (b *batch) next(c *cursor) (wireRecord, error) {
	body := cursor{b: c.varbytes()}
	body.int8() // attributes, unused
	r := wireRecord{time: b.firstTime + body.varint()}
	r.offset = b.base + body.varint()
	r.key = body.varbytes()
	r.value = body.varbytes()
	r.nHeaders = int(body.varint())
	r.headers = body
	if b.attributes&attrLogAppendTime != 0 {
		r.time = b.maxTime
	}
	if c.err != nil || body.err != nil || r.nHeaders < 0 || r.nHeaders > len(body.b) || r.offset < b.base || r.offset > b.last {
		return r, &CorruptError{Offset: b.base, Reason: "record"}
	}
	return r, nil
}

// aborts reports whether a control batch is the end of an aborted transaction.
func (b *batch) aborts() (bool, error) {
	c := cursor{b: b.body}
	r, err := b.next(&c)
	if err != nil {
		return false, err
	}
	key := cursor{b: r.key}
	key.int16() // version
	kind := key.int16()
	if key.err != nil {
		return false, &CorruptError{Offset: b.base, Reason: "control record"}
	}
	return kind == 0, nil
}
