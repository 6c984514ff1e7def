package sampler

import (
	"strconv"
	"strings"

	"assay/internal/checks"
	"assay/internal/interaction"
)

// A Kind is what was decided about an interaction and a check.
type Kind uint8

// The kinds, in the order in which they are decided.
const (
	Filtered      Kind = iota + 1 // the check's when said no, or had no answer
	NotApplicable                 // there is nothing here that the check can judge
	SampledOut
	Selected
)

// String is the kind as tables and metrics write it.
func (k Kind) String() string {
	switch k {
	case Filtered:
		return "filtered"
	case NotApplicable:
		return "not_applicable"
	case SampledOut:
		return "sampled_out"
	case Selected:
		return "selected"
	}
	return "kind(" + strconv.Itoa(int(k)) + ")"
}

// Reasons of filtered interactions.
const (
	filterNo    = "when"         // the expression is false
	filterError = "filter_error" // the expression has no answer for this record
)

// A Decision is what becomes of one interaction under one check.
type Decision struct {
	Check   int // index in the checks file
	Kind    Kind
	Reason  string  // of filtered and not_applicable
	Pi      float64 // inclusion probability; 0 where no rate was applied
	Epoch   uint32  // Unix hour of the event: rates are fixed per epoch
	Stratum string  // empty until checks are stratified
}

// A Sampler decides under one checks file. It is safe for concurrent use.
type Sampler struct {
	checks     []checks.Check
	applicable func(check int, it *interaction.Interaction) (reason string, ok bool)
}

// New makes a sampler for a file. applicable says whether the check of that index can
// judge an interaction at all, and it must be a pure function of the two.
func New(file *checks.File, applicable func(check int, it *interaction.Interaction) (reason string, ok bool)) *Sampler {
	return &Sampler{checks: file.Checks, applicable: applicable}
}

// Decide appends one decision per check to dst, in the file's order. Applicability
// comes before sampling, so that not_applicable is counted over the whole population
// and the weights of the selected stay right.
func (s *Sampler) Decide(it *interaction.Interaction, dst []Decision) []Decision {
	epoch := Epoch(it.Time.Unix())
	upstream := upstreamRate(it)
	for i := range s.checks {
		c := &s.checks[i]
		d := Decision{Check: i, Epoch: epoch}
		if reason, ok := s.wants(c, it); !ok {
			d.Kind, d.Reason = Filtered, reason
		} else if reason, ok := s.applicable(i, it); !ok {
			d.Kind, d.Reason = NotApplicable, reason
		} else {
			d.Kind, d.Pi = SampledOut, c.Sample.Rate*upstream
			// The rate alone decides here: what the source left out is gone already,
			// and only the weight has to know of it.
			if U(c.Sample.Salt, it.ID) < c.Sample.Rate {
				d.Kind = Selected
			}
		}
		dst = append(dst, d)
	}
	return dst
}

func (s *Sampler) wants(c *checks.Check, it *interaction.Interaction) (reason string, ok bool) {
	if c.When == nil {
		return "", true
	}
	matched, err := c.When.Match(it)
	switch {
	case err != nil:
		return filterError, false
	case !matched:
		return filterNo, false
	}
	return "", true
}

// Epoch is the Unix hour of a Unix second, the time for which a rate is fixed.
func Epoch(unix int64) uint32 {
	if unix < 0 {
		return 0
	}
	return uint32(unix / 3600)
}

// upstreamRate is the share that the source itself logged, from the decoder's flag.
func upstreamRate(it *interaction.Interaction) float64 {
	for _, flag := range it.Flags {
		if text, ok := strings.CutPrefix(flag, "upstream_sampling:"); ok {
			if q, err := strconv.ParseFloat(text, 64); err == nil && q > 0 && q <= 1 {
				return q
			}
		}
	}
	return 1
}
