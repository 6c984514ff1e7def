package decode

import "assay/internal/interaction"

// readHelicone reads a request row as Helicone's API and webhooks give it, or the
// message that its own components pass on, whose bodies stand in an object store. That
// message also carries the caller's key, of which nothing is kept.
func readHelicone(e *element, o *object) {
	if o.has(kHeliconeMeta) {
		e.heliconeMessage(o)
		return
	}
	it := &e.it
	var created, took, properties value
	name, version, user := "", "", ""
	for w := walk(o.raw); w.next(); {
		switch string(w.key()) {
		case "request_id":
			e.setID(w.val)
		case "request_created_at":
			created = w.val
		case "delay_ms":
			took = w.val
		case "request_user_id":
			user = e.label(w.val)
		case "request_properties", "properties":
			if properties == nil {
				properties = w.val
			}
		case "response_status":
			e.gatewayStatus(w.val)
		case "prompt_tokens":
			it.InputTokens = e.count(w.val, "input_tokens")
		case "completion_tokens":
			it.OutputTokens = e.count(w.val, "output_tokens")
		case "prompt_id":
			name = e.label(w.val)
		case "prompt_version":
			version = e.label(w.val)
		case "scores":
			it.Feedback = e.heliconeScore(w.val)
		}
	}
	e.heliconeProperties(properties)
	e.promptVersion(name, version)
	e.bodies(o.exact[kRequestBodySnake], o.exact[kResponseBodySnake])
	e.settle(user, "", e.label(o.exact[kModel]))
	e.attributes(o)
	e.timed(created, nil, took)
}

func (e *element) heliconeMessage(o *object) {
	it := &e.it
	meta := o.exact[kHeliconeMeta]
	log := o.raw.member("log")
	request, response := log.member("request"), log.member("response")
	e.setID(request.member("id"))
	it.UserID = e.label(request.member("userId"))
	it.Model = e.label(response.member("model"))
	if it.Model == "" {
		it.Model = e.label(log.member("model"))
	}
	e.heliconeProperties(request.member("properties"))
	e.promptVersion(e.label(meta.member("promptId")), e.label(meta.member("promptVersionId")))
	e.gatewayStatus(response.member("status"))
	e.withheld = contentExternal
	e.timed(request.member("requestCreatedAt"), nil, response.member("delayMs"))
}

func (e *element) heliconeProperties(p value) {
	it := &e.it
	it.App = e.label(p.member("App"))
	if it.SessionID = e.label(p.member("Helicone-Session-Id")); it.SessionID == "" {
		it.SessionID = e.label(p.member("Session"))
	}
}

// promptVersion is name@version where both are known, else the version.
func (e *element) promptVersion(name, version string) {
	e.it.PromptVersion = version
	if name != "" && version != "" {
		e.it.PromptVersion = name + "@" + version
	}
}

// heliconeScore takes the first score that has a number.
func (e *element) heliconeScore(scores value) *interaction.Feedback {
	for w := walk(scores); w.obj && w.next(); {
		v := w.val
		if v.isObject() {
			v = v.member("value")
		}
		if f := e.feedback(v); f != nil {
			f.Name = e.label(quoted(w.key()))
			return f
		}
	}
	return nil
}
