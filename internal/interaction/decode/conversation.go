package decode

import (
	"strings"

	"assay/internal/interaction"
)

// isConversation reports whether v is a list of messages: objects with a role.
func isConversation(v value) bool {
	if !v.isArray() {
		return false
	}
	w := walk(v)
	return w.next() && w.val.isObject() && w.val.member("role").isString()
}

// isParts reports whether v is a list of typed content parts.
func isParts(v value) bool {
	if !v.isArray() {
		return false
	}
	w := walk(v)
	return w.next() && w.val.isObject() && w.val.member("type").isString() && w.val.member("text").isString()
}

// conversation reads a list of messages. The input is the last user turn that has
// text; results of tools after it are context. With answered, a last assistant turn is
// the output and no history.
func (e *element) conversation(list value, answered bool) {
	turns, last := 0, interaction.Message{}
	var answer value
	for w := walk(list); w.next(); {
		var role string
		var content value
		for m := walk(w.val); m.obj && m.next(); {
			switch string(m.key()) {
			case "role":
				role = e.label(m.val)
			case "content":
				content = m.val
			}
		}
		if role == "" && isText(w.val.member("type"), "function_call_output") {
			role, content = "tool", w.val.member("output")
		}
		if role == "" && content == nil {
			continue // a call, a reference: an item that says nothing
		}
		text := e.joinedParts(content)
		if answered {
			answer = nil
			if role == "assistant" {
				answer = w.val
			}
		}
		switch role {
		case "user":
			// Anthropic logs the results of tools inside a user's message.
			results, only := e.toolResults(content)
			if !only {
				turns++
			}
			if !interaction.Blank(text) {
				if isRedacted(text) {
					e.redacted = true
				} else {
					last = interaction.Message{Role: role, Text: text}
					e.tools = e.tools[:0]
				}
			}
			e.tools = append(e.tools, results...)
		case "tool", "function":
			if !interaction.Blank(text) {
				e.tools = append(e.tools, text)
			}
		}
		e.it.Messages = append(e.it.Messages, interaction.Message{Role: role, Text: text})
	}
	if turns > 1 {
		e.flagCount("turns", turns)
	}
	if last.Role != "" {
		e.it.Input = &last.Text
	}
	if answer != nil {
		e.it.Messages = e.it.Messages[:len(e.it.Messages)-1]
		e.message(answer)
	}
}

// lastAnswer is the text of the last assistant turn of a list of messages.
func (e *element) lastAnswer(list value) *string {
	var answer value
	for w := walk(list); w.next(); {
		if isText(w.val.member("role"), "assistant") {
			answer = w.val
		}
	}
	if answer != nil {
		e.message(answer)
	}
	return e.it.Output
}

// toolResults reads the results of tools among the blocks of a user's message, and
// whether it holds nothing else.
func (e *element) toolResults(content value) (results []string, only bool) {
	blocks := 0
	for w := walk(content); !w.obj && w.next(); {
		blocks++
		inner := w.val.member("toolResult").member("content")
		if isText(w.val.member("type"), "tool_result") {
			inner = w.val.member("content")
		}
		if inner == nil {
			continue
		}
		blocks--
		only = true
		if text := strings.Join(e.parts(inner), "\n"); !interaction.Blank(text) {
			results = append(results, text)
		}
	}
	return results, only && blocks == 0
}

// joinedParts reads a message's content as one text.
func (e *element) joinedParts(content value) string {
	if content.isString() {
		return e.str(content)
	}
	return strings.Join(e.parts(content), "\n")
}

// parts reads a message's content: a text, or a list of parts of which the texts
// count. Pictures and sounds leave a mark in the count, never their bytes.
func (e *element) parts(content value) []string {
	if content.isString() {
		return []string{e.str(content)}
	}
	var all []string
	for w := walk(content); !w.obj && w.next(); {
		if w.val.isString() {
			all = append(all, e.str(w.val))
			continue
		}
		kind := e.label(w.val.member("type"))
		switch {
		case strings.Contains(kind, "image"), w.val.member("image").isObject():
			e.images++
		case w.val.member("text").isString():
			all = append(all, e.str(w.val.member("text")))
		case kind == "refusal":
			e.refused = true
			all = append(all, e.str(w.val.member("refusal")))
		}
	}
	return all
}
