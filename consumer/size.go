package consumer

import (
	"fmt"
	"strconv"
	"strings"
)

// Size is a number of bytes as people write it: 1048576, 512KiB, 8MiB, 1GiB.
type Size int64

// UnmarshalText reads a plain number of bytes or one with a binary unit.
func (s *Size) UnmarshalText(text []byte) error {
	number, shift := strings.TrimSpace(string(text)), 0
	for unit, bits := range map[string]int{"KiB": 10, "MiB": 20, "GiB": 30} {
		if head, ok := strings.CutSuffix(number, unit); ok {
			number, shift = strings.TrimSpace(head), bits
			break
		}
	}
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil || n < 0 || n > 1<<40>>shift {
		return fmt.Errorf("%q: want a number of bytes such as 1048576, 512KiB, 8MiB or 1GiB", text)
	}
	*s = Size(n << shift)
	return nil
}

// String writes the largest unit that divides the size.
func (s Size) String() string {
	for _, u := range []struct {
		bits int
		name string
	}{{30, "GiB"}, {20, "MiB"}, {10, "KiB"}} {
		if s != 0 && s%(1<<u.bits) == 0 {
			return strconv.FormatInt(int64(s)>>u.bits, 10) + u.name
		}
	}
	return strconv.FormatInt(int64(s), 10)
}
