// Package server answers over HTTP: it judges what is sent to it, tells what the
// monitor has found out, explains any interaction, and shows the built-in page.
//
//	POST /api/v1/evaluate          judge an item or up to 1,000
//	GET  /api/v1/evaluators        which evaluators there are, and their settings
//	GET  /api/v1/evaluators/{name} one of them with its questions
//	POST /api/v1/aggregate         a set metric over results that you have
//	GET  /api/v1/aggregates        which set metrics there are
//	POST /api/v1/labels            what people say of judged interactions, up to 1,000
//	GET  /api/v1/quality           the monitor's newest snapshot
//	GET  /api/v1/quality/series    one slice's estimates over time
//	GET  /api/v1/alarms            open alarms and the latest closed ones
//	GET  /api/v1/why/{id}          what became of an interaction, per check
//	GET  /api/v1/pipeline          how the stream of this process is doing
//	GET  /openapi.json             all of these, described
//	GET  /metrics, /-/healthy, /-/ready, /
//
// It promises that a request which was understood gets 200 whatever the statuses of
// its results, that a refused one gets problem details (RFC 9457) that name the field
// and what would be right, that a request which ends early stops its judge calls, and
// that nothing it serves asks another host for anything. What a client did wrong is
// never logged as an error.
//
// It keeps no state; several may run. It does not authenticate yet: whoever reaches
// the address may spend the judges' budget.
//
// Open server.go first (life and end), then routes.go, then evaluate.go. Only cmd/assay
// calls New and Run; Why is also the command of that name, and labels.go reads what the
// command labels imports.
package server
