package decode

// maxLayers bounds envelopes of JSON inside one another.
const maxLayers = 8

// An envelope is an object that carries another record. It is taken off before anyone
// asks whose record it is, under a named format too.
type envelope struct {
	name   string
	claims func(*object) bool
	open   reader
}

// envelopes are the first rows of section 2 of the format rules, in their order.
func envelopes() []envelope {
	return []envelope{
		{"kafka_connect", func(o *object) bool { return o.members == 2 && o.has(kSchema) && o.has(kPayload) }, openConnect},
		{"debezium", func(o *object) bool { return o.has(kOp) && o.has(kAfter) }, openDebezium},
		{"debezium", isDeleted, openDeleted},
		{"outbox", func(o *object) bool { return o.has(kAggregateType) && o.has(kPayload) }, openOutbox},
		{"cloudevents", func(o *object) bool { return o.has(kSpecVersion) && (o.has(kData) || o.has(kDataBase64)) }, openCloudEvent},
		{"cloudwatch", func(o *object) bool { return o.has(kMessageType) && o.has(kLogEvents) }, openCloudWatch},
	}
}

// envelope is the row that claims o, nil if it is none.
func (d *Decoder) envelope(o *object) *envelope {
	for i := range d.envelopes {
		if d.envelopes[i].claims(o) {
			return &d.envelopes[i]
		}
	}
	return nil
}

// inner reads what an envelope carries.
func (r *record) inner(v value) {
	switch {
	case v.isObject():
		r.object(v)
	case v.isArray():
		r.array(v)
	case v.isString():
		r.unwrap(v)
	case v.absent():
		r.skip(jsonNull)
	default:
		r.bad(r.take(), notAnObject, "an envelope around a %s", kindOf(v))
	}
}
