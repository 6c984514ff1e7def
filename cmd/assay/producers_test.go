package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"assay/internal/testkit"
)

// wrote is a call that a foreign program has written to a topic.
type wrote struct {
	ID     string `json:"id"`
	Time   int64  `json:"time"` // Unix milliseconds
	Input  string `json:"input"`
	Output string `json:"output"`
	Tenant string `json:"tenant"`
}

func callsOf(kind string, n int) []wrote {
	out := make([]wrote, n)
	start := time.Now().Add(-time.Hour).UnixMilli()
	for i := range out {
		out[i] = wrote{
			ID: fmt.Sprintf("%s-%03d", kind, i), Time: start + int64(i), Tenant: []string{"north", "south"}[i%2],
			Input:  fmt.Sprintf("Où est mon \"colis\" %d?\nMerci 🙏", i),
			Output: fmt.Sprintf("Votre colis %d est à Lyon.", i),
		}
	}
	return out
}

const producersChecks = `
version: 1
dimensions: [tenant]
sources:
  - { topic: from.kcat, fields: { tenant: "header:tenant", session_id: key } }
  - { topic: from.avro, fields: { tenant: metadata.tenant }, schema_registry: "%s" }
  - { topic: from.otlp, format: otlp_proto, fields: { tenant: span.parcels.tenant } }
checks:
  - { name: short, evaluator: length, max: 100, sample: { rate: 1 } }
privacy: { store_text: full, redact: [] }
`

// kcat, the Python client with Confluent's Avro serializer and a registry, and the bytes
// of an OpenTelemetry exporter: what they write to a real broker stands in ClickHouse
// as it was written.
func TestForeignProducersAreReadAsTheyWrote(t *testing.T) {
	inParallel(t)
	python := producersPython(t)
	kcat, err := exec.LookPath("kcat")
	if err != nil {
		t.Fatal("kcat is not on PATH: `make producers` installs it")
	}
	kafka := testkit.Kafka(t, testkit.KafkaOptions{Partitions: 2, Topics: []string{"from.kcat", "from.avro", "from.otlp"}})
	registry := newSchemaRegistry(t)
	broker := kafka.Addrs()[0]

	want := map[string][]wrote{"from.kcat": callsOf("k", 200), "from.avro": callsOf("a", 200), "from.otlp": callsOf("o", 60)}
	var all sync.WaitGroup
	all.Go(func() {
		for _, tenant := range []string{"north", "south"} {
			var lines bytes.Buffer
			for _, c := range want["from.kcat"] {
				if c.Tenant == tenant {
					body, err := json.Marshal(map[string]any{"id": c.ID, "time": c.Time, "input": c.Input, "output": c.Output})
					if err != nil {
						t.Error(err)
						return
					}
					fmt.Fprintf(&lines, "key-%s|%s\n", tenant, body)
				}
			}
			produce(t, &lines, kcat, "-P", "-b", broker, "-t", "from.kcat", "-z", "gzip", "-K", "|", "-H", "tenant="+tenant, "-X", "acks=all")
		}
	})
	script := filepath.Join("testdata", "producers", "produce.py")
	all.Go(func() {
		produce(t, linesOf(t, want["from.avro"]), python, script, "avro", broker, "from.avro", registry.URL)
	})
	all.Go(func() {
		ids := strings.Fields(produce(t, linesOf(t, want["from.otlp"]), python, script, "otlp", broker, "from.otlp"))
		if len(ids) != len(want["from.otlp"]) {
			t.Errorf("%d spans written, want %d", len(ids), len(want["from.otlp"]))
			return
		}
		for i, id := range ids {
			want["from.otlp"][i].ID = id
		}
	})
	all.Wait()
	if t.Failed() {
		return
	}

	engine := testkit.ClickHouse(t)
	conn := engine.Conn(t)
	a := testkit.StartAssay(t, testkit.AssayOptions{
		Checks: fmt.Sprintf(producersChecks, registry.URL), Kafka: kafka.Addrs(), Engine: engine,
		Env: map[string]string{"ASSAY_KAFKA_GROUP": "foreign", "ASSAY_KAFKA_START": "earliest", "ASSAY_SINK_BATCH_AGE": "20ms", "ASSAY_CONSUMER_COMMIT_EVERY": "500ms"},
	})
	for topic, calls := range want {
		testkit.Eventually(t, time.Minute, topic+" is read", func() error {
			var counted, judged uint64
			if err := conn.QueryRow(t.Context(), "SELECT sum(n) FROM population FINAL WHERE kafka_topic = $1 AND decision = 'selected'", topic).Scan(&counted); err != nil {
				return err
			}
			if err := conn.QueryRow(t.Context(), "SELECT count() FROM evaluations FINAL WHERE kafka_topic = $1 AND status = 'ok'", topic).Scan(&judged); err != nil {
				return err
			}
			if judged != uint64(len(calls)) || counted != judged {
				return fmt.Errorf("%d counted, %d judged of %d", counted, judged, len(calls))
			}
			return nil
		})
	}
	stopAll(t, a)

	for topic, calls := range want {
		rows, err := conn.Query(t.Context(), "SELECT interaction_id, input, output, tenant, session_id, input_tokens FROM interactions FINAL WHERE kafka_topic = $1", topic)
		if err != nil {
			t.Fatal(err)
		}
		var got []wrote
		for rows.Next() {
			var (
				w       wrote
				session string
				tokens  uint32
			)
			if err := rows.Scan(&w.ID, &w.Input, &w.Output, &w.Tenant, &session, &tokens); err != nil {
				t.Fatal(err)
			}
			if topic == "from.kcat" && session != "key-"+w.Tenant || topic == "from.otlp" && int(tokens) != len([]rune(w.Input)) {
				t.Errorf("%s: %+v, key %q, %d tokens", topic, w, session, tokens)
			}
			got = append(got, w)
		}
		if err := rows.Err(); err != nil {
			t.Fatal(err)
		}
		for i := range calls {
			calls[i].Time = 0
		}
		byID := func(a, b wrote) int { return strings.Compare(a.ID, b.ID) }
		slices.SortFunc(got, byID)
		slices.SortFunc(calls, byID)
		if !slices.Equal(got, calls) {
			t.Errorf("%s: %d rows, want the %d that were written; the first row is %+v, the first written %+v", topic, len(got), len(calls), got[:min(len(got), 1)], calls[0])
		}
	}
	if n := registry.asked(); n == 0 {
		t.Error("the registry was not asked for a schema")
	}
}

func linesOf(t *testing.T, calls []wrote) io.Reader {
	t.Helper()
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	for _, c := range calls {
		if err := enc.Encode(c); err != nil {
			t.Fatal(err)
		}
	}
	return &b
}

// produce runs a foreign program and returns what it prints. It may be called from any
// goroutine.
func produce(t *testing.T, in io.Reader, program string, args ...string) string {
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.Stdin = in
	var failed bytes.Buffer
	cmd.Stderr = &failed
	out, err := cmd.Output()
	if err != nil {
		t.Errorf("%s %s: %v\n%s", program, strings.Join(args, " "), err, failed.String())
	}
	return string(out)
}

// producersPython is the interpreter that `make producers` has set up.
func producersPython(t *testing.T) string {
	t.Helper()
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(cache, "assay-testkit", "producers")
	wanted, err := os.ReadFile(filepath.Join("testdata", "producers", "requirements.txt"))
	if err != nil {
		t.Fatal(err)
	}
	installed, err := os.ReadFile(filepath.Join(dir, "requirements.txt"))
	if err == nil && !bytes.Equal(wanted, installed) {
		err = errors.New("it has other versions")
	}
	if err != nil {
		t.Fatalf("the Python clients in %s: %v; `make producers` installs them", dir, err)
	}
	return filepath.Join(dir, "bin", "python")
}

// A schemaRegistry is as much of Confluent's as a serializer and a reader need.
type schemaRegistry struct {
	*httptest.Server

	mu      sync.Mutex // guards the fields below
	schemas []string   // id - 1 -> text
	reads   int
}

const registryGUIDs = "00000000-0000-4000-8000-%012x" // of id

func newSchemaRegistry(t *testing.T) *schemaRegistry {
	t.Helper()
	r := &schemaRegistry{}
	mux := http.NewServeMux()
	// The serializer looks a schema up, and registers it when nobody has.
	known := func(w http.ResponseWriter, req *http.Request, register bool) {
		var in struct{ Schema string }
		if err := json.NewDecoder(req.Body).Decode(&in); err != nil {
			http.Error(w, err.Error(), http.StatusUnprocessableEntity)
			return
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		i := slices.Index(r.schemas, in.Schema)
		if i < 0 && register {
			i = len(r.schemas)
			r.schemas = append(r.schemas, in.Schema)
		}
		r.answer(w, i, req.PathValue("subject"))
	}
	mux.HandleFunc("POST /subjects/{subject}", func(w http.ResponseWriter, req *http.Request) { known(w, req, false) })
	mux.HandleFunc("POST /subjects/{subject}/versions", func(w http.ResponseWriter, req *http.Request) { known(w, req, true) })
	mux.HandleFunc("GET /schemas/ids/{id}", func(w http.ResponseWriter, req *http.Request) {
		var id int
		if _, err := fmt.Sscanf(req.PathValue("id"), "%d", &id); err != nil {
			id = 0
		}
		r.read(w, id)
	})
	mux.HandleFunc("GET /schemas/guids/{guid}", func(w http.ResponseWriter, req *http.Request) {
		var id int
		if _, err := fmt.Sscanf(req.PathValue("guid"), registryGUIDs, &id); err != nil {
			id = 0
		}
		r.read(w, id)
	})
	r.Server = httptest.NewServer(mux)
	t.Cleanup(r.Close)
	return r
}

func (r *schemaRegistry) read(w http.ResponseWriter, id int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.reads++
	r.answer(w, id-1, "")
}

// answer is called with the lock held.
func (r *schemaRegistry) answer(w http.ResponseWriter, i int, subject string) {
	w.Header().Set("Content-Type", "application/vnd.schemaregistry.v1+json")
	if i < 0 || i >= len(r.schemas) {
		w.WriteHeader(http.StatusNotFound)
		_, _ = io.WriteString(w, `{"error_code":40403,"message":"Schema not found"}`) // to a client that may be gone
		return
	}
	_ = json.NewEncoder(w).Encode(map[string]any{ // the same
		"subject": subject, "id": i + 1, "version": 1, "guid": fmt.Sprintf(registryGUIDs, i+1), "schemaType": "AVRO", "schema": r.schemas[i],
	})
}

func (r *schemaRegistry) asked() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.reads
}
