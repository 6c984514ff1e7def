package embedded

import (
	"crypto/sha256"
	"encoding/binary"
	"strings"
)

// HeldOut reports whether a question is in the tenth that training never sees, not
// even for word frequencies. Agreement with people may be stated on these only.
// Case and spacing do not move a question from one side to the other.
func HeldOut(question string) bool {
	sum := sha256.Sum256([]byte("held-out\x00" + strings.Join(strings.Fields(strings.ToLower(question)), " ")))
	return binary.BigEndian.Uint64(sum[:8])%10 == 0
}
