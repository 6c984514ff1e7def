package engine

import (
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"
)

// ClickHouse's codes that the front itself raises.
const (
	codeUnknownFormat   = 73
	codeSyntaxError     = 62
	codeUnknownSetting  = 115
	codeTooManyQueries  = 202
	codeNotImplemented  = 48
	codeAuthentication  = 516
	codeCannotRead      = 33
	codeNoEngine        = 1001 // STD_EXCEPTION: an error text without a code
	codeQueryTooLarge   = 307
	codeBadRequestParam = 36
)

// An Exception is a failed statement in ClickHouse's terms.
type Exception struct {
	Code    int
	Message string // "Code: N. DB::Exception: ... (NAME)", as a server writes it
}

func (e *Exception) Error() string { return e.Message }

var codePattern = regexp.MustCompile(`Code: (\d+)\.`)

// newException reads the code out of the engine's text. Retry classes hang on
// the code, so a text without one gets the server's code for such cases.
func newException(text string) *Exception {
	text = strings.TrimSpace(text)
	if at := codePattern.FindStringSubmatchIndex(text); at != nil {
		code, err := strconv.Atoi(text[at[2]:at[3]])
		if err == nil && code > 0 {
			return &Exception{Code: code, Message: text[at[0]:]}
		}
	}
	return exceptionf(codeNoEngine, "%s", text)
}

// exceptionf is an exception of the front, in the form of one of the engine.
func exceptionf(code int, format string, args ...any) *Exception {
	return &Exception{Code: code, Message: fmt.Sprintf("Code: %d. DB::Exception: ", code) + fmt.Sprintf(format, args...)}
}

// httpStatus maps a code to the status a ClickHouse server answers with.
func httpStatus(code int) int {
	switch code {
	case 194: // REQUIRED_PASSWORD
		return http.StatusUnauthorized
	case 192, 193, codeAuthentication:
		return http.StatusForbidden
	case 6, 7, 26, 27, 36, 38, 41, 42, 43, 44, 53, codeSyntaxError, 63, 69, 72, codeUnknownFormat, 130, 131, 456, 457:
		return http.StatusBadRequest
	case 46, 47, 50, 56, 60, 81, codeUnknownSetting:
		return http.StatusNotFound
	case 159: // TIMEOUT_EXCEEDED
		return http.StatusRequestTimeout
	case codeQueryTooLarge:
		return http.StatusRequestEntityTooLarge
	case codeNotImplemented:
		return http.StatusNotImplemented
	case codeTooManyQueries, 209, 439: // queue full, SOCKET_TIMEOUT, CANNOT_SCHEDULE_TASK
		return http.StatusServiceUnavailable
	default:
		return http.StatusInternalServerError
	}
}
