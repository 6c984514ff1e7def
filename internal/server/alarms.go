package server

import (
	"context"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"assay/internal/interaction"
	"assay/internal/monitor"
	"assay/sink"
)

// alarmSpan is how far back closed alarms are listed unless told otherwise.
const alarmSpan = 28 * 24 * time.Hour

type alarmsInput struct {
	Since string `query:"since" format:"date-time" doc:"RFC 3339: closed alarms that opened before are left out; default: 28 days ago"`
}

type alarmsOutput struct {
	Body struct {
		Alarms []monitor.Alarm `json:"alarms" nullable:"false" doc:"Open ones whenever they opened"`
	}
}

func (s *Server) addAlarms(api huma.API) {
	op := get(api, "list-alarms", "/api/v1/alarms", "Alarms",
		"The newest revision of each alarm, with its evidence, as the tables hold them.")
	huma.Register(api, op, s.alarms)
}

func (s *Server) alarms(ctx context.Context, in *alarmsInput) (*alarmsOutput, error) {
	var f faults
	since := time.Now().Add(-alarmSpan)
	f.instant("since", in.Since, &since)
	if err := f.problem(); err != nil {
		return nil, err
	}
	rows, err := s.deps.Store.Alarms(ctx, since)
	if err != nil {
		return nil, s.unavailable(ctx, "alarms", err)
	}
	seen := make(map[string]monitor.Alarm)
	if snap := s.snapshot(); snap != nil {
		for _, a := range snap.Alarms {
			seen[a.ID] = a
		}
	}
	out := &alarmsOutput{}
	out.Body.Alarms = make([]monitor.Alarm, 0, len(rows))
	for _, row := range rows {
		a := s.alarmOf(row)
		if a.State != "closed" {
			a.Data = seen[a.ID].Data // what only the monitor knows
		}
		out.Body.Alarms = append(out.Body.Alarms, a)
	}
	return out, nil
}

func (s *Server) alarmOf(a sink.Alarm) monitor.Alarm {
	b := monitor.Alarm{
		ID: a.ID, Check: a.Check, Version: a.CheckVersion, Slice: interaction.Slice(a.Slice), Detector: a.Detector,
		State: a.State, OpenedAt: a.OpenedAt, ClosedAt: a.ClosedAt, UpdatedAt: a.UpdatedAt,
		By: a.By, Note: a.Note, Summary: a.Summary, Evidence: a.Evidence, Revision: a.Revision,
	}
	if c, ok := s.deps.Checks.Check(a.Check); ok {
		b.Severity = c.Alert.Severity
	}
	return b
}
