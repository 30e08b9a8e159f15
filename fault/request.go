package fault

import (
	"fmt"
)

// RequestError is a failed request that says nothing about the object: the network, the server or a
// missing permission is the reason. It has no kind: policies on bad samples leave it alone.
type RequestError struct {
	URI      string
	Part     string // "byte range", "listing"
	Off      int64  // first byte of the range, or fault.NoOffset
	Attempts int    // number of requests
	Denied   bool   // a permission is missing, or another reason that a retry does not change
	Err      error  // of the last request
}

// Error returns "URI: PART at OFFSET: reason, after N attempts", without the secrets of the URI.
func (e *RequestError) Error() string {
	place := ""
	if e.Off >= 0 {
		place = fmt.Sprintf(" at %d", e.Off)
	}
	tries := "1 attempt"
	if e.Attempts != 1 {
		tries = fmt.Sprintf("%d attempts", e.Attempts)
	}
	return WithoutSecrets(fmt.Sprintf("%s: %s%s: %v, after %s", e.URI, e.Part, place, e.Err, tries))
}

// Unwrap returns the error of the last attempt.
func (e *RequestError) Unwrap() error { return e.Err }
