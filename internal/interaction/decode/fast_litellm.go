package decode

// litellm is readLiteLLM.
func (p *Prober) litellm() {
	t := &p.tape
	e := &p.e
	it := &e.it
	p.unsure = p.unsure || isOtherCall(p.label(p.top[kCallType]))
	var end, info, text ref
	var seen uint
	for c, last := t.inside(document); c < last; c = t.next(c) {
		switch string(t.name(c)) {
		case "id":
			e.setID(t.value(c))
		case "trace_id":
			if p.wanted[lTraceID] {
				it.TraceID = e.label(t.value(c))
			}
		case "endTime":
			p.once(&seen, 1)
			end = c
		case "prompt_tokens":
			if p.plan.Numbers {
				it.InputTokens = e.count(t.value(c), "input_tokens")
			}
		case "completion_tokens":
			if p.plan.Numbers {
				it.OutputTokens = e.count(t.value(c), "output_tokens")
			}
		case "end_user":
			p.once(&seen, 2)
			if p.wanted[lUserID] {
				it.UserID = e.label(t.value(c))
			}
		case "error_information":
			p.once(&seen, 4)
			info = c
		case "error_str":
			p.once(&seen, 8)
			text = c
		}
	}
	p.litellmLabels()
	if len(p.attributes) > 0 {
		p.keepAttributes()
	}
	switch resp := p.top[kResponse]; {
	case t.absent(resp):
	case t.isObject(resp) && p.isChatAnswer(resp):
		p.chatResponse(resp)
	case t.isString(resp) && p.isBodyOrPlain(resp) && ofStream(t.value(resp)) == "":
		it.Output = p.output(resp)
	default:
		p.unsure = true
	}
	switch messages := p.top[kMessages]; {
	case t.isString(messages) && p.mayHoldJSON(messages):
		p.unsure = true
	case p.isConversation(messages):
		p.conversation(messages, false)
	default:
		it.Input = p.text(messages, &p.texts.input)
	}
	if p.wanted[lModel] && it.Model == "" {
		it.Model = p.label(p.top[kModel])
	}
	if t.is(p.top[kStatus], "failure") {
		e.failed = true
		e.litellmError(t.value(info), t.value(text))
	}
	start := t.value(p.top[kStartTimeCamel])
	if p.plan.Numbers {
		e.timed(start, t.value(end), nil)
	} else {
		e.setTime(start, e.responseTime)
	}
}

// litellmLabels reads what the gateway knows of who asks.
func (p *Prober) litellmLabels() {
	t := &p.tape
	it := &p.e.it
	meta := p.top[kMetadata]
	requester := t.member(meta, "requester_metadata")
	p.unsure = p.unsure || p.isJudges(requester)
	label := func(first, second ref) string {
		if s := p.label(first); s != "" {
			return s
		}
		return p.label(second)
	}
	if p.wanted[lApp] {
		it.App = label(t.member(requester, "app"), t.member(meta, "user_api_key_alias"))
	}
	if p.wanted[lSessionID] {
		it.SessionID = p.e.label(t.value(t.member(requester, "session_id")))
	}
	if p.wanted[lPromptVersion] {
		it.PromptVersion = label(t.member(requester, "prompt_version"), t.member(t.member(meta, "prompt_management_metadata"), "prompt_id"))
	}
	if p.wanted[lUserID] && it.UserID == "" {
		it.UserID = p.e.label(t.value(t.member(meta, "user_api_key_end_user_id")))
	}
}
