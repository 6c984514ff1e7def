package consumer

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/segmentio/kafka-go/protocol"
	"github.com/segmentio/kafka-go/protocol/fetch"
)

// The versions of Fetch that are read: isolation needs 4, the library writes up to 11.
const (
	fetchFirst = 4
	fetchLast  = 11
)

// A fetchExchange is a fetch of one partition that reads its answer itself. The
// library routes it to the leader and writes the request; its own reader drops what
// is needed here (a batch's last offset, the aborted list) and copies every record.
type fetchExchange struct {
	fetch.Request
	clientID string
	buffer   []byte // reused for the answer when it is large enough
	limit    int    // bytes of an answer, at most
	version  int16
}

// fetchAnswer is the answer for one partition. records alias buffer.
type fetchAnswer struct {
	buffer   []byte
	present  bool  // the partition is in the answer
	code     int16 // the partition's error
	end      int64 // last stable offset or high watermark, as isolation asks
	high     int64
	stable   int64
	logStart int64
	aborted  []abortedTxn
	records  []byte
}

func (*fetchAnswer) ApiKey() protocol.ApiKey { return protocol.Fetch }

// Required takes part in the library's exchange: it is asked on the connection that
// will be used, with the versions both sides speak.
func (f *fetchExchange) Required(versions map[protocol.ApiKey]int16) bool {
	f.version = versions[protocol.Fetch]
	return true
}

var errOldBroker = errors.New("the broker is older than Kafka 0.11")

// RawExchange writes the request and reads the answer into one buffer.
func (f *fetchExchange) RawExchange(rw io.ReadWriter) (protocol.Message, error) {
	if f.version < fetchFirst || f.version > fetchLast {
		return nil, fmt.Errorf("fetch version %d: %w", f.version, errOldBroker)
	}
	const correlation = 1 // one request at a time per connection
	if err := protocol.WriteRequest(rw, f.version, correlation, f.clientID, &f.Request); err != nil {
		return nil, err
	}
	var head [8]byte
	if _, err := io.ReadFull(rw, head[:]); err != nil {
		return nil, err
	}
	size := int(int32(binary.BigEndian.Uint32(head[:]))) - 4
	if size < 0 || size > f.limit {
		return nil, fmt.Errorf("fetch answer of %d bytes: want at most %d", size, f.limit)
	}
	buffer := f.buffer
	if cap(buffer) < size {
		buffer = make([]byte, size)
	}
	buffer = buffer[:size]
	if _, err := io.ReadFull(rw, buffer); err != nil {
		return nil, err
	}
	return parseFetch(buffer, f.version, f.Request.Topics[0].Topic, f.Request.Topics[0].Partitions[0].Partition)
}

// parseFetch reads a fetch answer of versions 4 to 11 and keeps one partition of it.
func parseFetch(buffer []byte, version int16, topic string, partition int32) (*fetchAnswer, error) {
	c := cursor{b: buffer}
	out := &fetchAnswer{buffer: buffer}
	c.int32() // throttle time: the broker has waited already
	if version >= 7 {
		out.code = c.int16()
		c.int32() // session
	}
	for topics := c.int32(); topics > 0 && c.err == nil; topics-- {
		name := c.take(int(c.int16()))
		for partitions := c.int32(); partitions > 0 && c.err == nil; partitions-- {
			id := c.int32()
			code := c.int16()
			high, stable, start := c.int64(), c.int64(), int64(-1)
			if version >= 5 {
				start = c.int64()
			}
			var aborted []abortedTxn
			for n := c.int32(); n > 0 && c.err == nil; n-- {
				aborted = append(aborted, abortedTxn{producer: c.int64(), first: c.int64()})
			}
			if version >= 11 {
				c.int32() // preferred replica
			}
			var records []byte
			if n := c.int32(); n > 0 {
				records = c.take(int(n))
			}
			if id == partition && string(name) == topic {
				out.present, out.code = true, code
				out.high, out.stable, out.logStart = high, stable, start
				out.aborted, out.records = aborted, records
			}
		}
	}
	if c.err != nil {
		return nil, fmt.Errorf("fetch answer: %w", c.err)
	}
	return out, nil
}
