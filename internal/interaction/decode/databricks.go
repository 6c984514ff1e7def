package decode

import (
	"strconv"
	"strings"
)

// readDatabricks reads a row of an inference table, in any of its three generations.
func readDatabricks(e *element, o *object) {
	it := &e.it
	var start, took, codes value
	user := ""
	for w := walk(o.raw); w.next(); {
		switch string(w.key()) {
		case "databricks_request_id", "invocation_id":
			if it.ID == "" {
				e.setID(w.val)
			}
		case "request_time", "timestamp_ms", "event_time":
			if start == nil && !w.val.absent() {
				start = w.val
			}
		case "execution_duration_ms", "execution_time_ms", "latency_ms":
			if took == nil && !w.val.absent() {
				took = w.val
			}
		case "served_entity_id":
			it.Route = e.label(w.val)
		case "request_metadata":
			if name := e.label(w.val.member("endpoint_name")); name != "" {
				it.Route = name
			}
		case "requester":
			user = e.label(w.val)
		case "status_code":
			e.gatewayStatus(w.val)
		case "sampling_fraction":
			// What was thinned out upstream weighs more; the sampler multiplies by it.
			if f, ok := e.number(w.val, "sampling_fraction"); ok && f > 0 && f < 1 {
				e.flag("upstream_sampling:" + strconv.FormatFloat(f, 'g', -1, 64))
			}
		case "logging_error_codes":
			codes = w.val
		}
	}
	e.bodies(o.exact[kRequest], o.exact[kResponse])
	for w := walk(codes); !w.obj && w.next(); {
		if strings.Contains(e.label(w.val), "SIZE_EXCEEDED") {
			e.withheld = contentExternal
		}
	}
	e.settle(user, "", "")
	e.attributes(o)
	e.timed(start, nil, took)
}
