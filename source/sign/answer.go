package sign

import (
	"cmp"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/net/http/httpguts"

	"github.com/chaski-eo/chaski/source/remote"
)

const (
	// maxAnswer limits an answer, in bytes. The longest ones are JSON Web Tokens of some KiB.
	maxAnswer = 64 << 10
	// maxHeaders limits the headers of an answer. Stores need one to three.
	maxHeaders = 16
)

// Signature is what makes a store answer a request. It has no text form, which keeps it out of
// logs.
type Signature struct {
	url    *url.URL // in place of the object's own, or nil
	query  string
	header http.Header

	got   time.Time
	renew time.Time // a new one is requested from then on
	until time.Time // it is not used after
}

// Bearer returns a signature with a bearer token that lasts forever, or nil if the token is empty.
func Bearer(token string) *Signature {
	if token == "" {
		return nil
	}
	return &Signature{header: http.Header{"Authorization": {"Bearer " + token}}}
}

// String hides the signature.
func (s *Signature) String() string { return "Signature(...)" }

// GoString hides the signature.
func (s *Signature) GoString() string { return s.String() }

// URL returns the signed URL of an object. A nil *Signature changes nothing.
func (s *Signature) URL(u *url.URL) *url.URL {
	switch {
	case s == nil:
		return u
	case s.url != nil:
		return s.url
	case s.query == "":
		return u
	}
	signed := *u
	if signed.RawQuery != "" {
		signed.RawQuery += "&"
	}
	signed.RawQuery += s.query
	return &signed
}

// Set adds the headers to a request.
func (s *Signature) Set(h http.Header) {
	if s != nil {
		for name, v := range s.header {
			h[name] = slices.Clone(v)
		}
	}
}

// Remove removes the headers from a request that goes elsewhere.
func (s *Signature) Remove(h http.Header) {
	if s != nil {
		for name := range s.header {
			delete(h, name)
		}
	}
}

// serviceAnswer is the JSON of an answer. token and msft:expiry are the names of the token service of
// Planetary Computer.
type serviceAnswer struct {
	URL       string            `json:"url"`
	Query     string            `json:"query"`
	Token     string            `json:"token"`
	Headers   map[string]string `json:"headers"`
	Expires   string            `json:"expires"`
	Expiry    string            `json:"msft:expiry"`
	ExpiresIn *float64          `json:"expires_in"`
}

// Parse reads an answer to a request made at start: a JSON object with "url", the URL to request
// in place of the object's; "query", to add to its URL; or "headers". Its end is "expires" (RFC
// 3339) or "expires_in" (seconds); without one it is the expiry in the query, in the forms of
// Azure and S3, else the moment when the store refuses the signature. Errors contain no text of
// the answer.
func Parse(b []byte, start time.Time) (*Signature, error) {
	var a serviceAnswer
	if len(b) > maxAnswer {
		return nil, errors.New("the answer is too long")
	}
	if json.Unmarshal(b, &a) != nil {
		return nil, errors.New("the answer is no JSON object with url, query or headers")
	}
	a.Query = cmp.Or(a.Query, a.Token)
	signature := &Signature{query: strings.TrimPrefix(a.Query, "?"), got: start}
	if err := signature.take(&a); err != nil {
		return nil, remote.Fail(remote.Denied, err)
	}
	end, err := a.end(signature, start)
	if err != nil {
		return nil, remote.Fail(remote.Denied, err)
	}
	signature.last(end, start)
	return signature, nil
}

// take checks the parts of an answer, and takes them over.
func (s *Signature) take(a *serviceAnswer) error {
	switch {
	case a.URL == "" && s.query == "" && len(a.Headers) == 0:
		return errors.New("the answer has no url, query or headers")
	case a.URL != "" && s.query != "":
		return errors.New("the answer has a url and a query")
	case len(a.Headers) > maxHeaders:
		return errors.New("the answer has too many headers")
	case strings.ContainsFunc(s.query, func(c rune) bool { return c <= ' ' || c >= 0x7f || c == '#' }):
		return errors.New("the query of the answer has characters that a URL has not")
	}
	if a.URL != "" {
		address, err := url.Parse(a.URL)
		if err != nil || address.Host == "" || !private(address) {
			return errors.New("the url of the answer is not one of https")
		}
		address.Fragment = ""
		s.url = address
	}
	s.header = http.Header{}
	for name, value := range a.Headers {
		if !httpguts.ValidHeaderFieldName(name) || !httpguts.ValidHeaderFieldValue(value) {
			return errors.New("a header of the answer is not valid")
		}
		name = http.CanonicalHeaderKey(name)
		switch name {
		case "Range", "If-Match", "Accept-Encoding", "Host", "Connection", "Content-Length", "Transfer-Encoding":
			return errors.New("the answer has a header that belongs to the request: " + name)
		}
		s.header[name] = []string{value}
	}
	return nil
}

// end returns when a signature ends, or the zero time if the answer does not say it.
func (a *serviceAnswer) end(s *Signature, start time.Time) (time.Time, error) {
	text := cmp.Or(a.Expires, a.Expiry)
	switch {
	case a.ExpiresIn != nil:
		const most = 1e9 // seconds, about 30 years, which a Duration holds
		if !(*a.ExpiresIn >= 0) {
			return time.Time{}, errors.New("expires_in of the answer is not a number of seconds")
		}
		return start.Add(time.Duration(min(*a.ExpiresIn, most) * float64(time.Second))), nil
	case text != "":
		when, err := time.Parse(time.RFC3339, text)
		if err != nil {
			return time.Time{}, errors.New("expires of the answer is not a time such as 2024-05-01T12:00:00Z")
		}
		return when, nil
	}
	values, err := url.ParseQuery(s.query)
	if s.url != nil {
		values, err = url.ParseQuery(s.url.RawQuery)
	}
	if err != nil {
		return time.Time{}, nil // the end shows when the store refuses it
	}
	return queryEnd(values), nil
}

// queryEnd returns when the signature in a query ends, as Azure's (se) and S3's (X-Amz-Date,
// X-Amz-Expires) say it, or the zero time.
func queryEnd(q url.Values) time.Time {
	if t, err := time.Parse(time.RFC3339, q.Get("se")); err == nil {
		return t
	}
	when, err := time.Parse("20060102T150405Z", q.Get("X-Amz-Date"))
	seconds, err2 := strconv.ParseUint(q.Get("X-Amz-Expires"), 10, 24)
	if err != nil || err2 != nil {
		return time.Time{}
	}
	return when.Add(time.Duration(seconds) * time.Second)
}

// last sets how long a signature is used that ends then.
func (s *Signature) last(end, start time.Time) {
	if end.IsZero() {
		const untilRefused = 100 * 365 * 24 * time.Hour
		end = start.Add(untilRefused)
	}
	s.renew = end.Add(-min(end.Sub(start)/4, maxLead))
	least := start.Add(minAge)
	if s.renew.Before(least) {
		s.renew = least
	}
	s.until = end
	if end.Before(least) {
		s.until = least
	}
}
