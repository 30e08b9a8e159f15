package remote

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Class is the class of a failed request, which decides how the package goes on.
type Class uint8

const (
	// Transient: the same request may succeed later. It is retried, and finally becomes an error
	// without a kind.
	Transient Class = iota
	// Denied: a missing permission, or another reason outside of the object that stays the same in
	// a retry.
	Denied
	// Missing: the object does not exist.
	Missing
	// Changed: the object no longer has the tag or size.
	Changed
	// PastEnd: the object has no byte in the range, as its size in Failure.Size says.
	PastEnd
	// Refused: the store or the URI cannot be read by this program.
	Refused
)

// Failure is a failed request with its class.
type Failure struct {
	Class Class
	After time.Duration // the wait that the server asks for, or 0
	Size  int64         // of the object, with PastEnd
	Err   error
}

// Fail returns a Failure.
func Fail(c Class, err error) *Failure { return &Failure{Class: c, Err: err} }

func (f *Failure) Error() string { return f.Err.Error() }

// Unwrap returns the cause.
func (f *Failure) Unwrap() error { return f.Err }

// Status returns the failure for an HTTP status, or nil for 200 and 206. h may be nil.
func Status(code int, h http.Header) *Failure {
	err := fmt.Errorf("HTTP status %d %s", code, http.StatusText(code))
	switch code {
	case http.StatusOK, http.StatusPartialContent:
		return nil
	case http.StatusNotFound, http.StatusGone: // the kind of the error says the text of the status
		return Fail(Missing, fmt.Errorf("HTTP status %d", code))
	case http.StatusPreconditionFailed:
		return Fail(Changed, err)
	case http.StatusRequestedRangeNotSatisfiable:
		// Servers also refuse ranges for reasons of their own. The size says that it is the object (RFC 9110, 15.5.17).
		if size, perr := parseSize(strings.TrimPrefix(h.Get("Content-Range"), "bytes */")); perr == nil {
			return &Failure{Class: PastEnd, Size: size, Err: err}
		}
		return Fail(Transient, err)
	case http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests, http.StatusInternalServerError,
		http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return &Failure{Class: Transient, After: retryAfter(h), Err: err}
	}
	return Fail(Denied, err)
}

// retryAfter parses a Retry-After header (RFC 9110, 10.2.3) in seconds. The form with a date is
// ignored.
func retryAfter(h http.Header) time.Duration {
	seconds, err := strconv.ParseUint(h.Get("Retry-After"), 10, 16)
	if err != nil {
		return 0
	}
	return time.Duration(seconds) * time.Second
}

// Classify returns the failure in the chain of an error, or makes one: an invalid certificate or
// unknown host is Denied, every other network error Transient.
func Classify(err error) *Failure {
	if f, ok := errors.AsType[*Failure](err); ok {
		return f
	}
	var dns *net.DNSError
	var cert *tls.CertificateVerificationError
	var host x509.HostnameError
	if errors.As(err, &dns) && dns.IsNotFound || errors.As(err, &cert) || errors.As(err, &host) {
		return Fail(Denied, err)
	}
	if errors.Is(err, context.DeadlineExceeded) {
		// The caller must not take it for its own deadline.
		return Fail(Transient, errTimeout)
	}
	return Fail(Transient, err)
}

var errTimeout = errors.New("no response in time")
