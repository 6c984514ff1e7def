package consumer

import (
	"encoding/binary"
	"errors"
)

var errShort = errors.New("ends too early")

// A cursor reads Kafka's wire types from a byte slice. The first read past the end
// makes every later one fail too, so a caller asks for the error once.
type cursor struct {
	b   []byte
	err error
}

func (c *cursor) take(n int) []byte {
	if c.err != nil || n < 0 || n > len(c.b) {
		c.err = errShort
		return nil
	}
	head := c.b[:n:n]
	c.b = c.b[n:]
	return head
}

func (c *cursor) int8() int8 {
	if b := c.take(1); b != nil {
		return int8(b[0])
	}
	return 0
}

func (c *cursor) int16() int16 {
	if b := c.take(2); b != nil {
		return int16(binary.BigEndian.Uint16(b))
	}
	return 0
}

func (c *cursor) int32() int32 {
	if b := c.take(4); b != nil {
		return int32(binary.BigEndian.Uint32(b))
	}
	return 0
}

func (c *cursor) int64() int64 {
	if b := c.take(8); b != nil {
		return int64(binary.BigEndian.Uint64(b))
	}
	return 0
}

// varint reads the zigzag form that records use.
func (c *cursor) varint() int64 {
	if c.err != nil {
		return 0
	}
	v, n := binary.Varint(c.b)
	if n <= 0 {
		c.err = errShort
		return 0
	}
	c.b = c.b[n:]
	return v
}

// varbytes reads bytes behind their length; a length of -1 is null, which is not the
// same as empty.
func (c *cursor) varbytes() []byte {
	n := c.varint()
	if n == -1 {
		return nil
	}
	return c.take(int(n))
}
