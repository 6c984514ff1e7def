package testkit

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// `make kafka` runs this one for what it leaves behind.
func TestTheJarsOfABrokerAreKept(t *testing.T) {
	dir, err := kafkaJars(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"kafka_2.13-*.jar", "kafka-tools-[0-9]*.jar", "slf4j-simple-*.jar"} {
		if found, err := filepath.Glob(filepath.Join(dir, name)); err != nil || len(found) != 1 {
			t.Errorf("%s: %v, %v, want one", name, found, err)
		}
	}
}

// A record that was acknowledged survives the broker's SIGKILL, on the same address.
func TestARealBrokerComesBackWithItsDisk(t *testing.T) {
	began := time.Now()
	k := Kafka(t, KafkaOptions{Topics: []string{"calls"}, Partitions: 2})
	t.Logf("ready with a topic in %s", time.Since(began).Round(10*time.Millisecond))
	client, err := kgo.NewClient(kgo.SeedBrokers(k.Addrs()...), kgo.ConsumeTopics("calls"))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if err := client.ProduceSync(t.Context(), &kgo.Record{Topic: "calls", Value: []byte("kept")}).FirstErr(); err != nil {
		t.Fatal(err)
	}
	if leader := k.Leader(t, "calls", 1); leader != 1 {
		t.Errorf("broker %d leads, there is only 1", leader)
	}
	k.Kill(1)
	began = time.Now()
	k.Start(t, 1)
	t.Logf("back after SIGKILL in %s", time.Since(began).Round(10*time.Millisecond))
	fetches := client.PollFetches(t.Context())
	if err := fetches.Err(); err != nil {
		t.Fatal(err)
	}
	if records := fetches.Records(); len(records) != 1 || string(records[0].Value) != "kept" {
		t.Errorf("%d records, want the one that was written", len(records))
	}
}
