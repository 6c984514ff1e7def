package monitor

// calibration shows how a slice's judge agrees with people; no labels, no series.
func (g gauges) calibration(s Slice) {
	for _, c := range s.Calibration {
		g := g.with("window", c.Window).with("origin", c.Origin)
		g.set("assay_calibration_labels", float64(c.Labels))
		g.setIf("assay_calibration_agreement", c.Agreement.Value)
		level := g.with("level", "0.95")
		level.set("assay_calibration_agreement_lower", c.Agreement.Lower)
		level.set("assay_calibration_agreement_upper", c.Agreement.Upper)
		g.setIf("assay_calibration_kappa", c.Kappa)
		g.setIf("assay_calibration_brier", c.Brier)
		g.setIf("assay_calibration_error_debiased", c.Error)
		g.setIf("assay_calibration_p_value", c.PValue)
	}
}

// calibrationHelp is every gauge of calibration.
var calibrationHelp = map[string]string{
	"assay_calibration_labels":          "Judged interactions with human labels of this origin in the window.",
	"assay_calibration_agreement":       "Weighted share of labelled interactions on which the judge's verdict is people's.",
	"assay_calibration_agreement_lower": "Lower end of the agreement's interval at this level.",
	"assay_calibration_agreement_upper": "Upper end of the agreement's interval at this level.",
	"assay_calibration_kappa":           "Cohen's kappa of judge and people, weighted: agreement beyond chance.",
	"assay_calibration_brier":           "Weighted mean squared distance of the judge's score and people's verdict.",
	"assay_calibration_error_debiased":  "Root of the mean squared distance of score and pass rate over 10 bins of equal mass, less its noise.",
	"assay_calibration_p_value":         "How often scores that mean what they say would be at least as far from people's verdicts.",
}
