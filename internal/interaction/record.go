package interaction

import "time"

// Record is one record of a Kafka topic as the consumer hands it over. A nil Value
// is a tombstone; an empty one is not. The bytes belong to the record's fetch: copy
// what outlives the handling of it.
type Record struct {
	Topic     string
	Partition int
	Offset    int64
	Time      time.Time // the log's timestamp, UTC
	Key       []byte
	Value     []byte
	Headers   []Header
}

// Header is one Kafka record header. Keys may repeat: the last one wins.
type Header struct {
	Key   string
	Value []byte
}

// Bytes is what the record counts against a byte bound.
func (r Record) Bytes() int64 {
	n := len(r.Key) + len(r.Value) + 64
	for _, h := range r.Headers {
		n += len(h.Key) + len(h.Value)
	}
	return int64(n)
}

// Header returns the last value of the header key, and whether there is one.
func (r Record) Header(key string) ([]byte, bool) {
	for i := len(r.Headers) - 1; i >= 0; i-- {
		if r.Headers[i].Key == key {
			return r.Headers[i].Value, true
		}
	}
	return nil, false
}
