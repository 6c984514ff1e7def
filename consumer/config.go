package consumer

import (
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/alecthomas/units"
)

// KafkaConfig is the ASSAY_KAFKA_ part of the environment: where Kafka is and how the
// group behaves.
type KafkaConfig struct {
	Brokers []string `env:"BROKERS" help:"bootstrap brokers, host:port, separated by commas"`
	Group   string   `env:"GROUP, default=assay" help:"consumer group id; not shared with other programs"`

	Start       string `env:"START, default=latest" help:"where a group without commits starts: latest, or earliest (every record of the retention is judged and paid for)"`
	OnBeyondEnd string `env:"ON_OFFSET_BEYOND_END, default=fail" help:"when the log was replaced (topic recreated): fail stops the partition, reset reads the new log from its start"`
	Isolation   string `env:"ISOLATION, default=read_committed" help:"read_committed leaves out aborted transactions, read_uncommitted reads them"`

	SessionTimeout   time.Duration `env:"SESSION_TIMEOUT, default=20s" help:"without a heartbeat for so long a worker loses its partitions"`
	RebalanceTimeout time.Duration `env:"REBALANCE_TIMEOUT, default=60s" help:"how long the group waits for its members to rejoin"`
	Heartbeat        time.Duration `env:"HEARTBEAT, default=2s" help:"time between heartbeats"`
	Timeout          time.Duration `env:"TIMEOUT, default=10s" help:"one request to a broker, at most"`

	MaxWait  time.Duration    `env:"MAX_WAIT, default=500ms" help:"how long a broker may hold a fetch that finds nothing"`
	MinBytes int              `env:"MIN_BYTES, default=1" help:"a fetch waits for so many bytes, at most MAX_WAIT"`
	MaxBytes units.Base2Bytes `env:"MAX_BYTES, default=8MiB" help:"bytes of one fetch of a partition"`

	TLS     bool   `env:"TLS" help:"encrypt connections to the brokers"`
	TLSCA   string `env:"TLS_CA" help:"file with the authorities that signed the brokers' certificates, PEM; the system's when empty"`
	TLSCert string `env:"TLS_CERT" help:"file with the client's certificate, PEM"`
	TLSKey  string `env:"TLS_KEY" help:"file with the client's key, PEM"`

	SASL         string `env:"SASL" help:"plain, scram-sha-256 or scram-sha-512; none when empty"`
	Username     string `env:"USERNAME" help:"name for SASL"`
	Password     string `env:"PASSWORD" help:"password for SASL"`
	PasswordFile string `env:"PASSWORD_FILE" help:"file that holds the password for SASL"`
}

// Config is the ASSAY_CONSUMER_ part of the environment: how much may be in flight
// and how a partition is given up.
type Config struct {
	Window      int              `env:"WINDOW, default=1024" help:"unresolved records of one partition, at most; without those that wait for their other half"`
	WindowBytes units.Base2Bytes `env:"WINDOW_BYTES, default=32MiB" help:"bytes of unresolved records of one partition"`
	Total       int              `env:"TOTAL, default=8192" help:"unresolved records of the process, at most"`
	TotalBytes  units.Base2Bytes `env:"TOTAL_BYTES, default=256MiB" help:"bytes of unresolved records of the process"`

	CommitEvery time.Duration `env:"COMMIT_EVERY, default=2s" help:"time between commits of watermarks that moved"`
	DrainJudge  time.Duration `env:"DRAIN_JUDGE, default=10s" help:"at a rebalance or the end: how long running judgements may take to finish"`
	DrainFlush  time.Duration `env:"DRAIN_FLUSH, default=5s" help:"at a rebalance or the end: how long rows and ledger may take to be stored"`
	StuckAfter  time.Duration `env:"STUCK_AFTER, default=10m" help:"not ready when a partition with work has not moved for so long; after twice that the process ends"`
}

// DeadLetterConfig is the ASSAY_DEAD_LETTER_ part of the environment.
type DeadLetterConfig struct {
	MaxRatio float64 `env:"MAX_RATIO, default=0.20" help:"share of dead letters among 1000 records (at least 20) above which a partition stops"`
}

// Validate reports every fault by the name of its variable.
func (k KafkaConfig) Validate() error {
	var errs []error
	bad := func(name string, value any, want string) {
		errs = append(errs, fmt.Errorf("ASSAY_KAFKA_%s=%v: want %s", name, value, want))
	}
	if len(k.Brokers) == 0 {
		bad("BROKERS", "", "one or more host:port, separated by commas")
	}
	for _, b := range k.Brokers {
		if !validAddress(b) {
			bad("BROKERS", b, "host:port, separated by commas")
		}
	}
	if k.Group == "" || len(k.Group) > 249 {
		bad("GROUP", k.Group, "1 to 249 characters")
	}
	oneOf := func(name, value string, options ...string) {
		for _, o := range options {
			if value == o {
				return
			}
		}
		bad(name, value, strings.Join(options, " or "))
	}
	oneOf("START", k.Start, startLatest, startEarliest)
	oneOf("ON_OFFSET_BEYOND_END", k.OnBeyondEnd, beyondFail, beyondReset)
	oneOf("ISOLATION", k.Isolation, isolationCommitted, isolationUncommitted)
	within := func(name string, value, low, high time.Duration) {
		if value < low || value > high {
			bad(name, value, fmt.Sprintf("%s to %s", low, high))
		}
	}
	within("SESSION_TIMEOUT", k.SessionTimeout, time.Second, 30*time.Minute)
	within("REBALANCE_TIMEOUT", k.RebalanceTimeout, time.Second, 30*time.Minute)
	within("HEARTBEAT", k.Heartbeat, 10*time.Millisecond, time.Minute)
	within("TIMEOUT", k.Timeout, 100*time.Millisecond, 10*time.Minute)
	within("MAX_WAIT", k.MaxWait, 10*time.Millisecond, time.Minute)
	if 3*k.Heartbeat > k.SessionTimeout {
		bad("HEARTBEAT", k.Heartbeat, fmt.Sprintf("at most a third of ASSAY_KAFKA_SESSION_TIMEOUT=%s", k.SessionTimeout))
	}
	if k.Timeout >= k.SessionTimeout {
		bad("TIMEOUT", k.Timeout, fmt.Sprintf("less than ASSAY_KAFKA_SESSION_TIMEOUT=%s", k.SessionTimeout))
	}
	if k.MaxWait >= k.Timeout {
		bad("MAX_WAIT", k.MaxWait, fmt.Sprintf("less than ASSAY_KAFKA_TIMEOUT=%s", k.Timeout))
	}
	if k.MinBytes < 1 || units.Base2Bytes(k.MinBytes) > k.MaxBytes {
		bad("MIN_BYTES", k.MinBytes, fmt.Sprintf("1 to ASSAY_KAFKA_MAX_BYTES=%s", k.MaxBytes))
	}
	if k.MaxBytes < 1<<10 || k.MaxBytes > 1<<30 {
		bad("MAX_BYTES", k.MaxBytes, "1KiB to 1GiB")
	}
	errs = append(errs, k.securityFaults()...)
	return errors.Join(errs...)
}

// Validate reports every fault by the name of its variable.
func (c Config) Validate() error {
	var errs []error
	bad := func(name string, value any, want string) {
		errs = append(errs, fmt.Errorf("ASSAY_CONSUMER_%s=%v: want %s", name, value, want))
	}
	if c.Window < 1 || c.Window > 1_000_000 {
		bad("WINDOW", c.Window, "1 to 1000000")
	}
	if c.Total < 1 || c.Total > 10_000_000 {
		bad("TOTAL", c.Total, "1 to 10000000")
	}
	if c.WindowBytes < 1<<10 {
		bad("WINDOW_BYTES", c.WindowBytes, "at least 1KiB")
	}
	if c.TotalBytes < 1<<10 {
		bad("TOTAL_BYTES", c.TotalBytes, "at least 1KiB")
	}
	for _, d := range []struct {
		name      string
		value     time.Duration
		low, high time.Duration
	}{
		{"COMMIT_EVERY", c.CommitEvery, 10 * time.Millisecond, time.Minute},
		{"DRAIN_JUDGE", c.DrainJudge, 0, time.Hour},
		{"DRAIN_FLUSH", c.DrainFlush, 10 * time.Millisecond, time.Hour},
		{"STUCK_AFTER", c.StuckAfter, time.Second, 24 * time.Hour},
	} {
		if d.value < d.low || d.value > d.high {
			bad(d.name, d.value, fmt.Sprintf("%s to %s", d.low, d.high))
		}
	}
	return errors.Join(errs...)
}

// Validate reports every fault by the name of its variable.
func (d DeadLetterConfig) Validate() error {
	if !(d.MaxRatio > 0 && d.MaxRatio <= 1) {
		return fmt.Errorf("ASSAY_DEAD_LETTER_MAX_RATIO=%v: want more than 0 and at most 1", d.MaxRatio)
	}
	return nil
}

// commitBudget is what a last commit may take at the end of a drain.
const commitBudget = 2 * time.Second

// FitsIn refuses a drain that outlasts the session: heartbeats stop when a generation
// ends, so a longer drain would be evicted, its commit refused and its work redone.
// The end itself is only seen at the next heartbeat.
func (c Config) FitsIn(k KafkaConfig) error {
	room := min(k.SessionTimeout, k.RebalanceTimeout) - k.Heartbeat - commitBudget
	if c.DrainJudge+c.DrainFlush <= room {
		return nil
	}
	return fmt.Errorf("ASSAY_CONSUMER_DRAIN_JUDGE=%s + ASSAY_CONSUMER_DRAIN_FLUSH=%s: want at most %s together "+
		"(the smaller of ASSAY_KAFKA_SESSION_TIMEOUT=%s and ASSAY_KAFKA_REBALANCE_TIMEOUT=%s, less ASSAY_KAFKA_HEARTBEAT=%s and %s for the commit)",
		c.DrainJudge, c.DrainFlush, max(room, 0), k.SessionTimeout, k.RebalanceTimeout, k.Heartbeat, commitBudget)
}

// validAddress accepts host:port. The library panics in a goroutine of its own on a
// list in one string, so nothing else may reach it.
func validAddress(s string) bool {
	host, port, err := net.SplitHostPort(s)
	if err != nil || host == "" || strings.ContainsAny(host, ", /\t") {
		return false
	}
	n, err := strconv.ParseUint(port, 10, 16)
	return err == nil && n > 0
}

// The values of KafkaConfig's choices.
const (
	startLatest          = "latest"
	startEarliest        = "earliest"
	beyondFail           = "fail"
	beyondReset          = "reset"
	isolationCommitted   = "read_committed"
	isolationUncommitted = "read_uncommitted"
)
