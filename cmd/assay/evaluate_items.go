package main

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"

	"assay/evaluators"
	"assay/internal/interaction"
	"assay/internal/interaction/decode"
)

// fileItem is a line that can be judged.
type fileItem struct {
	line int
	id   string
	item evaluators.Item
	hash string // of all that an evaluator sees
}

func newFileItem(line int, it *interaction.Interaction) (fileItem, error) {
	item := evaluators.ItemOf(it)
	seen, err := json.Marshal(item)
	if err != nil {
		return fileItem{}, fmt.Errorf("line %d: %w", line, err)
	}
	sum := sha256.Sum256(seen)
	return fileItem{line, it.ID, item, hex.EncodeToString(sum[:8])}, nil
}

// sameFile reports whether both names are of one file.
func sameFile(a, b string) bool {
	x, errX := os.Stat(a)
	y, errY := os.Stat(b)
	return errX == nil && errY == nil && os.SameFile(x, y)
}

// readItems reads the file with the stream's decoder, so that a line means here what it
// means on a topic.
func readItems(env environment, path string, o evaluateOptions) (items []fileItem, bad []decode.Bad, err error) {
	in, err := openInput(path)
	if err != nil {
		return nil, nil, err
	}
	defer in.Close()
	const topic = "file"
	d, err := decode.New(env.Decode, []decode.Source{{Topic: topic, Format: "auto", Fields: o.fields}})
	if err != nil {
		return nil, nil, errUsage{fmt.Errorf("--map: %w", err)}
	}
	lines := bufio.NewScanner(in)
	lines.Buffer(make([]byte, 64<<10), int(env.Decode.MaxRecord))
	now := time.Now().UTC()
	n := 0
	for lines.Scan() {
		n++
		line := lines.Bytes()
		if strings.TrimSpace(string(line)) == "" {
			continue
		}
		res := d.Decode(interaction.Record{Topic: topic, Offset: int64(n), Time: now, Value: append([]byte(nil), line...)})
		for i := range res.Interactions {
			it := &res.Interactions[i]
			if o.criteria != "" {
				it.Criteria = &o.criteria
			}
			item, err := newFileItem(n, it)
			if err != nil {
				return nil, nil, err
			}
			items = append(items, item)
		}
		for _, b := range res.Bad {
			bad = append(bad, decode.Bad{Element: n - 1, Reason: b.Reason, Error: b.Error})
		}
		for _, reason := range res.Skips {
			bad = append(bad, decode.Bad{Element: n - 1, Reason: reason, Error: "nothing to judge in this line"})
		}
	}
	if err := lines.Err(); err != nil {
		return nil, nil, fmt.Errorf("%s:%d: %w", path, n+1, err)
	}
	return items, bad, nil
}
