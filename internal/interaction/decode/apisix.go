package decode

// readAPISIX reads an entry of an APISIX logger. llm_summary.duration is the time to
// the first token; the latency of the request stands beside it.
func readAPISIX(e *element, o *object) {
	it := &e.it
	request, response := o.exact[kRequest], o.exact[kResponse]
	var consumer, took, text value
	for w := walk(o.raw); w.next(); {
		switch string(w.key()) {
		case "route_id":
			it.Route = e.label(w.val)
		case "service_id":
			if it.Route == "" {
				it.App = e.label(w.val)
			}
		case "consumer":
			consumer = w.val
		case "latency":
			took = w.val
		case "llm_response_text":
			text = w.val
		}
	}
	if it.Route != "" {
		it.App = ""
	}
	it.SessionID = e.sessionHeader(request.member("headers"))
	user := e.label(consumer.member("username"))
	summary := o.exact[kLLMSummary]
	e.usage(summary)
	e.gatewayStatus(response.member("status"))

	req := o.exact[kLLMRequest]
	if req.absent() {
		req = request.member("body")
	}
	resp := text
	if resp.isObject() {
		resp = resp.member("content")
	}
	if resp.absent() {
		resp = response.member("body")
	}
	e.bodies(req, resp)
	e.settle(user, e.label(summary.member("model")), e.label(summary.member("request_model")))
	e.attributes(o)
	e.timed(o.exact[kStartTime], nil, took)
}
