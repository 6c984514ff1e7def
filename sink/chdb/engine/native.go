package engine

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	chproto "github.com/ClickHouse/ch-go/proto"
	"github.com/ClickHouse/clickhouse-go/v2/lib/column"
	"github.com/ClickHouse/clickhouse-go/v2/lib/proto"
)

// maxBlockRows is far above what the engine puts into a block; more means that
// the bytes were read wrongly.
const maxBlockRows = 1_000_000_000

// blockInfo is what a revision above 0 writes before a block: not an overflow
// block, no bucket.
var blockInfo = []byte{1, 0, 2, 0xff, 0xff, 0xff, 0xff, 0}

// A rewrite is the answer to one query in the revision the client asked for:
// pieces of the engine's own bytes with the few added bytes between them.
type rewrite struct {
	pieces [][]byte
	size   int
}

func (r *rewrite) add(p []byte) {
	r.pieces = append(r.pieces, p)
	r.size += len(p)
}

func (r *rewrite) writeTo(w io.Writer) error {
	for _, p := range r.pieces {
		if _, err := w.Write(p); err != nil {
			return err
		}
	}
	return nil
}

// rewriteNative turns Native blocks of revision 0, which is all the library
// writes, into blocks of revision. The revisions differ in the block info and
// one flag per column; the column data are the same bytes. Each column is
// decoded by the driver's own code, only to learn where it ends, so an answer
// that leaves here is one the driver can read. All of it is read before the
// first byte is sent: a failure is an error, not a short answer.
func rewriteNative(data []byte, revision uint64) (*rewrite, error) {
	out := &rewrite{}
	if revision == 0 {
		out.add(data)
		return out, nil
	}
	src := newOffsets(data)
	sc := column.ServerContext{Revision: revision, VersionMajor: 26, VersionMinor: 7, Timezone: time.UTC}
	for block := 0; src.offset() < len(data); block++ {
		if err := rewriteBlock(out, src, &sc, revision); err != nil {
			if errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return nil, fmt.Errorf("native block %d, offset %d of %d: %w", block, src.offset(), len(data), err)
		}
	}
	return out, nil
}

func rewriteBlock(out *rewrite, src *offsets, sc *column.ServerContext, revision uint64) error {
	columns, err := src.reader.UVarInt()
	if err != nil {
		return err
	}
	rows, err := src.reader.UVarInt()
	if err != nil {
		return err
	}
	if rows > maxBlockRows {
		return fmt.Errorf("%d rows in one block", rows)
	}
	head := slices.Clone(blockInfo)
	head = binary.AppendUvarint(head, columns)
	head = binary.AppendUvarint(head, rows)
	out.add(head)
	flag := revision >= proto.DBMS_MIN_REVISION_WITH_CUSTOM_SERIALIZATION
	for range columns {
		start := src.offset()
		name, err := src.reader.Str()
		if err != nil {
			return err
		}
		columnType, err := src.reader.Str()
		if err != nil {
			return err
		}
		out.add(src.data[start:src.offset()])
		if flag {
			out.add([]byte{0}) // ordinary serialization
		}
		if rows == 0 {
			continue
		}
		start = src.offset()
		if err := skipColumn(src.reader, name, columnType, int(rows), sc); err != nil {
			return fmt.Errorf("column %s %s: %w", name, columnType, err)
		}
		out.add(src.data[start:src.offset()])
	}
	return nil
}

func skipColumn(r *chproto.Reader, name, columnType string, rows int, sc *column.ServerContext) error {
	col, err := column.Type(columnType).Column(name, sc)
	if err != nil {
		return err
	}
	if prefixed, ok := col.(column.CustomSerialization); ok {
		if err := prefixed.ReadStatePrefix(r); err != nil {
			return err
		}
	}
	return col.Decode(r, rows)
}

// offsets reads data through the driver's reader and knows how far it got: what
// was taken from data less what still lies in the buffer.
type offsets struct {
	data   []byte
	taken  int
	buffer *bufio.Reader
	reader *chproto.Reader
}

func newOffsets(data []byte) *offsets {
	o := &offsets{data: data}
	// The driver's reader takes a buffered reader of at least 128 KiB as its own, so
	// there is one buffer to subtract and not two.
	o.buffer = bufio.NewReaderSize(o, 1<<18)
	o.reader = chproto.NewReader(o.buffer)
	return o
}

// Read is the buffer's source.
func (o *offsets) Read(p []byte) (int, error) {
	if o.taken == len(o.data) {
		return 0, io.EOF
	}
	n := copy(p, o.data[o.taken:])
	o.taken += n
	return n, nil
}

func (o *offsets) offset() int { return o.taken - o.buffer.Buffered() }
