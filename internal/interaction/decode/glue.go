package decode

import (
	"bytes"
	"io"
	"strconv"

	"github.com/klauspost/compress/zlib"
)

// glueFramed reads AWS Glue's prefix: 03, whether zlib follows, and the schema
// version's UUID. Glue's registry speaks AWS's protocol only, so its schemas come from
// files.
func (r *record) glueFramed(b []byte) bool {
	if len(b) < 18 || b[0] != 0x03 || b[1] != 0 && b[1] != 5 {
		return false
	}
	r.wrap("glue")
	id, rest := guid(b[2:18]), b[18:]
	if b[1] == 5 {
		limit := int64(r.d.cfg.MaxInflated) - r.inflated
		z, err := zlib.NewReader(bytes.NewReader(rest))
		if err != nil {
			r.bad(r.take(), badGzip, "zlib: %v", err)
			return true
		}
		if rest, err = io.ReadAll(io.LimitReader(z, limit+1)); err != nil {
			r.bad(r.take(), badGzip, "zlib: %v", err)
			return true
		}
		if int64(len(rest)) > limit {
			r.bad(r.take(), inflatedTooBig, "over %s after decompression", r.d.cfg.MaxInflated)
			return true
		}
		r.inflated += int64(len(rest))
	}
	r.bySchema(id, rest)
	return true
}

func decimal(n uint64) string { return strconv.FormatUint(n, 10) }
