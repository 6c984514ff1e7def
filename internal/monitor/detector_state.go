package monitor

import (
	"encoding/json"
	"fmt"
	"time"

	"assay/internal/interaction"
	"assay/internal/stats"
	"assay/sink"
)

// state is the detector as a row of detector_state.
func (d *detector) state(computedAt time.Time) (sink.DetectorState, error) {
	note, err := json.Marshal(d.note)
	if err != nil {
		return sink.DetectorState{}, fmt.Errorf("detector of %s on %s: %w", d.check, d.slice, err)
	}
	return sink.DetectorState{
		Check: d.check, CheckVersion: d.version, SliceID: d.slice.ID(), Slice: d.slice,
		Detector: esrDetector, Minute: d.minute, Samples: d.samples,
		NullRate: d.limits.null, Tolerance: d.limits.tolerance, Threshold: d.threshold(), WMax: d.limits.wMax,
		R: append([]float64(nil), d.esr.R[:]...), EValue: d.esr.M(), Latched: d.latched,
		Baseline: string(note), InputsDigest: d.digest, ComputedAt: computedAt,
	}, nil
}

// restore is the detector of a stored row, with the limits of the checks file now.
func restore(s sink.DetectorState, slice interaction.Slice, l limits) (detector, error) {
	d := detector{
		check: s.Check, version: s.CheckVersion, slice: slice, limits: l,
		samples: s.Samples, minute: s.Minute.UTC(), latched: s.Latched, digest: s.InputsDigest,
	}
	where := func(err error) error {
		return fmt.Errorf("detector_state of check %s version %s slice %s minute %s: %w", s.Check, s.CheckVersion, d.slice, s.Minute, err)
	}
	if len(s.R) != stats.ESRStakes {
		return detector{}, where(fmt.Errorf("%d stakes, want %d", len(s.R), stats.ESRStakes))
	}
	copy(d.esr.R[:], s.R)
	if err := json.Unmarshal([]byte(s.Baseline), &d.note); err != nil {
		return detector{}, where(fmt.Errorf("baseline %q: %w", s.Baseline, err))
	}
	if d.note.Hours == nil {
		d.note.Hours = map[int64]uint64{}
	}
	if s.NullRate != l.null {
		// evidence against one rate says nothing against another: under a lowered
		// target, what was gathered against the old one would ring at once
		d.restart(d.minute, fmt.Sprintf("tolerated failures were %.4g and are now %.4g: target or tolerance changed", s.NullRate, l.null))
	}
	return d, nil
}
