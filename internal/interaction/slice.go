package interaction

import (
	"crypto/sha256"
	"encoding/binary"
	"maps"
	"slices"
	"strings"
)

// MaxDimensionBytes bounds one dimension value; longer ones are cut at a rune.
const MaxDimensionBytes = 128

// Slice is a set of dimension values. The empty slice is all of the traffic.
type Slice map[string]string

// ID is a hash of the ordered names and values: the same slice, the same id, in
// every process and table. The empty slice is 0.
func (s Slice) ID() uint64 {
	if len(s) == 0 {
		return 0
	}
	h := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(s)) {
		for _, part := range []string{name, s[name]} {
			var n [4]byte
			binary.BigEndian.PutUint32(n[:], uint32(len(part)))
			h.Write(n[:])
			h.Write([]byte(part))
		}
	}
	return binary.BigEndian.Uint64(h.Sum(nil))
}

// String is the slice as people and strata write it: `app=support,model=m1`, names
// in order; `all` for the empty slice.
func (s Slice) String() string {
	if len(s) == 0 {
		return "all"
	}
	parts := make([]string, 0, len(s))
	for _, name := range slices.Sorted(maps.Keys(s)) {
		parts = append(parts, name+"="+s[name])
	}
	return strings.Join(parts, ",")
}

// Contains reports whether full lies inside s: every value s fixes is full's.
func (s Slice) Contains(full Slice) bool {
	for name, value := range s {
		if full[name] != value {
			return false
		}
	}
	return true
}

// Dimension returns the value of a configured dimension: a field of the record by
// its name, else an attribute. It is cut to MaxDimensionBytes.
func (it *Interaction) Dimension(name string) string {
	v := it.dimension(name)
	if len(v) <= MaxDimensionBytes {
		return v
	}
	cut := MaxDimensionBytes
	for cut > 0 && v[cut]&0xC0 == 0x80 {
		cut--
	}
	return v[:cut]
}

func (it *Interaction) dimension(name string) string {
	switch name {
	case "app":
		return it.App
	case "model":
		return it.Model
	case "route":
		return it.Route
	case "prompt_version":
		return it.PromptVersion
	case "tenant":
		return it.Tenant
	case "environment":
		return it.Environment
	}
	return it.Attributes[name]
}

// Slice returns the interaction's full slice over the configured dimensions.
func (it *Interaction) Slice(dimensions []string) Slice {
	s := make(Slice, len(dimensions))
	for _, name := range dimensions {
		s[name] = it.Dimension(name)
	}
	return s
}
