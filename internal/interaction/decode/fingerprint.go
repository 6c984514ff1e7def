package decode

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"
)

// version stands for this package's code in every Fingerprint. Raise it whenever some
// record would be read differently than before: as other interactions, with other ids,
// times, texts, labels or statuses, or with another reason. Counts of before and after
// then stand in segments of their own, and no record is counted by both.
const version = 2

// Fingerprint identifies how this decoder reads records: its code, its limits and its
// sources' settings. Two with the same one make the same interactions of the same log.
// Secrets are not in it, nor is the order of the sources.
func (d *Decoder) Fingerprint() string { return d.fingerprint }

// fingerprint reads the schema files for what they say: another schema under the same
// path reads records differently. What a .proto imports is not followed.
func fingerprint(cfg Config, sources []Source) (string, error) {
	type settings struct {
		Topic, Format, Unit, ToolResults, Registry string
		Turn, Snapshots                            string
		Rejudge                                    bool
		JoinWait                                   time.Duration
		Fields                                     map[string]string
		Schemas                                    map[string]string // id -> digest of the file
	}
	all := make([]settings, 0, len(sources))
	for _, s := range sources {
		r := settings{
			Topic: s.Topic, Fields: s.Fields, JoinWait: s.JoinWait, Registry: s.SchemaRegistry.Address,
			Format: cmp.Or(s.Format, auto), Unit: cmp.Or(s.Unit, Units()[0]), ToolResults: cmp.Or(s.ToolResults, ToolResults()[0]),
			Turn: cmp.Or(s.Turn, Turns()[0]), Snapshots: cmp.Or(s.Snapshots, Snapshots()[0]), Rejudge: s.Rejudge,
			Schemas: make(map[string]string, len(s.SchemaRegistry.Files)),
		}
		if len(r.Fields) == 0 {
			r.Fields = nil // no map and an empty one are the same
		}
		for id, path := range s.SchemaRegistry.Files {
			b, err := os.ReadFile(path)
			if err != nil {
				return "", fmt.Errorf("source %s: schema_registry: files: %s: %w", s.Topic, id, err)
			}
			r.Schemas[strings.ToLower(id)] = digest(b)
		}
		all = append(all, r)
	}
	slices.SortFunc(all, func(a, b settings) int { return cmp.Compare(a.Topic, b.Topic) })
	b, err := json.Marshal(struct {
		Version int
		Config  Config
		Sources []settings
	}{version, cfg, all})
	if err != nil {
		return "", fmt.Errorf("fingerprint of the decoder: %w", err)
	}
	return digest(b), nil
}

func digest(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:8])
}
