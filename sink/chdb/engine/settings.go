package engine

import (
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// notSettings are URL parameters of ClickHouse's HTTP interface that are no
// settings; the front reads those it needs and the rest change nothing here.
var notSettings = []string{
	"query", "database", "default_format", "client_protocol_version", "query_id", "quota_key",
	"user", "password", "wait_end_of_query", "buffer_size", "session_timeout", "session_check",
}

// request is what the URL of one request says.
type request struct {
	query    string
	database string
	queryID  string
	format   string
	revision uint64
	comment  string
	settings []param // sorted by name
	params   []param
}

// readURL sorts a request's parameters. known is the engine's own list of
// settings: nothing else gets into the SQL, and values are quoted.
func readURL(values url.Values, known map[string]bool) (request, *Exception) {
	r := request{
		query: values.Get("query"), database: values.Get("database"), queryID: values.Get("query_id"),
		format: values.Get("default_format"),
	}
	if r.format == "" {
		r.format = "TabSeparated"
	}
	if v := values.Get("client_protocol_version"); v != "" {
		revision, err := strconv.ParseUint(v, 10, 32)
		if err != nil {
			return r, exceptionf(codeBadRequestParam, "client_protocol_version=%q is no number (BAD_ARGUMENTS)", v)
		}
		r.revision = revision
	}
	for name, all := range values {
		value := all[len(all)-1]
		parameter, isParam := strings.CutPrefix(name, "param_")
		switch {
		case slices.Contains(notSettings, name):
		case isParam:
			r.params = append(r.params, param{parameter, value})
		case name == "session_id":
			return r, exceptionf(codeNotImplemented, "sessions are not offered by the embedded engine (NOT_IMPLEMENTED)")
		case name == "compress" || name == "decompress" || name == "enable_http_compression":
			if on, err := strconv.ParseBool(value); err != nil || on {
				return r, exceptionf(codeBadRequestParam, "%s=%s: the embedded engine does not compress; set the client's compression to none (BAD_ARGUMENTS)", name, value)
			}
		case !known[name]:
			return r, exceptionf(codeUnknownSetting, "Unknown setting '%s' (UNKNOWN_SETTING)", name)
		default:
			if name == "log_comment" {
				r.comment = value
			}
			r.settings = append(r.settings, param{name, value})
		}
	}
	byName := func(a, b param) int { return strings.Compare(a.name, b.name) }
	slices.SortFunc(r.settings, byName)
	slices.SortFunc(r.params, byName)
	return r, nil
}

// has tells whether the request states a setting itself.
func (r request) has(name string) bool {
	return slices.ContainsFunc(r.settings, func(p param) bool { return p.name == name })
}

// bounded adds the limits of cfg where the request states none. Reads get a time
// and a size: the engine's own defaults are unlimited.
func (r request) bounded(s statement, cfg Config) []param {
	settings := slices.Clone(r.settings)
	limit := func(name, value string) {
		if !r.has(name) {
			settings = append(settings, param{name, value})
		}
	}
	limit("max_memory_usage", strconv.FormatInt(cfg.MaxMemory, 10))
	if reads(s.verb) {
		limit("max_execution_time", strconv.FormatFloat(cfg.MaxTime.Seconds(), 'f', -1, 64))
		limit("max_result_bytes", strconv.FormatInt(cfg.MaxResult, 10))
	}
	return settings
}

func reads(verb string) bool {
	switch verb {
	case "SELECT", "WITH", "SHOW", "DESCRIBE", "DESC", "EXISTS", "EXPLAIN", "CHECK", "FROM":
		return true
	}
	return false
}
