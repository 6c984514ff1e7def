package server

import (
	"context"

	"github.com/danielgtaylor/huma/v2"
)

type whyInput struct {
	ID string `path:"id" doc:"The interaction's id, or topic/partition/offset[#element] when the log carried none; percent-encoded" example:"conv-77-turn-3"`
}

type whyOutput struct {
	Body Explanation
}

func (s *Server) addWhy(api huma.API) {
	op := get(api, "explain", "/api/v1/why/{id}", "What became of an interaction, per check",
		"Judged (with its distribution), failed (with its reason), or not judged, and then what the sampling hash says; with its labels. "+
			"An id that nobody has seen gets an answer too: what would become of it.")
	huma.Register(api, op, func(ctx context.Context, in *whyInput) (*whyOutput, error) {
		why, err := Why(ctx, s.deps.Store, s.deps.Checks, in.ID)
		if err != nil {
			return nil, s.unavailable(ctx, "why", err)
		}
		return &whyOutput{Body: why}, nil
	})
}
