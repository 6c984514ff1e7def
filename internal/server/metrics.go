package server

import (
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// otherRoute counts what matches no route: its paths are the clients' invention.
const otherRoute = "other"

type metrics struct {
	requests *prometheus.CounterVec   // by route and class of status
	seconds  *prometheus.HistogramVec // by route
	routes   map[string]bool
}

func newMetrics(reg prometheus.Registerer, routes []string) (*metrics, error) {
	m := &metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "assay_http_requests_total",
			Help: "Requests answered, by route and class of status.",
		}, []string{"route", "status"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:                            "assay_http_request_seconds",
			Help:                            "Time from a request's header to the end of its answer.",
			Buckets:                         []float64{.003, .01, .03, .1, .3, 1, 3, 10, 30, 100},
			NativeHistogramBucketFactor:     1.1,
			NativeHistogramMaxBucketNumber:  100,
			NativeHistogramMinResetDuration: time.Hour,
		}, []string{"route"}),
		routes: make(map[string]bool, len(routes)),
	}
	for _, r := range append(routes, otherRoute) {
		m.routes[r] = true
		m.seconds.WithLabelValues(r)
		for _, class := range []string{"2xx", "3xx", "4xx", "5xx"} {
			m.requests.WithLabelValues(r, class)
		}
	}
	for _, c := range []prometheus.Collector{m.requests, m.seconds} {
		if err := reg.Register(c); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// count wraps the routes. The mux writes the pattern it chose into the request.
func (m *metrics) count(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		start := time.Now()
		sw := &statusWriter{ResponseWriter: w, status: http.StatusOK}
		next.ServeHTTP(sw, r)
		route := r.Pattern
		if !m.routes[route] {
			route = otherRoute
		}
		m.requests.WithLabelValues(route, string('0'+rune(sw.status/100))+"xx").Inc()
		m.seconds.WithLabelValues(route).Observe(time.Since(start).Seconds())
	})
}

// statusWriter remembers the status. Unwrap lets deadlines reach the connection.
type statusWriter struct {
	http.ResponseWriter
	status  int
	written bool
}

func (w *statusWriter) WriteHeader(status int) {
	if !w.written {
		w.status, w.written = status, true
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *statusWriter) Write(b []byte) (int, error) {
	w.written = true
	return w.ResponseWriter.Write(b)
}

func (w *statusWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
