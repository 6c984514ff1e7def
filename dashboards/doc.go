// Package dashboards holds what people look at. Page is the built-in page: a document, a
// style and a few modules without a build step, served by internal/server, that need nothing from anywhere else.
//
// The page gets its data from the public API alone, so whatever it shows a program can
// read too. It promises to draw no estimate without its interval, to leave gaps as
// gaps, and to say so when it is loading, stale, empty or cut off.
//
// Grafana is the dashboards for Grafana and the files that provision them; assay
// dashboards export writes them out. They keep the page's promises, name data sources by
// variable only, and their SQL gives the monitor's numbers: cmd/assay tests each query
// on real engines.
package dashboards
