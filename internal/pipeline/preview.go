package pipeline

import (
	"errors"
	"fmt"

	"assay/evaluators"
	"assay/internal/checks"
	"assay/internal/interaction"
	"assay/sampler"
)

// A Preview tells what a pipeline would decide about an interaction and store of its
// text; it judges nothing and stores nothing. It is for looking at a topic.
type Preview struct {
	sampler *sampler.Sampler
	privacy *privacy
}

// NewPreview is of the checks of a file.
func NewPreview(file *checks.File) (*Preview, error) {
	all := make([]evaluators.Evaluator, len(file.Checks))
	var errs []error
	for i, c := range file.Checks {
		ev, err := newEvaluator(c)
		if err != nil {
			errs = append(errs, fmt.Errorf("check %s: %w", c.Name, err))
		}
		all[i] = ev
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return &Preview{
		sampler: sampler.New(file, func(i int, it *interaction.Interaction) (string, bool) {
			return all[i].Applicable(file.Checks[i].Item(it))
		}),
		privacy: newPrivacy(file),
	}, nil
}

// Decide returns one decision per check, in the file's order.
func (p *Preview) Decide(it *interaction.Interaction) []sampler.Decision {
	return p.sampler.Decide(it, nil)
}

// Excerpt is a text as far as it may be shown: redacted and cut, empty where no text is
// to be stored.
func (p *Preview) Excerpt(text *string) string { return p.privacy.excerpt(text) }
