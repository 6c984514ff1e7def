package checks

// later says what comes with a later version of Assay: keys that the file's final form
// has and this version does not read. Refusing them by name keeps a file from being
// silently half obeyed.
func later(scope, key string) (string, bool) {
	const version = " with a later version of Assay"
	switch dotted(scope, key) {
	case "references":
		return "books of references come" + version, true
	case "golden":
		return "golden sets come" + version, true
	case "max_values":
		return "the cap on listed values comes" + version, true
	case "max_series", "export_levels":
		return "the exporter's own limits come" + version, true
	case "sources.join_context":
		return "the formats that need it come" + version, true
	case "judges.orders":
		return "this setting of judges comes" + version, true
	case "judges.members", "judges.jury", "judges.cascade", "judges.fallback":
		return "juries and cascades come" + version, true
	case "judges.tokens_per_minute", "judges.cache", "judges.calibration", "judges.headers":
		return "this setting of judges comes" + version, true
	case "criteria.book", "reference.book":
		return "books of references come" + version, true
	case "sample.by":
		return "strata come" + version, true
	case "sample.min_per_hour", "sample.max_per_hour", "sample.cluster", "sample.rules", "sample.budget":
		return "floors, caps and rules of sampling come" + version, true
	case "alert.burn", "alert.below_target", "alert.baseline", "alert.window":
		return "alerts without a declared target and burn rates come" + version, true
	case "checks.repeat", "checks.options", "checks.map":
		return "options of evaluators come" + version, true
	case "privacy.encrypt", "privacy.keep", "privacy.text_days":
		return "this setting of privacy comes" + version, true
	}
	return "", false
}

// laterKind says the same of a judge's kind.
func laterKind(kind string) bool { return kind == "jev" || kind == "jury" }
