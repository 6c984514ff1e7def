package decode

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"assay/internal/interaction"
)

// An element is one interaction being read. Families fill it in; finish decides what
// the fields say together.
type element struct {
	r  *record
	it interaction.Interaction

	skipReason string // set when there is nothing to judge in it

	stop       string // why the provider stopped, as it wrote it
	failed     bool   // the record says in so many words that the call failed
	httpStatus int
	toolCalls  bool
	refused    bool
	noChoices  bool
	incomplete bool // a stream without its end
	unfinished bool // the rest of it never came
	redacted   bool
	inputFixed bool   // a path of the source points at the input
	withheld   string // why a text is elsewhere or unreadable: a skip reason

	responseID   string
	responseTime value
	endTime      value
	tools        []string // tool results of the current turn
	images       int
	kept         int // bytes of attributes
	untexted     int // context documents without text
}

func newElement(r *record, index int) *element {
	e := &element{r: r}
	e.it.Position = interaction.Position{Topic: r.rec.Topic, Partition: r.rec.Partition, Offset: r.rec.Offset, Element: index}
	if len(r.flags) > 0 {
		e.it.Flags = slices.Clone(r.flags)
	}
	if r.depth > 0 {
		e.flag("nested_json:" + strconv.Itoa(r.depth))
	}
	return e
}

func (e *element) flag(name string) {
	if e.it.Flags == nil {
		e.it.Flags = make([]string, 0, 4)
	}
	if !slices.Contains(e.it.Flags, name) {
		e.it.Flags = append(e.it.Flags, name)
	}
}

func (e *element) flagCount(name string, n int) { e.flag(name + ":" + strconv.Itoa(n)) }

// str reads a string value; other values give "".
func (e *element) str(v value) string {
	if !v.isString() {
		return ""
	}
	s, lossy := v.text()
	if lossy {
		e.flag("lossy_utf8")
	}
	return s
}

// maxLabelBytes bounds descriptive fields, which end up in dictionaries of tables.
const maxLabelBytes = 1024

// label reads a short descriptive field: a string, a number as written, or the name
// of an object such as {"name": "support"}.
func (e *element) label(v value) string {
	switch {
	case v.isString():
		s := e.str(v)
		if len(s) <= maxLabelBytes {
			return s
		}
		cut := maxLabelBytes
		for !utf8.RuneStart(s[cut]) {
			cut--
		}
		e.flag("label_cut")
		return strings.Clone(s[:cut])
	case v.isObject():
		return e.label(v.member("name"))
	case v.absent(), v.isArray():
		return ""
	}
	return string(v)
}

// text reads a text field. What is no string is kept as it was written, with the flag
// <name>_serialised: a list or an object printed any other way would be our invention.
func (e *element) text(v value, name string) *string {
	if v.absent() {
		return nil
	}
	var s string
	if v.isString() {
		s = e.str(v)
	} else {
		var lossy bool
		if s, lossy = v.compact(); lossy {
			e.flag("lossy_utf8")
		}
		e.flag(name + "_serialised")
	}
	if isRedacted(s) {
		e.redacted = true
		return nil
	}
	return &s
}

// isRedacted knows the marks that loggers leave in place of a text.
func isRedacted(s string) bool {
	switch s {
	case "__REDACTED__", "redacted-by-litellm", "[REDACTED]":
		return true
	}
	return false
}

// texts reads a string or a list of strings, without the blank ones. An element that
// is an object gives its text under one of the usual names; one without is counted.
func (e *element) texts(v value) []string {
	if v.absent() {
		return nil
	}
	if !v.isArray() {
		if t := e.document(v); !interaction.Blank(t) {
			return []string{t}
		}
		return nil
	}
	var all []string
	for w := walk(v); w.next(); {
		if w.val.absent() {
			continue
		}
		if t := e.document(w.val); !interaction.Blank(t) {
			all = append(all, t)
		} else if w.val.isObject() {
			e.untexted++
		}
	}
	return all
}

func (e *element) document(v value) string {
	switch {
	case v.isString():
		return e.str(v)
	case v.isObject():
		for _, name := range []string{"text", "content", "page_content", "document"} {
			if t := v.member(name); t.isString() {
				return e.str(t)
			}
		}
		return ""
	}
	s, _ := v.compact()
	return s
}

// setID takes the first id that says something, of whatever JSON type.
func (e *element) setID(candidates ...value) {
	for _, v := range candidates {
		if id := e.id(v); !interaction.Blank(id) {
			e.it.ID = id
			return
		}
	}
}

func (e *element) id(v value) string {
	switch {
	case v.absent():
		return ""
	case v.isString():
		return e.str(v)
	case v.isObject():
		if oid := v.member("$oid"); oid.isString() {
			return e.str(oid)
		}
	}
	s, _ := v.compact()
	return s
}

const (
	maxIDBytes  = 512
	keptIDBytes = 440
)

// boundedID keeps ids short enough for a key: the hash keeps long ones apart.
func boundedID(id string) string {
	if len(id) <= maxIDBytes {
		return id
	}
	cut := keptIDBytes
	for !utf8.RuneStart(id[cut]) {
		cut--
	}
	sum := sha256.Sum256([]byte(id))
	return id[:cut] + "~" + hex.EncodeToString(sum[:])
}

// derivedID names an interaction by its place in the log: redelivery gives the same.
func (e *element) derivedID() string {
	p := e.it.Position
	if e.r.many {
		return fmt.Sprintf("%s/%d/%d#%d", p.Topic, p.Partition, p.Offset, p.Element)
	}
	return fmt.Sprintf("%s/%d/%d", p.Topic, p.Partition, p.Offset)
}
