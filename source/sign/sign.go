// Package sign gets signatures for the objects of stores whose URLs expire, such as
// Planetary Computer's and Earthdata's: headers, a query, or a signed URL in place of the object's own.
//
// Rules name the signer for the objects below a prefix: a command, or the process that started this one. One signature
// serves all objects of a rule, unless it is a URL. It is renewed before it expires, by one request at a time.
// Signatures stay in memory: objects keep their own URIs in catalogs, logs and errors, and no error has text of an
// answer.
package sign

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/chaski-eo/chaski/internal/crash"
	"github.com/chaski-eo/chaski/source/remote"
)

const (
	// askLimit is the time that an answer may take. Token services answer within some seconds.
	askLimit = 30 * time.Second
	// A signature is renewed a quarter of its time before it ends, at most 5 minutes: requests that
	// begin with the old one take at most a minute.
	maxLead = 5 * time.Minute
	// A new signature is used for at least 5 seconds, even if it has expired or the store refuses it. Otherwise a wrong
	// clock, or an unreadable object, would cost a call of the signer with each request.
	minAge = 5 * time.Second
	// failedFor is how long no signer is called after a failure.
	failedFor = time.Second
	// maxKept limits the signatures in memory: a signed URL has about 1 KiB, so they need 16 MiB.
	maxKept = 1 << 14
)

// Rule names the signer of the objects below a prefix.
type Rule struct {
	// Prefix is how the URIs of the objects begin: https://HOST/ and a path that ends with "/".
	// "https://" stands for all hosts, whose answers must be URLs.
	Prefix string
	// Ask returns the answer for an object: see Parse. Its errors must not hold secrets.
	Ask func(ctx context.Context, uri string) ([]byte, error)
}

// Signer keeps the signatures of some rules. It is safe for concurrent use. A nil *Signer signs
// nothing.
type Signer struct {
	rules []*signRule // the longest prefix first
	err   error       // why no rule is known

	mu      sync.Mutex
	entries map[string]*signatureEntry
}

type signRule struct {
	Rule
	single bool // answers are for one object; guarded by Signer.mu
}

// signatureEntry is the signature for a rule or an object. Signer.mu guards it.
type signatureEntry struct {
	signature *Signature
	err       error     // of the last answer
	retryAt   time.Time // no signer is called before, if err is set
	busy      chan struct{}
}

// New returns a signer. It fails on a rule whose prefix is not a URL.
func New(rules ...Rule) (*Signer, error) {
	signer := &Signer{entries: map[string]*signatureEntry{}}
	for _, given := range rules {
		prefix, err := plainPrefix(given.Prefix)
		if err != nil {
			return nil, err
		}
		given.Prefix = prefix
		signer.rules = append(signer.rules, &signRule{Rule: given, single: hostless(prefix)})
	}
	slices.SortFunc(signer.rules, func(a, b *signRule) int { return len(b.Prefix) - len(a.Prefix) })
	for i, given := range signer.rules {
		if i > 0 && signer.rules[i-1].Prefix == given.Prefix {
			return nil, fmt.Errorf("the prefix %q is there twice", given.Prefix)
		}
	}
	return signer, nil
}

// hostless reports whether a prefix stands for all hosts.
func hostless(prefix string) bool { return prefix == "https://" }

// plainPrefix checks a prefix, and returns it as plain returns URIs.
func plainPrefix(prefix string) (string, error) {
	if hostless(prefix) {
		return prefix, nil
	}
	address, err := url.Parse(prefix)
	switch {
	case err != nil || address.Host == "" || address.RawQuery+address.Fragment != "" ||
		!strings.HasSuffix(address.Path, "/"):
		return "", fmt.Errorf(`the prefix %q is not "https://HOST/PATH/"`, prefix)
	case !private(address):
		return "", fmt.Errorf("the prefix %q would send signatures in plain text: it must begin with https://", prefix)
	}
	return plain(address), nil
}

// plain returns a URL without its query, with the host in lower case.
func plain(u *url.URL) string {
	return u.Scheme + "://" + strings.ToLower(u.Host) + u.EscapedPath()
}

// object returns the identity of the object of a signed URL. It includes the query, because many stores name the object
// there.
func object(u *url.URL) string {
	if u.RawQuery == "" {
		return plain(u)
	}
	return plain(u) + "?" + u.RawQuery
}

// private reports whether the connection to a URL is encrypted or stays on this host.
func private(u *url.URL) bool {
	host := u.Hostname()
	local := host == "localhost" || host == "127.0.0.1" || host == "::1"
	return u.Scheme == "https" || u.Scheme == "http" && local
}

// Sign returns the signature for an object, or nil if no rule has its URL. It waits for the answer
// if there is no valid signature. Errors are a *remote.Failure, or the error of ctx.
func (s *Signer) Sign(ctx context.Context, u *url.URL) (*Signature, error) {
	if s == nil {
		return nil, nil
	}
	if s.err != nil {
		return nil, remote.Fail(remote.Denied, s.err)
	}
	rule := s.rule(u)
	if rule == nil {
		return nil, nil
	}
	for {
		got, busy, err := s.look(rule, object(u), u.String())
		if busy == nil {
			return got, err
		}
		select {
		case <-busy:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// rule returns the rule for a URL, or nil. A URL with ".." has none: a server may take it for one that is not below the
// prefix, and the signature would go there.
func (s *Signer) rule(u *url.URL) *signRule {
	separates := func(c rune) bool { return c == '/' || c == '\\' }
	if slices.Contains(strings.FieldsFunc(u.Path, separates), "..") {
		return nil
	}
	text := plain(u)
	for _, r := range s.rules {
		if strings.HasPrefix(text, r.Prefix) {
			return r
		}
	}
	return nil
}

// look returns the signature for the object at, or what to wait for before the next look.
func (s *Signer) look(r *signRule, at, uri string) (got *Signature, busy <-chan struct{}, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	entry, now := s.entry(r, at), time.Now()
	valid := entry.signature != nil && now.Before(entry.signature.until)
	switch {
	case valid && now.Before(entry.signature.renew):
		return entry.signature, nil, nil
	case entry.err != nil && now.Before(entry.retryAt):
		if valid {
			return entry.signature, nil, nil
		}
		f := *remote.Classify(entry.err)
		f.After = entry.retryAt.Sub(now)
		return nil, nil, &f
	case entry.busy == nil:
		entry.busy = make(chan struct{})
		go s.refresh(r, entry, at, uri)
	}
	// Others go on with the old one while a new one is requested, so they need not wait.
	if valid {
		return entry.signature, nil, nil
	}
	return nil, entry.busy, nil
}

// entry returns the entry for the object at. Signer.mu is held.
func (s *Signer) entry(r *signRule, at string) *signatureEntry {
	key := r.Prefix
	if r.single {
		// A prefix has no space, so it differs from the key of any object.
		key = " " + at
	}
	found := s.entries[key]
	if found == nil {
		if len(s.entries) >= maxKept { // they are soon there again
			s.entries = map[string]*signatureEntry{}
		}
		found = &signatureEntry{}
		s.entries[key] = found
	}
	return found
}

// refresh asks for a signature.
func (s *Signer) refresh(r *signRule, e *signatureEntry, at, uri string) {
	ctx, cancel := context.WithTimeout(context.Background(), askLimit)
	defer cancel()
	start := time.Now()
	var got *Signature
	err := crash.Call(func() error {
		answer, err := r.Ask(ctx, uri)
		if err == nil {
			got, err = Parse(answer, start)
		}
		return err
	})
	if err == nil && got.url == nil && hostless(r.Prefix) {
		err = remote.Fail(remote.Denied, errors.New(
			`the answer is no URL, but a query or headers for every host: give a prefix with a host in place of "https://"`))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	close(e.busy)
	e.busy = nil
	if e.err = err; err != nil {
		f := *remote.Classify(err)
		f.Err = fmt.Errorf("no signature: %w", f.Err)
		e.err, e.retryAt = &f, time.Now().Add(failedFor)
		return
	}
	if r.single = got.url != nil; r.single {
		e = s.entry(r, at) // only the first answer shows whether it is a URL, which serves one object
	}
	e.signature, e.err = got, nil
}

// Refused says that a store has refused a signature, and reports whether Sign may return another
// one.
func (s *Signer) Refused(u *url.URL, refused *Signature) bool {
	if s == nil || refused == nil {
		return false
	}
	rule := s.rule(u)
	if rule == nil {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	entry := s.entry(rule, object(u))
	if entry.signature != refused {
		return true
	}
	if time.Since(refused.got) < minAge {
		return false
	}
	entry.signature = nil
	return true
}
