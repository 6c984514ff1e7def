package decode

import (
	"bytes"
	"slices"
)

// openDebezium takes off the envelope of change data capture. Only the row after the
// change counts; a deleted row is no interaction any more, whatever it was before.
func openDebezium(r *record, o *object) {
	after := o.exact[kAfter]
	switch {
	case isText(o.exact[kOp], "d"):
		r.skip(cdcDelete)
		return
	case after.absent(): // a truncated table, an update logged without its row
		r.skip(jsonNull)
		return
	case isText(o.exact[kOp], "u"):
		if !r.src.rejudge && r.wasWhole(o.raw.member("before")) {
			r.skip(cdcUpdate)
			return
		}
		r.flags = append(r.flags, cdcUpdate)
	case isText(o.exact[kOp], "r"):
		if r.src.noSnaps {
			r.skip(cdcSnapshot)
			return
		}
		r.flags = append(r.flags, cdcSnapshot)
	}
	r.row(after)
}

// wasWhole reports whether a row could be judged before it was changed: then it was, and
// the change is about it and no new answer. Many applications write a row at the question
// and change it at the answer, so an update alone says nothing; and where the database
// logs no row before the change, nobody can tell, and the row is judged.
func (r *record) wasWhole(before value) bool {
	if before.absent() {
		return false
	}
	then := &record{d: r.d, src: r.src, rec: r.rec, many: r.many, around: r.around}
	then.flags = slices.Clone(r.flags)
	then.row(before)
	for i := range then.res.Interactions {
		if !then.res.Interactions[i].Judgeable {
			return false
		}
	}
	return len(then.res.Interactions) > 0
}

// row reads a row of a table.
func (r *record) row(after value) {
	if !after.isString() {
		r.inner(after)
		return
	}
	// MongoDB's connector writes the document as a string, in extended JSON.
	inner := nestedJSON(after)
	if !inner.isObject() || r.depth == r.d.cfg.MaxNested {
		r.bad(r.take(), notJSON, "a row after the change that is no JSON object")
		return
	}
	r.depth++
	if isExtended(inner) {
		r.flags = append(r.flags, "extended_json")
		inner = plainJSON(inner)
	}
	r.inner(inner)
}

// isDeleted claims a row that Debezium flattened and marked as deleted.
func isDeleted(o *object) bool {
	return isText(o.exact[kDeleted], "true") || string(o.exact[kDeleted]) == "true"
}

func openDeleted(r *record, _ *object) { r.skip(cdcDelete) }

// openOutbox takes off a row of a transactional outbox.
func openOutbox(r *record, o *object) { r.inner(o.exact[kPayload]) }

// isExtended reports whether a member somewhere in v is a type wrapper of MongoDB's
// extended JSON. A text that only mentions one makes plainJSON run for nothing.
func isExtended(v value) bool {
	for _, name := range []string{`"$oid"`, `"$date"`, `"$number`, `"$uuid"`} {
		if bytes.Contains(v, []byte(name)) {
			return true
		}
	}
	return false
}

// plainJSON writes v without the type wrappers of extended JSON, so that every rule
// sees a plain number, time or id.
func plainJSON(v value) value {
	out := make(value, 0, len(v))
	return appendPlain(out, v)
}

// appendPlain recurses as deep as the scanner let the document be.
func appendPlain(out, v value) value {
	w := walk(v)
	if !v.isObject() && !v.isArray() {
		return append(out, v...)
	}
	if inner, ok := unwrapped(v); ok {
		return appendPlain(out, inner)
	}
	out = append(out, v[0])
	for n := 0; w.next(); n++ {
		if n > 0 {
			out = append(out, ',')
		}
		if w.obj {
			out = append(out, '"')
			out = append(out, w.raw...)
			out = append(out, '"', ':')
		}
		out = appendPlain(out, w.val)
	}
	return append(out, v[len(v)-1])
}

// unwrapped is the value of an object that is a type wrapper and nothing else.
func unwrapped(v value) (value, bool) {
	if !v.isObject() {
		return nil, false
	}
	w := walk(v)
	if !w.next() {
		return nil, false
	}
	name, inner := string(w.raw), w.val
	if w.next() {
		return nil, false
	}
	switch name {
	case "$oid", "$date", "$numberLong", "$numberInt", "$numberDouble", "$numberDecimal", "$uuid":
		if inner.isString() && name[1] == 'n' {
			s, _ := inner.text()
			if n, _ := scanWord([]byte(s)); n == len(s) && n > 0 {
				return value(s), true
			}
		}
		return inner, true
	}
	return nil, false
}
