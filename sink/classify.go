package sink

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"syscall"

	"github.com/ClickHouse/clickhouse-go/v2"
)

// Codes of ClickHouse's src/Common/ErrorCodes.cpp that decide what is done.
const (
	codeUnexpectedEOF       = 3
	codeCannotParseText     = 6
	codeNoSuchColumn        = 16
	codeCannotParseInput    = 27
	codeTypeMismatch        = 53
	codeUnknownTable        = 60
	codeOutOfBound          = 69
	codeUnknownDatabase     = 81
	codeUnknownSetting      = 115
	codeTimeout             = 159
	codeReadonly            = 164
	codeUnknownUser         = 192
	codeWrongPassword       = 193
	codeRequiredPassword    = 194
	codeTooManyQueries      = 202
	codeSocketTimeout       = 209
	codeNetworkError        = 210
	codeMemoryLimit         = 241
	codeTableIsReadOnly     = 242
	codeNotEnoughSpace      = 243
	codeTooManyParts        = 252
	codeTooFewReplicas      = 285
	codeUnknownInsertStatus = 319
	codeSystemError         = 425
	codeConstraint          = 469
	codeNotEnoughPrivileges = 497
	codeAuthentication      = 516
	codeKeeper              = 999
)

// classify says what may be done about a failed insert. The server's own code decides
// before anything else: over HTTP it arrives inside an HTTPError whose status says less.
func classify(err error) Class {
	var ex *clickhouse.Exception
	if errors.As(err, &ex) {
		switch ex.Code {
		case codeUnexpectedEOF, codeTimeout, codeTooManyQueries, codeSocketTimeout, codeNetworkError,
			codeTableIsReadOnly, codeTooFewReplicas, codeUnknownInsertStatus, codeSystemError, codeKeeper:
			return Transient
		case codeTooManyParts:
			return Overload
		case codeMemoryLimit:
			return Memory
		case codeCannotParseText, codeCannotParseInput, codeTypeMismatch, codeOutOfBound, codeConstraint:
			return Poison
		case codeReadonly, codeNotEnoughSpace:
			return ReadOnly
		case codeNoSuchColumn, codeUnknownTable, codeUnknownDatabase, codeNotEnoughPrivileges, codeAuthentication,
			codeUnknownUser, codeWrongPassword, codeRequiredPassword, codeUnknownSetting:
			return Fatal
		default:
			return Unknown
		}
	}
	var status *clickhouse.HTTPError
	if errors.As(err, &status) {
		switch status.StatusCode {
		case http.StatusUnauthorized, http.StatusForbidden:
			return Fatal
		case http.StatusRequestTimeout, http.StatusTooManyRequests, http.StatusInternalServerError,
			http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
			// a proxy, or an engine that is starting or full
			return Transient
		default:
			return Unknown
		}
	}
	if untrusted(err) {
		return Fatal
	}
	if lostConnection(err) {
		return Transient
	}
	return Unknown
}

// untrusted reports that the two sides cannot agree on TLS: the same again tomorrow, so
// it must not count as a connection that was lost.
func untrusted(err error) bool {
	var certificate *tls.CertificateVerificationError
	var notTLS tls.RecordHeaderError
	return errors.As(err, &certificate) || errors.As(err, &notTLS) || errors.Is(err, http.ErrSchemeMismatch) || wantsCertificate(err)
}

// wantsCertificate reports a server that refuses us for the certificate that we have not
// shown, or for the one that we have. It says so in an alert, which has no exported type.
func wantsCertificate(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "remote error" && strings.Contains(op.Err.Error(), "certificate")
}

// lostConnection reports errors after which nobody can say whether the insert is stored.
func lostConnection(err error) bool {
	for _, known := range []error{
		io.EOF, io.ErrUnexpectedEOF, io.ErrClosedPipe, os.ErrDeadlineExceeded, net.ErrClosed,
		context.DeadlineExceeded, context.Canceled, clickhouse.ErrAcquireConnTimeout, clickhouse.ErrConnectionClosed,
		syscall.ECONNRESET, syscall.ECONNREFUSED, syscall.EPIPE,
	} {
		if errors.Is(err, known) {
			return true
		}
	}
	var network net.Error
	var address *url.Error
	return errors.As(err, &network) || errors.As(err, &address)
}

// serverCode returns ClickHouse's code, or 0 when the error is not the server's.
func serverCode(err error) int32 {
	var ex *clickhouse.Exception
	if errors.As(err, &ex) {
		return ex.Code
	}
	return 0
}
