package decode

// readPortkey reads a log of Portkey's gateway. It has no id and no time of its own.
func readPortkey(e *element, o *object) {
	it := &e.it
	meta := o.exact[kMetadata]
	it.App = e.label(meta.member("span_name"))
	it.SessionID = e.label(meta.member("session"))
	user := e.label(meta.member("_user"))
	it.TraceID = e.label(o.exact[kTraceID])
	if it.TraceID == "" {
		it.TraceID = e.label(meta.member("trace_id"))
	}
	if it.TraceID == "" {
		it.TraceID = e.label(meta.member("traceId"))
	}
	request, response := o.exact[kRequest], o.exact[kResponse]
	e.setID(o.exact[kID])
	e.usage(o.exact[kUsage])
	e.gatewayStatus(response.member("status"))
	e.bodies(request.member("body"), response.member("body"))
	e.settle(user, "", "")
	e.attributes(o)
	e.timed(o.first(kCreatedAt, kTimestamp, kTime), nil, response.member("response_time"))
}
