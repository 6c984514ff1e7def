package consumer

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/segmentio/kafka-go"
)

// ErrStuck ends Run: a partition with work has not moved for twice ASSAY_CONSUMER_STUCK_AFTER.
var ErrStuck = errors.New("a partition is stuck")

// ErrRefused ends Run: the brokers refuse this client, and asking again will not help.
var ErrRefused = errors.New("the brokers refuse this client")

// CorruptError is a stored batch that cannot be read. The partition does not pass it.
type CorruptError struct {
	Offset int64
	Reason string
}

func (e *CorruptError) Error() string {
	return fmt.Sprintf("batch at offset %d: %s", e.Offset, e.Reason)
}

// panicError is a panic of the handler at one offset.
type panicError struct {
	offset int64
	value  any
	stack  []byte
}

func (e *panicError) Error() string { return fmt.Sprintf("panic at offset %d: %v", e.offset, e.value) }

// fetchClass says what is done about a fetch that failed.
type fetchClass int

const (
	fetchRetry      fetchClass = iota // ask again after a pause
	fetchMoved                        // the leader is elsewhere: look it up again first
	fetchOutOfRange                   // retention, or another log: compare with the log's ends
	fetchCorrupt                      // do not pass; a person has to look
)

// classify is the only place that knows the brokers' codes of a fetch.
func classify(err error) fetchClass {
	var corrupt *CorruptError
	switch {
	case errors.As(err, &corrupt), errors.Is(err, kafka.InvalidMessage):
		return fetchCorrupt
	case errors.Is(err, kafka.OffsetOutOfRange):
		return fetchOutOfRange
	case errors.Is(err, kafka.TopicAuthorizationFailed), errors.Is(err, errOldBroker):
		return fetchRetry
	default:
		return fetchMoved // leader errors, unknown partition, lost connections
	}
}

// refused reports whether an error says that this client is not wanted, whatever it
// asks.
func refused(err error) bool {
	var certificate *tls.CertificateVerificationError
	return errors.As(err, &certificate) ||
		refusedCertificate(err) ||
		errors.Is(err, kafka.SASLAuthenticationFailed) ||
		errors.Is(err, kafka.UnsupportedSASLMechanism) ||
		errors.Is(err, kafka.IllegalSASLState)
}

// refusedCertificate reports whether a broker did not take our certificate, or wants one
// and got none. The alert arrives with the first answer, after a handshake that looked
// fine, and its type is the library's secret: only its text tells.
func refusedCertificate(err error) bool {
	var op *net.OpError
	if !errors.As(err, &op) || op.Op != "remote error" {
		return false
	}
	alert := op.Err.Error()
	return strings.Contains(alert, "certificate") || strings.Contains(alert, "access denied")
}

// fenced reports whether no commit of this generation can succeed any more: another one
// runs, or its connection to the coordinator is gone, which the library never replaces.
func fenced(err error) bool {
	return errors.Is(err, kafka.UnknownMemberId) ||
		errors.Is(err, kafka.IllegalGeneration) ||
		errors.Is(err, kafka.RebalanceInProgress) ||
		errors.Is(err, kafka.FencedInstanceID) ||
		errors.Is(err, net.ErrClosed)
}
