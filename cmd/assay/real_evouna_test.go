package main

import (
	"fmt"
	"testing"

	"github.com/ClickHouse/clickhouse-go/v2"

	"assay/internal/interaction"
	"assay/internal/testkit"
)

// storedTables are what a run leaves that is a function of the log and the checks file:
// without the columns that say when, by whom and how fast it was computed. Where the
// same answer was logged twice, the one that is judged first, and not found in the
// cache, depends on which partition was faster. How far the ledger had counted when a
// minute was last written depends on the clock; the counts do not.
var storedTables = map[string]string{
	"evaluations":    `* EXCEPT (evaluated_at, inserted_at, worker, latency_ms, attempts) REPLACE (replaceOne(detail, '"cached":true,', '') AS detail)`,
	"interactions":   "* EXCEPT (stored_at)",
	"population":     "* EXCEPT (inserted_at, upto_offset, log_time)",
	"population_1m":  "* EXCEPT (computed_at)",
	"quality_1m":     "* EXCEPT (computed_at, latency)",
	"check_versions": "* EXCEPT (first_seen, updated_at)",
	"dead_letters":   "* EXCEPT (inserted_at)",
}

// sameOnARealBroker judges the same log on Apache Kafka: the same decisions, the same
// ledger, the same rows as on the in-process one.
func sameOnARealBroker(t *testing.T, records []interaction.Record, answers []evounaAnswer, inProcess map[float64]judged) {
	t.Helper()
	kafka := testkit.Kafka(t, testkit.KafkaOptions{Partitions: 4, Topics: []string{evounaTopic}})
	produceAll(t, kafka.Addrs(), evounaTopic, records)
	for rate, want := range inProcess {
		got := runEvouna(t, kafka.Addrs(), rate, len(answers))
		checkDecisions(t, got, answers, rate)
		for table, columns := range storedTables {
			compareRows(t, fmt.Sprintf("rate %g: %s", rate, table), want.conn, got.conn, table, columns)
		}
	}
}

func compareRows(t *testing.T, what string, want, got clickhouse.Conn, table, columns string) {
	t.Helper()
	a, b := tableRows(t, want, table, columns), tableRows(t, got, table, columns)
	differ := 0
	for row, n := range a {
		if b[row] != n {
			if differ++; differ <= 3 {
				t.Errorf("%s: %d times in process, %d times on the broker: %s", what, n, b[row], row)
			}
		}
	}
	for row, n := range b {
		if a[row] == 0 {
			if differ++; differ <= 6 {
				t.Errorf("%s: on the broker only, %d times: %s", what, n, row)
			}
		}
	}
	t.Logf("%s: %d rows, %d differ", what, len(a), differ)
	if len(a) == 0 && table != "dead_letters" {
		t.Errorf("%s: nothing was compared", what)
	}
}

// tableRows are a table's rows, and how often each is there.
func tableRows(t *testing.T, conn clickhouse.Conn, table, columns string) map[string]int {
	t.Helper()
	rows, err := conn.Query(t.Context(), "SELECT formatRow('JSONEachRow', "+columns+") FROM "+table+" FINAL")
	if err != nil {
		t.Fatalf("%s: %v", table, err)
	}
	defer rows.Close()
	out := make(map[string]int)
	for rows.Next() {
		var row string
		if err := rows.Scan(&row); err != nil {
			t.Fatal(err)
		}
		out[row]++
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return out
}
