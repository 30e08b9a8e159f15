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
	"time"
)

// Class says what follows from a failed request.
type Class uint8

const (
	// Transient: the same request may work later. It is tried again, and in the end an error without a kind.
	Transient Class = iota
	// Denied: no permission, or something else that no repetition changes and that says nothing about the object.
	Denied
	// Missing: there is no such object.
	Missing
	// Changed: the object is not the one with the tag.
	Changed
	// PastEnd: the object has no byte in the range.
	PastEnd
	// Refused: the store, or the URI, is none that can be read here.
	Refused
)

// Failure is a request that failed, and what follows from it.
type Failure struct {
	Class Class
	After time.Duration // the server asks to wait as long, 0 if it does not
	Err   error
}

// Fail returns a Failure.
func Fail(c Class, err error) *Failure { return &Failure{Class: c, Err: err} }

func (f *Failure) Error() string { return f.Err.Error() }

// Unwrap returns the cause.
func (f *Failure) Unwrap() error { return f.Err }

// Status returns the failure that an HTTP status stands for, or nil for 200 and 206. h may be nil.
func Status(code int, h http.Header) *Failure {
	err := fmt.Errorf("HTTP status %d %s", code, http.StatusText(code))
	switch code {
	case http.StatusOK, http.StatusPartialContent:
		return nil
	case http.StatusNotFound, http.StatusGone:
		return Fail(Missing, err)
	case http.StatusPreconditionFailed:
		return Fail(Changed, err)
	case http.StatusRequestedRangeNotSatisfiable:
		return Fail(PastEnd, err)
	case http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests, http.StatusInternalServerError,
		http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return &Failure{Class: Transient, After: retryAfter(h), Err: err}
	}
	return Fail(Denied, err)
}

// retryAfter reads the header (RFC 9110, 10.2.3) in its form of seconds; the form of a date is passed over.
func retryAfter(h http.Header) time.Duration {
	s, err := strconv.ParseUint(h.Get("Retry-After"), 10, 16)
	if err != nil {
		return 0
	}
	return time.Duration(s) * time.Second
}

// Classify returns the failure in an error's chain, or makes one: a wrong certificate and a host that does not
// exist are Denied, everything else of a network is Transient.
func Classify(err error) *Failure {
	var f *Failure
	if errors.As(err, &f) {
		return f
	}
	var dns *net.DNSError
	var cert *tls.CertificateVerificationError
	var host x509.HostnameError
	if errors.As(err, &dns) && dns.IsNotFound || errors.As(err, &cert) || errors.As(err, &host) {
		return Fail(Denied, err)
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return Fail(Transient, errTimeout) // not the caller's deadline: it must not be taken for that
	}
	return Fail(Transient, err)
}

var errTimeout = errors.New("no answer in time")
