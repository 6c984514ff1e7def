package evaluators

import (
	"slices"
	"unicode/utf8"
)

// fit returns the documents of the item's context that a judge reads: as many, from
// the first, as leave all texts together within limit runes. Only whole documents are
// left out: half of one may say the opposite of all of it. It reports false when the
// other texts alone are over the limit, or when the evaluator needs context and not
// even the first document fits.
//
// It is asked for every interaction of the stream, so bytes, which are never fewer
// than runes, come first.
func (it Item) fit(spec Spec, limit int) (documents []string, ok bool) {
	bytes := 0
	for _, name := range fieldOrder {
		if spec.reads(name) {
			for _, text := range it.texts(name) {
				bytes += len(text)
			}
		}
	}
	if spec.reads(fieldContext) {
		documents = it.texts(fieldContext)
	}
	if bytes <= limit {
		return documents, true
	}
	runes := 0
	for _, name := range fieldOrder {
		if name != fieldContext && spec.reads(name) {
			for _, text := range it.texts(name) {
				runes += utf8.RuneCountInString(text)
			}
		}
	}
	if runes > limit {
		return nil, false
	}
	kept := 0
	for _, d := range documents {
		if runes += utf8.RuneCountInString(d); runes > limit {
			break
		}
		kept++
	}
	return documents[:kept], kept > 0 || !slices.Contains(spec.Required, fieldContext)
}

// noteCut puts into the detail that documents were left out.
func (r *Result) noteCut(it Item, spec Spec, kept int) {
	if !spec.reads(fieldContext) {
		return
	}
	if all := len(it.texts(fieldContext)); kept < all {
		r.Detail["cut"] = map[string]any{"documents": all, "kept": kept}
	}
}
