package decode

// openConnect takes off the envelope of Kafka Connect's JsonConverter with schemas
// enabled. The schema says nothing that JSON does not; a null payload is its tombstone.
func openConnect(r *record, o *object) {
	if o.exact[kPayload].absent() {
		r.skip(tombstone)
		return
	}
	r.inner(o.exact[kPayload])
}

// openCloudWatch takes off the envelope of a CloudWatch Logs subscription: log lines
// as strings, each with a record of its own.
func openCloudWatch(r *record, o *object) {
	if isText(o.exact[kMessageType], "CONTROL_MESSAGE") {
		r.skip(controlMessage)
		return
	}
	r.many = true
	empty := true
	for w := walk(o.exact[kLogEvents]); !w.obj && w.next() && !r.full; empty = false {
		line := w.val.member("message")
		r.inside(func() {
			if line.isString() {
				r.line(line)
				return
			}
			r.inner(line)
		})
	}
	if empty {
		r.skip(emptyBatch)
	}
}

// line reads a log line that should be a record. Other lines of the same log group are
// bad elements, not a reason to give up the batch.
func (r *record) line(v value) {
	inner := nestedJSON(v)
	if inner == nil {
		r.bad(r.take(), notJSON, "a log line that is no JSON")
		return
	}
	if r.depth == r.d.cfg.MaxNested {
		r.bad(r.take(), notJSON, "JSON inside more than %d strings", r.depth)
		return
	}
	r.depth++
	r.inner(inner)
}
