package sink

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"
)

// PutCheckVersions stores what versions of checks are. Storing one again is harmless.
func (db *DB) PutCheckVersions(ctx context.Context, rows []CheckVersion) error {
	return put(ctx, db, checkVersionsTable(), rows)
}

// PutDetectorStates stores detectors after closed minutes.
func (db *DB) PutDetectorStates(ctx context.Context, rows []DetectorState) error {
	return put(ctx, db, detectorStatesTable(), rows)
}

// PutAlarms stores revisions of alarms; the highest of an alarm is the one that counts.
func (db *DB) PutAlarms(ctx context.Context, rows []Alarm) error {
	return put(ctx, db, alarmsTable(), rows)
}

func checkVersionsTable() table[CheckVersion] {
	type C = CheckVersion
	kinds := set("none", "boolean", "choice", "score")
	return table[C]{
		name: "check_versions",
		columns: []column[C]{
			dictionary("check", func(r *C) string { return r.Check }),
			plain("check_version", "String", func(r *C) string { return r.Version }),
			dictionary("evaluator", func(r *C) string { return r.Evaluator }),
			plain("question_kind", "Enum8('none' = 0, 'boolean' = 1, 'choice' = 2, 'score' = 3)", func(r *C) string { return r.QuestionKind }),
			each("option_names", "Array(String)", func(r *C) []string { return r.OptionNames }),
			each("option_scores", "Array(Nullable(Float32))", func(r *C) []*float32 { return r.OptionScores }),
			plain("pass_line", "Nullable(Float64)", func(r *C) *float64 { return r.PassLine }),
			each("pass_options", "Array(String)", func(r *C) []string { return r.PassOptions }),
			dictionary("judge", func(r *C) string { return r.Judge }),
			plain("judge_fingerprint", "String", func(r *C) string { return r.JudgeFingerprint }),
			plain("definition", "String", func(r *C) string { return r.Definition }),
			moment("first_seen", func(r *C) time.Time { return r.FirstSeen }),
		},
		validate: func(r *C) error {
			if r.Check == "" || r.Version == "" {
				return errors.New("check and version must not be empty")
			}
			return oneOf("question kind", r.QuestionKind, kinds)
		},
		label: func(r *C) string { return fmt.Sprintf("check %s version %s", r.Check, r.Version) },
	}
}

func detectorStatesTable() table[DetectorState] {
	type D = DetectorState
	return table[D]{
		name: "detector_state",
		columns: []column[D]{
			dictionary("check", func(r *D) string { return r.Check }),
			dictionary("check_version", func(r *D) string { return r.CheckVersion }),
			plain("slice_id", "UInt64", func(r *D) uint64 { return r.SliceID }),
			dictionaryMap("slice", "Map(LowCardinality(String), String)", func(r *D) map[string]string { return r.Slice }),
			dictionary("detector", func(r *D) string { return r.Detector }),
			second("minute", func(r *D) time.Time { return r.Minute }),
			plain("samples", "UInt64", func(r *D) uint64 { return r.Samples }),
			plain("null_rate", "Float64", func(r *D) float64 { return r.NullRate }),
			plain("tolerance", "Float64", func(r *D) float64 { return r.Tolerance }),
			plain("threshold", "Float64", func(r *D) float64 { return r.Threshold }),
			plain("w_max", "Float64", func(r *D) float64 { return r.WMax }),
			each("r", "Array(Float64)", func(r *D) []float64 { return r.R }),
			plain("e_value", "Float64", func(r *D) float64 { return r.EValue }),
			plain("latched", "UInt8", func(r *D) uint8 { return flag(r.Latched) }),
			plain("baseline", "String", func(r *D) string { return r.Baseline }),
			plain("inputs_digest", "FixedString(16)", func(r *D) string { return string(r.InputsDigest[:]) }),
			moment("computed_at", func(r *D) time.Time { return r.ComputedAt }),
		},
		validate: func(r *D) error {
			switch {
			case r.Check == "" || r.CheckVersion == "" || r.Detector == "":
				return errors.New("check, check version and detector must not be empty")
			case r.Minute.Unix()%60 != 0:
				return fmt.Errorf("minute %s is not a whole one", r.Minute.UTC().Format(time.RFC3339))
			case math.IsNaN(r.EValue):
				return errors.New("the e-value is not a number")
			}
			return errors.Join(storable("minute", r.Minute), storable("computation time", r.ComputedAt))
		},
		label: func(r *D) string {
			return fmt.Sprintf("check %s version %s detector %s slice %v minute %s", r.Check, r.CheckVersion, r.Detector, r.Slice, r.Minute.UTC().Format(time.RFC3339))
		},
	}
}

func alarmsTable() table[Alarm] {
	type A = Alarm
	states := set("open", "acknowledged", "closed")
	return table[A]{
		name: "alarms",
		columns: []column[A]{
			plain("alarm_id", "String", func(r *A) string { return r.ID }),
			dictionary("check", func(r *A) string { return r.Check }),
			dictionary("check_version", func(r *A) string { return r.CheckVersion }),
			plain("slice_id", "UInt64", func(r *A) uint64 { return r.SliceID }),
			dictionaryMap("slice", "Map(LowCardinality(String), String)", func(r *A) map[string]string { return r.Slice }),
			dictionary("detector", func(r *A) string { return r.Detector }),
			moment("opened_at", func(r *A) time.Time { return r.OpenedAt }),
			plain("revision", "UInt64", func(r *A) uint64 { return r.Revision }),
			plain("state", "Enum8('open' = 1, 'acknowledged' = 2, 'closed' = 3)", func(r *A) string { return r.State }),
			moment("updated_at", func(r *A) time.Time { return r.UpdatedAt }),
			plain("closed_at", "Nullable(DateTime64(3, 'UTC'))", func(r *A) *time.Time { return r.ClosedAt }),
			dictionary("by", func(r *A) string { return r.By }),
			plain("note", "String", func(r *A) string { return r.Note }),
			plain("summary", "String", func(r *A) string { return r.Summary }),
			plain("evidence", "String", func(r *A) string { return r.Evidence }),
		},
		validate: func(r *A) error {
			switch {
			case r.ID == "":
				return errors.New("alarm id must not be empty")
			case (r.State == "closed") != (r.ClosedAt != nil):
				return fmt.Errorf("state %q with closing time present %t", r.State, r.ClosedAt != nil)
			}
			return errors.Join(oneOf("state", r.State, states), storable("opening time", r.OpenedAt))
		},
		label: func(r *A) string { return fmt.Sprintf("alarm %s revision %d", r.ID, r.Revision) },
	}
}
