package sampler

import (
	"crypto/sha256"
	"encoding/binary"
)

// U maps an id to [0, 1): the top 53 bits of SHA-256(salt, 0x00, id). An interaction
// is in the sample iff U < pi, strictly, so rates 0 and 1 are exact. Checks with one
// salt share their sample; whatever must be independent of it takes another salt.
func U(salt, id string) float64 {
	// Ids fit nearly always; a hash.Hash would escape to the heap for every record.
	var short [512]byte
	b := append(short[:0], salt...)
	b = append(b, 0)
	b = append(b, id...)
	sum := sha256.Sum256(b)
	return float64(binary.BigEndian.Uint64(sum[:8])>>11) / (1 << 53)
}
