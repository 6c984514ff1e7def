package consumer

import (
	"strings"
	"testing"
	"time"

	"github.com/sethvargo/go-envconfig"
)

func defaults(t *testing.T) (k KafkaConfig, c Config, d DeadLetterConfig) {
	t.Helper()
	env := envconfig.MapLookuper(map[string]string{"BROKERS": "a:9092,b:9093"})
	for _, target := range []any{&k, &c, &d} {
		if err := envconfig.ProcessWith(t.Context(), &envconfig.Config{Target: target, Lookuper: env}); err != nil {
			t.Fatal(err)
		}
	}
	return k, c, d
}

func TestTheDefaultsAreValid(t *testing.T) {
	k, c, d := defaults(t)
	for _, err := range []error{k.Validate(), c.Validate(), d.Validate(), c.FitsIn(k)} {
		if err != nil {
			t.Error(err)
		}
	}
	if len(k.Brokers) != 2 || k.MaxBytes != 8<<20 || c.WindowBytes != 32<<20 || c.TotalBytes != 256<<20 || d.MaxRatio != .2 {
		t.Errorf("%+v %+v %+v", k, c, d)
	}
}

func TestEveryFaultOfAConfigurationIsNamed(t *testing.T) {
	f := func(change func(*KafkaConfig, *Config), want ...string) {
		t.Helper()
		k, c, _ := defaults(t)
		change(&k, &c)
		var text strings.Builder
		for _, err := range []error{k.Validate(), c.Validate(), c.FitsIn(k)} {
			if err != nil {
				text.WriteString(err.Error() + "\n")
			}
		}
		for _, name := range want {
			if !strings.Contains(text.String(), name) {
				t.Errorf("%q is not in:\n%s", name, text.String())
			}
		}
		if lines := strings.Count(text.String(), "\n"); lines != len(want) {
			t.Errorf("%d faults, want %d:\n%s", lines, len(want), text.String())
		}
	}
	f(func(k *KafkaConfig, _ *Config) { k.Brokers = nil }, "ASSAY_KAFKA_BROKERS")
	// one string with two addresses panics in a goroutine of the library
	f(func(k *KafkaConfig, _ *Config) { k.Brokers = []string{"a:1,b:2"} }, "ASSAY_KAFKA_BROKERS=a:1,b:2")
	f(func(k *KafkaConfig, _ *Config) { k.Brokers = []string{"kafka://a:1", "a", ":1", "a:0", "a:99999"} },
		"kafka://a:1", "BROKERS=a:", "BROKERS=:1:", "BROKERS=a:0", "BROKERS=a:99999")
	f(func(k *KafkaConfig, c *Config) { k.Start, c.Window = "first", 0 }, "ASSAY_KAFKA_START=first: want latest or earliest", "ASSAY_CONSUMER_WINDOW=0")
	f(func(k *KafkaConfig, c *Config) { c.DrainJudge = time.Minute }, "ASSAY_CONSUMER_DRAIN_JUDGE=1m0s + ASSAY_CONSUMER_DRAIN_FLUSH=5s: want at most 16s together")
	f(func(k *KafkaConfig, c *Config) { c.DrainJudge = 12 * time.Second }, "want at most 16s")
	f(func(k *KafkaConfig, c *Config) { c.DrainJudge = 11 * time.Second }) // 16 s: just fits
	f(func(k *KafkaConfig, c *Config) { k.SASL, k.Username = "plain", "u" }, "ASSAY_KAFKA_PASSWORD and")
	f(func(k *KafkaConfig, c *Config) { k.SASL = "gssapi" }, "ASSAY_KAFKA_SASL=gssapi")
	f(func(k *KafkaConfig, c *Config) { k.TLSCert = "x" }, "ASSAY_KAFKA_TLS=true", "want both or neither")
}
