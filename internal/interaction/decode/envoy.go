package decode

// readEnvoy reads a line of Envoy AI Gateway's access log. It never carries text: the
// record counts, and is judged by nobody.
func readEnvoy(e *element, o *object) {
	it := &e.it
	var took value
	requested := ""
	for w := walk(o.raw); w.next(); {
		switch string(w.key()) {
		case "x-request-id":
			e.setID(w.val)
		case "route_name":
			it.Route = e.label(w.val)
		case "duration":
			took = w.val
		case "response_code":
			e.gatewayStatus(w.val)
		case "gen_ai.response.model":
			it.Model = e.label(w.val)
		case "gen_ai.request.model":
			requested = e.label(w.val)
		case "gen_ai.usage.input_tokens":
			it.InputTokens = e.count(w.val, "input_tokens")
		case "gen_ai.usage.output_tokens":
			it.OutputTokens = e.count(w.val, "output_tokens")
		case "session.id":
			it.SessionID = e.label(w.val)
		}
	}
	e.settle("", "", requested)
	e.attributes(o)
	e.timed(o.exact[kStartTime], nil, took)
}
