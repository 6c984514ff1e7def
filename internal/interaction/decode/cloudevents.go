package decode

import (
	"encoding/base64"
	"fmt"
	"strings"

	"assay/internal/interaction"
)

// An event is what a CloudEvent says about its data. The data's own id and time win:
// the event is about the logging, the data about the call.
type event struct {
	id   string
	time value
}

// cloudEventByHeader reads the binary mode: attributes stand in headers, the value is
// the data.
func (r *record) cloudEventByHeader() {
	if _, ok := r.rec.Header("ce_specversion"); !ok {
		if _, ok := r.rec.Header("ce_id"); !ok {
			return
		}
	}
	id, _ := r.rec.Header("ce_id")
	at, _ := r.rec.Header("ce_time")
	r.event = event{id: strings.ToValidUTF8(string(id), "\ufffd"), time: quoted(at)}
	r.wrap("cloudevents")
}

// openCloudEvent reads the structured mode.
func openCloudEvent(r *record, o *object) {
	r.event = event{time: o.exact[kTime]}
	if id := o.exact[kID]; id.isString() {
		r.event.id, _ = id.text()
	}
	if data := o.exact[kData]; !data.absent() {
		r.inner(data)
		return
	}
	encoded := o.exact[kDataBase64]
	if !encoded.isString() {
		r.skip(jsonNull)
		return
	}
	s, _ := encoded.text()
	data, err := base64.StdEncoding.DecodeString(s)
	if err != nil {
		r.bad(r.take(), notJSON, "data_base64: %v", err)
		return
	}
	if len(data) == 0 {
		r.skip(emptyValue)
		return
	}
	r.peel(data)
}

// eventID is the id of the event around the element, "" for none. Several elements of
// one event share it, so each adds its place.
func (e *element) eventID() string {
	id := e.r.event.id
	if interaction.Blank(id) {
		return ""
	}
	if e.r.many {
		return fmt.Sprintf("%s#%d", id, e.it.Element)
	}
	return id
}
