package decode

// readCloudflare reads a row of Cloudflare's AI Gateway: from Logpush, with bodies as
// strings or still encrypted, or from the list of its REST API, without any.
func readCloudflare(e *element, o *object) {
	it := &e.it
	var start, took, meta, req, resp value
	for w := walk(o.raw); w.next(); {
		switch string(w.key()) {
		case "id":
			e.setID(w.val)
		case "Datetime", "Timestamp", "created_at":
			if start == nil && !w.val.absent() {
				start = w.val
			}
		case "Gateway":
			it.Route = e.label(w.val)
		case "Model", "model":
			it.Model = e.label(w.val)
		case "StatusCode", "status_code":
			e.gatewayStatus(w.val)
		case "tokens_in", "TokensIn":
			it.InputTokens = e.count(w.val, "input_tokens")
		case "tokens_out", "TokensOut":
			it.OutputTokens = e.count(w.val, "output_tokens")
		case "duration", "Duration":
			took = w.val
		case "Metrics":
			if took == nil {
				took = w.val.member("durationMs")
			}
		case "Metadata", "metadata":
			meta = w.val
		case "RequestBody":
			req = w.val
		case "ResponseBody":
			resp = w.val
		}
	}
	if inner := nestedJSON(meta); inner.isObject() {
		meta = inner
	}
	it.UserID = e.label(meta.member("userId"))
	it.SessionID = e.label(meta.member("sessionId"))
	it.App = e.label(meta.member("app"))
	if isEncrypted(req) || isEncrypted(resp) {
		e.withheld = encryptedText
	} else {
		user, model := it.UserID, it.Model
		e.bodies(req, resp)
		e.settle(user, "", model)
	}
	e.attributes(o)
	e.timed(start, nil, took)
}

// isEncrypted knows both forms of a body that only its owner can read.
func isEncrypted(v value) bool {
	return v.isObject() && v.member("data") != nil &&
		(v.member("iv") != nil && v.member("key") != nil || isText(v.member("type"), "encrypted"))
}
