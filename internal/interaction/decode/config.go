package decode

import (
	"errors"
	"fmt"
	"time"

	"github.com/alecthomas/units"
)

// Config is the ASSAY_DECODE_ part of the environment: bounds on what one record may
// cost. What is over a bound is counted and named, never silently cut short.
type Config struct {
	MaxRecord      units.Base2Bytes `env:"MAX_RECORD, default=8MiB" help:"largest record value that is read, bytes with a unit"`
	MaxInflated    units.Base2Bytes `env:"MAX_INFLATED, default=16MiB" help:"largest record value after decompression, bytes with a unit"`
	MaxDepth       int              `env:"MAX_DEPTH, default=256" help:"JSON nesting, levels"`
	MaxNested      int              `env:"MAX_NESTED, default=3" help:"JSON inside JSON strings, levels"`
	MaxElements    int              `env:"MAX_ELEMENTS, default=10000" help:"interactions in one record"`
	MaxTextRunes   int              `env:"MAX_TEXT_RUNES, default=1000000" help:"length of one text of an interaction, runes; longer ones are cut and flagged"`
	MaxMessages    int              `env:"MAX_MESSAGES, default=200" help:"turns of history that are kept, the latest"`
	MaxDocuments   int              `env:"MAX_DOCUMENTS, default=200" help:"context documents that are kept, the first"`
	MaxAttributes  int              `env:"MAX_ATTRIBUTES, default=64" help:"attributes that are kept, keys"`
	AttributeBytes units.Base2Bytes `env:"ATTRIBUTE_BYTES, default=16KiB" help:"attributes that are kept, bytes with a unit"`
	MaxEvents      int              `env:"MAX_EVENTS, default=100000" help:"events of one logged stream"`
	SchemaWait     time.Duration    `env:"SCHEMA_WAIT, default=30s" help:"how long a record waits for a schema registry that does not answer, duration"`
	Full           bool             `env:"FULL, default=false" help:"read every record in full, also those that no check selects: several times slower, for when the fast path is in doubt, true or false"`
	MaxHeld        int              `env:"MAX_HELD, default=10000" help:"interactions of one partition that wait for their other half; such records take no room in ASSAY_CONSUMER_WINDOW"`
	MaxHeldBytes   units.Base2Bytes `env:"MAX_HELD_BYTES, default=64MiB" help:"what waits for its other half in one partition, bytes with a unit"`
}

// depthCap is the depth the scanner's bit stack holds.
const depthCap = 1024

// Validate reports every setting that is out of bounds.
func (c Config) Validate() error {
	var errs []error
	within := func(name string, v, lo, hi int64) {
		if v < lo || v > hi {
			errs = append(errs, fmt.Errorf("ASSAY_DECODE_%s=%d: want %d to %d", name, v, lo, hi))
		}
	}
	// Offsets into a record and its inflated form are held in an int; 1 GiB is far
	// above what a broker takes.
	within("MAX_RECORD", int64(c.MaxRecord), 1<<10, 1<<30)
	within("MAX_INFLATED", int64(c.MaxInflated), 1<<10, 1<<30)
	within("MAX_DEPTH", int64(c.MaxDepth), 8, depthCap)
	within("MAX_NESTED", int64(c.MaxNested), 0, 8)
	within("MAX_ELEMENTS", int64(c.MaxElements), 1, 65535)
	within("MAX_TEXT_RUNES", int64(c.MaxTextRunes), 100, 1<<30)
	within("MAX_MESSAGES", int64(c.MaxMessages), 0, 100_000)
	within("MAX_DOCUMENTS", int64(c.MaxDocuments), 0, 100_000)
	within("MAX_ATTRIBUTES", int64(c.MaxAttributes), 0, 10_000)
	within("ATTRIBUTE_BYTES", int64(c.AttributeBytes), 0, 16<<20)
	within("MAX_EVENTS", int64(c.MaxEvents), 1, 10_000_000)
	within("MAX_HELD", int64(c.MaxHeld), 0, 1_000_000)
	within("MAX_HELD_BYTES", int64(c.MaxHeldBytes), 0, 1<<34)
	if c.SchemaWait <= 0 || c.SchemaWait > time.Hour {
		errs = append(errs, fmt.Errorf("ASSAY_DECODE_SCHEMA_WAIT=%s: want above 0 and at most 1h", c.SchemaWait))
	}
	return errors.Join(errs...)
}

// Defaults are the limits that apply where nothing is configured.
func Defaults() Config {
	return Config{
		MaxRecord: 8 << 20, MaxInflated: 16 << 20, MaxDepth: 256, MaxNested: 3, MaxElements: 10_000,
		MaxTextRunes: 1_000_000, MaxMessages: 200, MaxDocuments: 200, MaxAttributes: 64,
		AttributeBytes: 16 << 10, MaxEvents: 100_000, SchemaWait: 30 * time.Second,
		MaxHeld: 10_000, MaxHeldBytes: 64 << 20,
	}
}
