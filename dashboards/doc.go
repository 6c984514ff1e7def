// Package dashboards holds what people look at. Page is the built-in page: a document, a
// style and a few modules without a build step, served by internal/server, that need nothing from anywhere else.
//
// The page gets its data from the public API alone, so whatever it shows a program can
// read too. It promises to draw no estimate without its interval, to leave gaps as
// gaps, and to say so when it is loading, stale, empty or cut off.
package dashboards
