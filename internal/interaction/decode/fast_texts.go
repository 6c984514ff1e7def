package decode

// flat is readFlat, as far as it goes to the texts.
func (p *Prober) flat() {
	p.e.it.Input = p.flatInput()
	p.e.it.Output = p.flatOutput()
}

func (p *Prober) flatInput() *string {
	t := &p.tape
	for _, k := range [...]key{kInput, kQuestion, kQuery, kPrompt, kUserInput, kRequest} {
		n := p.top[k]
		switch {
		case t.absent(n):
			continue
		case p.isConversation(n):
			p.conversation(n, false)
			return p.e.it.Input
		}
		return p.text(n, &p.texts.input)
	}
	if p.top[kVars] != none {
		p.unsure = true
	}
	if n := p.top[kMessages]; p.isConversation(n) {
		p.conversation(n, false)
	}
	return p.e.it.Input
}

func (p *Prober) flatOutput() *string {
	for _, k := range [...]key{kOutput, kAnswer, kResponse, kActualOutput, kCompletion, kSampled, kPrediction} {
		if n := p.top[k]; !p.tape.absent(n) {
			return p.output(n)
		}
	}
	return nil
}

func (p *Prober) isConversation(n ref) bool {
	return p.tape.isString(p.tape.member(p.tape.head(n), "role"))
}

// exchange is readPair for a provider's bodies.
func (p *Prober) exchange(req, resp ref, provider string) {
	t := &p.tape
	it := &p.e.it
	model := it.Model
	it.Model = ""
	switch {
	case t.isString(req):
		it.Input = p.text(req, &p.texts.input)
	case req != none:
		p.chatRequest(req, resp == none)
	}
	switch {
	case t.isString(resp):
		it.Output = p.output(resp)
	case resp == none:
	case provider == anthropic:
		p.anthropicResponse(resp)
	default:
		p.chatResponse(resp)
	}
	if it.Model == "" {
		it.Model = model
	}
}

// once notes that a name, a bit of seen, was met in an object: of two only Decode may say
// which one counts.
func (p *Prober) once(seen *uint, name uint) {
	p.unsure = p.unsure || *seen&name != 0
	*seen |= name
}

func (p *Prober) chatRequest(req ref, answered bool) {
	t := &p.tape
	e := &p.e
	var seen uint
	for c, end := t.inside(req); c < end; c = t.next(c) {
		switch string(t.name(c)) {
		case "model":
			p.once(&seen, 1)
			if p.wanted[lModel] && e.it.Model == "" {
				e.it.Model = p.label(c)
			}
		case "messages":
			p.once(&seen, 2)
			p.conversation(c, answered)
		case "prompt":
			p.once(&seen, 2) // beside messages their order decides
			if !t.isString(c) {
				p.unsure = true
				return
			}
			raw := t.value(c)
			raw = raw[1 : len(raw)-1]
			e.it.Input, p.texts.input = p.placeholder(raw), len(raw)
		case "user":
			p.once(&seen, 4)
			if p.wanted[lUserID] && e.it.UserID == "" {
				e.it.UserID = e.label(t.value(c))
			}
		case "metadata":
			p.once(&seen, 8)
			p.unsure = p.unsure || p.isJudges(c)
			if p.wanted[lUserID] && e.it.UserID == "" {
				e.it.UserID = e.label(t.value(t.member(c, "user_id")))
			}
			if p.wanted[lSessionID] && e.it.SessionID == "" {
				e.it.SessionID = e.label(t.value(t.member(c, "session_id")))
			}
		}
	}
}

func (p *Prober) chatResponse(resp ref) {
	t := &p.tape
	e := &p.e
	var seen uint
	for c, end := t.inside(resp); c < end; c = t.next(c) {
		switch string(t.name(c)) {
		case "id":
			p.once(&seen, 1)
			if e.it.ID == "" {
				e.responseID = e.id(t.value(c))
			}
		case "created":
			p.once(&seen, 2)
			e.responseTime = t.value(c)
		case "model":
			p.once(&seen, 4)
			if !p.wanted[lModel] {
				continue
			}
			if model := p.label(c); model != "" {
				e.it.Model = model
			}
		case "usage":
			p.once(&seen, 8)
			if p.plan.Numbers {
				e.usage(t.value(c))
			}
		case "error":
			p.once(&seen, 16)
			e.setError(t.value(c))
		case "choices":
			p.once(&seen, 32)
			p.choices(c)
		}
	}
}

func (p *Prober) choices(list ref) {
	t := &p.tape
	first := t.head(list)
	if first == none {
		p.e.noChoices = t.isArray(list)
		p.unsure = p.unsure || t.isObject(list)
		return
	}
	p.e.stop = p.label(t.member(first, "finish_reason"))
	if m := t.member(first, "message"); t.isObject(m) {
		p.message(m)
	} else if text := t.member(first, "text"); text != none {
		p.e.it.Output = p.output(text)
	}
}

func (p *Prober) anthropicResponse(resp ref) {
	t := &p.tape
	e := &p.e
	var seen uint
	for c, end := t.inside(resp); c < end; c = t.next(c) {
		switch string(t.name(c)) {
		case "id":
			p.once(&seen, 1)
			if e.it.ID == "" {
				e.responseID = e.id(t.value(c))
			}
		case "model":
			p.once(&seen, 2)
			if !p.wanted[lModel] {
				continue
			}
			if model := p.label(c); model != "" {
				e.it.Model = model
			}
		case "content":
			p.once(&seen, 4)
			p.blocks(c)
		case "stop_reason":
			p.once(&seen, 8)
			e.stopReason(t.value(c))
		case "usage":
			p.once(&seen, 16)
			if p.plan.Numbers {
				e.anthropicUsage(t.value(c))
			}
		case "error":
			p.once(&seen, 32)
			e.setError(t.value(c))
		case "completion":
			p.unsure = true
		}
	}
}

// blocks is element.blocks; a text in several blocks is Decode's.
func (p *Prober) blocks(content ref) {
	t := &p.tape
	if t.isString(content) {
		p.e.it.Output = p.output(content)
		return
	}
	if !t.isArray(content) {
		return
	}
	var text ref
	for c, end := t.inside(content); c < end; c = t.next(c) {
		switch kind := t.member(c, "type"); {
		case t.is(kind, "text"):
			p.unsure = p.unsure || text != none || !t.isString(t.member(c, "text"))
			text = t.member(c, "text")
		case t.is(kind, "tool_use"):
			p.e.toolCalls = true
		}
	}
	if text != none && !p.unsure {
		p.e.it.Output = p.output(text)
	}
}

// message is element.message; an answer in parts or in sound is Decode's.
func (p *Prober) message(m ref) {
	t := &p.tape
	e := &p.e
	var seen uint
	for c, end := t.inside(m); c < end; c = t.next(c) {
		switch string(t.name(c)) {
		case "content":
			p.once(&seen, 1)
			switch t.kind(c) {
			case '"':
				e.it.Output = p.output(c)
			case '[':
				p.unsure = true
			}
		case "tool_calls":
			p.once(&seen, 2)
			e.toolCalls = e.toolCalls || t.head(c) != none
		case "function_call":
			p.once(&seen, 4)
			e.toolCalls = e.toolCalls || t.isObject(c)
		case "refusal", "audio":
			p.unsure = p.unsure || !t.absent(c)
		}
	}
}

// conversation is element.conversation, without the history.
func (p *Prober) conversation(list ref, answered bool) {
	t := &p.tape
	e := &p.e
	if !t.isArray(list) {
		p.unsure = p.unsure || !t.absent(list)
		return
	}
	var answer ref
	for c, end := t.inside(list); c < end; c = t.next(c) {
		role, content := none, none
		var seen uint
		for m, end := t.inside(c); m < end; m = t.next(m) {
			switch string(t.name(m)) {
			case "role":
				p.once(&seen, 1)
				role = m
			case "content":
				p.once(&seen, 2)
				content = m
			}
		}
		if !t.isObject(c) || !t.isString(role) || t.escaped(role) {
			p.unsure = true
			return
		}
		turn, redacted := p.turn(content)
		answer = none
		switch v := t.value(role); string(v[1 : len(v)-1]) {
		case "user":
			switch {
			case redacted:
				e.redacted = true
			case turn > 0:
				e.it.Input, p.texts.input = &p.some, turn
				e.tools = e.tools[:0]
			}
		case "tool", "function":
			if turn > 0 {
				e.tools = append(e.tools, p.some)
				p.texts.context += turn
			}
		case "assistant":
			answer = c
		case "":
			p.unsure = true
		}
	}
	if answered && answer != none {
		p.message(answer)
	}
}

// turn is the size of a message's text, 0 for a blank one, and whether it is a mark of
// redaction. Parts other than texts and pictures are Decode's.
func (p *Prober) turn(content ref) (size int, redacted bool) {
	t := &p.tape
	switch {
	case t.absent(content):
		return 0, false
	case t.isString(content):
		v := t.value(content)
		if raw := v[1 : len(v)-1]; !blank(raw) {
			return len(raw), p.mark(content) == redactedMark
		}
		return 0, false
	case !t.isArray(content):
		p.unsure = true
		return 0, false
	}
	texts, said := 0, false
	for c, end := t.inside(content); c < end; c = t.next(c) {
		// Decode looks for these whatever the type says.
		p.unsure = p.unsure || t.member(c, "image") != none || t.member(c, "toolResult") != none
		switch kind := t.member(c, "type"); {
		case t.is(kind, "text") && t.isString(t.member(c, "text")):
			text := t.member(c, "text")
			v := t.value(text)
			raw := v[1 : len(v)-1]
			texts++
			size += len(raw) + 1
			said = said || !blank(raw)
			p.unsure = p.unsure || p.mark(text) == redactedMark
		case t.is(kind, "image_url") && t.member(c, "text") == none:
		default:
			p.unsure = true
		}
	}
	if !said {
		return 0, false
	}
	return size, false
}
