package decode

// readKong reads an entry of a Kong log plugin. The AI plugins put the bodies under
// their own name, as strings, and only where log_payloads is on. Versions differ in
// where: under ai.proxy, ai["ai-proxy"], any other plugin's name, or ai itself.
func readKong(e *element, o *object) {
	it := &e.it
	request := o.exact[kRequest]
	e.setID(request.member("id"))
	it.Route = e.label(o.exact[kRoute])
	if it.Route == "" {
		it.App = e.label(o.exact[kService])
	}
	it.SessionID = e.sessionHeader(request.member("headers"))
	it.UserID = e.label(o.raw.member("consumer").member("username"))

	var req, resp value
	model, requested := "", ""
	ai := o.exact[kAI]
	take := func(payload value) {
		if v := payload.member("request"); !v.absent() && req == nil {
			req = v
		}
		if v := payload.member("response"); !v.absent() && resp == nil {
			resp = v
		}
	}
	take(ai.member("payload"))
	for w := walk(ai); w.obj && w.next(); {
		if string(w.key()) == "payload" || !w.val.isObject() {
			continue
		}
		take(w.val.member("payload"))
		e.usage(w.val.member("usage"))
		meta := w.val.member("meta")
		if model == "" {
			model = e.label(meta.member("response_model"))
		}
		if requested == "" {
			requested = e.label(meta.member("request_model"))
		}
	}
	e.gatewayStatus(o.exact[kResponse].member("status"))
	user := it.UserID
	e.bodies(req, resp)
	e.settle(user, model, requested)
	e.attributes(o)
	e.timed(o.exact[kStartedAt], nil, o.exact[kLatencies].member("request"))
}

// sessionHeader finds the session among a gateway's logged headers, whose names are
// lower case.
func (e *element) sessionHeader(headers value) string {
	v := headers.member("x-session-id")
	if v.isArray() { // logged as a list of values
		w := walk(v)
		w.next()
		v = w.val
	}
	return e.label(v)
}

// gatewayStatus reads the HTTP status that a gateway gave.
func (e *element) gatewayStatus(v value) {
	if v.isNumber() || v.isString() {
		e.setHTTPStatus(v)
	}
}

// settle prefers what the gateway knows of user and model over what the bodies say.
func (e *element) settle(user, model, requested string) {
	if user != "" {
		e.it.UserID = user
	}
	if model != "" {
		e.it.Model = model
	}
	if e.it.Model == "" {
		e.it.Model = requested
	}
}
