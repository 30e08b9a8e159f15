// Package httpsource reads byte ranges of http:// and https:// URIs (RFC 9110, section 14), and of
// files of Hugging Face datasets, hf://datasets/OWNER/NAME@REVISION/PATH.
//
// Opening an object is one GET for its head, which also returns its size. Each range is one more
// GET. Every response must have the ETag of the first one, or its Last-Modified if there is no
// ETag. Bodies are requested as they are stored; a Content-Encoding is refused. If a server answers
// range requests with whole objects, they are read as a whole, up to remote.Options.MaxWhole.
//
// Redirects are followed on the same host below the roots of the opener (openers.Below), to other hosts
// if Options allow it, and never from https to http. HTTP cannot list directories: Names returns the
// links of the server's index page, or the list of the hub. There is no authentication except the token of hf://, a
// password or a signed query in a URI, and the signatures of Options.Sign.
package httpsource

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/chaski-eo/chaski/internal/lru"
	"github.com/chaski-eo/chaski/source/openers"
	"github.com/chaski-eo/chaski/source/remote"
	"github.com/chaski-eo/chaski/source/sign"
)

// Options configure New. The zero value is ready to use.
type Options struct {
	remote.Options
	// OtherHosts allows redirects to other hosts. A server whose clients choose URIs must not set
	// it, because a host of theirs could redirect requests into the server's own network.
	OtherHosts bool
	// Transport sends the requests. Default: a transport of its own with the proxies of the
	// environment.
	Transport http.RoundTripper
	// HubURL is the URL of the hub that hf:// refers to. Default DefaultHubURL.
	HubURL string
	// HubToken is sent to the hub alone, if it is not empty.
	HubToken string
	// Sign gives the signatures of http:// and https:// URIs. nil signs none.
	Sign *sign.Signer
}

// maxRedirects limits the redirects of one request. It ends loops.
const maxRedirects = 5

// New returns an opener for the schemes http, https and hf. Close it after use. It returns an error
// if options are invalid, and makes no request yet.
func New(o Options) (*remote.Opener, error) {
	o.HubURL = cmp.Or(o.HubURL, DefaultHubURL)
	hub, err := url.Parse(o.HubURL)
	if err != nil || hub.Scheme != "https" && hub.Scheme != "http" || hub.Host == "" {
		return nil, fmt.Errorf("httpsource: hub URL %q is not an http or https URL with a host", o.HubURL)
	}
	made := &backend{o: o, hub: hub, places: places{lru.New[string, hubPlace](placesBytes)}}
	if o.Transport == nil {
		conns := cmp.Or(o.Concurrency, remote.DefaultConcurrency)
		made.own = newTransport(conns)
		made.o.Transport = made.own
	}
	made.client = &http.Client{Transport: made.o.Transport, CheckRedirect: made.redirect}
	return remote.New(made, o.Options)
}

// newTransport returns a transport for a number of simultaneous requests to one host.
func newTransport(conns int) *http.Transport {
	return &http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		DialContext:         (&net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
		ForceAttemptHTTP2:   true,
		TLSHandshakeTimeout: 10 * time.Second,
		MaxIdleConns:        4 * conns,
		MaxIdleConnsPerHost: conns,
		IdleConnTimeout:     90 * time.Second,
		DisableCompression:  true, // ranges count the bytes as stored
		// A server must not fill memory with headers. Real ones have some KiB.
		MaxResponseHeaderBytes: 256 << 10,
		ReadBufferSize:         32 << 10,
	}
}

type backend struct {
	o      Options
	client *http.Client
	own    *http.Transport
	hub    *url.URL
	places places // where files of hf:// and signed ones were redirected to
}

// Close closes idle connections.
func (b *backend) Close() error {
	if b.own != nil {
		b.own.CloseIdleConnections()
	}
	return nil
}

// Host implements remote.Backend.
func (b *backend) Host(uri string) string {
	if strings.HasPrefix(uri, "hf://") { // this covers directories too
		return b.hub.Host
	}
	address, err := b.parse(uri)
	if err != nil {
		return ""
	}
	return address.Host
}

var errNotURL = errors.New(`not a URL: "%" and, in a password, "/" must be written as %25 and %2F`)

func (b *backend) parse(uri string) (*url.URL, error) {
	if strings.HasPrefix(uri, "hf://") {
		return hubURL(b.hub, uri)
	}
	address, err := url.Parse(uri)
	switch {
	case err != nil: // it may have a part of a password: 'invalid port ":password" after host'
		return nil, errNotURL
	case address.Scheme != "http" && address.Scheme != "https" || address.Host == "":
		return nil, errors.New("not a URL of a host")
	}
	address.Fragment = ""
	return address, nil
}

// onHub is the context key that marks requests of hf:// URIs, signedBy the key of the signature.
type (
	onHub    struct{}
	signedBy struct{}
)

// Get implements remote.Backend. A file of the hub is requested from where the hub last redirected
// to, for some time, and so is a file that has a signature.
func (b *backend) Get(ctx context.Context, uri string, r remote.Range, tag remote.Tag) (*remote.Answer, error) {
	address, err := b.parse(uri)
	if err != nil {
		return nil, remote.Fail(remote.Refused, err)
	}
	match := tag.Strong()
	if strings.HasPrefix(uri, "hf://") {
		ctx = context.WithValue(ctx, onHub{}, true)
		// The tags belong to the storage behind the hub. The hub would compare If-Match with tags of
		// its own.
		match = ""
	}
	if place := b.places.get(uri); place != nil {
		a, _, err := b.get(ctx, place, r, match, nil)
		if !denied(err) && class(err) != remote.Missing && class(err) != remote.Refused {
			return a, err
		}
		b.places.Remove(uri) // the signature of the redirect has expired
	}
	if ctx.Value(onHub{}) != nil {
		return b.follow(ctx, uri, address, r, match, sign.Bearer(b.o.HubToken))
	}
	for again := false; ; again = true {
		signature, err := b.o.Sign.Sign(ctx, address)
		if err != nil {
			return nil, err
		}
		a, err := b.follow(ctx, uri, address, r, match, signature)
		if again || !denied(err) || !b.o.Sign.Refused(address, signature) {
			return a, err
		}
	}
}

// class returns the class of a failed request, Transient if err is nil.
func class(err error) remote.Class {
	if err == nil {
		return remote.Transient
	}
	return remote.Classify(err).Class
}

func denied(err error) bool { return class(err) == remote.Denied }

// follow makes a request with a signature, and remembers where it was redirected to: the redirect
// has a signature of its own, and each range would cost one more request.
func (b *backend) follow(ctx context.Context, uri string, u *url.URL, r remote.Range, match string,
	s *sign.Signature) (*remote.Answer, error) {
	signed := s.URL(u)
	answer, address, err := b.get(ctx, signed, r, match, s)
	if err == nil && address.Host != signed.Host && (s != nil || ctx.Value(onHub{}) != nil) {
		b.places.put(uri, address)
	}
	return answer, err
}

// get makes a request. If it is not empty, match goes into If-Match; the headers of s are added. It
// also returns the URL that answered, after redirects.
func (b *backend) get(ctx context.Context, u *url.URL, r remote.Range, match string,
	s *sign.Signature) (*remote.Answer, *url.URL, error) {
	req, err := b.request(ctx, u, s)
	if err != nil {
		return nil, nil, err
	}
	req.Header.Set("Range", fmt.Sprintf("bytes=%d-%d", r.Off, r.Off+r.Len-1))
	if match != "" {
		req.Header.Set("If-Match", match)
	}
	resp, err := b.do(req)
	if err != nil {
		return nil, nil, err
	}
	made, err := answer(r, resp)
	if err != nil {
		_ = resp.Body.Close()
		return nil, nil, err
	}
	return made, resp.Request.URL, nil
}

// request returns a request with the headers of a signature.
func (b *backend) request(ctx context.Context, u *url.URL, s *sign.Signature) (*http.Request, error) {
	ctx = context.WithValue(ctx, signedBy{}, s)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, remote.Fail(remote.Refused, errors.New("not a URL that can be requested"))
	}
	req.Header.Set("Accept-Encoding", "identity")
	req.Header.Set("User-Agent", "chaski")
	s.Set(req.Header)
	return req, nil
}

// do sends a request. Errors do not have its URL, which may contain a signature.
func (b *backend) do(req *http.Request) (*http.Response, error) {
	resp, err := b.client.Do(req)
	if ue, ok := errors.AsType[*url.Error](err); ok {
		err = ue.Err
	}
	if err != nil && strings.HasPrefix(err.Error(), "failed to parse Location header") { // of net/http, with the header
		err = remote.Fail(remote.Refused, errors.New("a redirect to what is not a URL"))
	}
	return resp, err
}

// answer checks the headers of a response.
func answer(r remote.Range, resp *http.Response) (*remote.Answer, error) {
	if f := remote.Status(resp.StatusCode, resp.Header); f != nil {
		return nil, f
	}
	if e := resp.Header.Get("Content-Encoding"); e != "" && e != "identity" {
		return nil, remote.Fail(remote.Refused,
			fmt.Errorf("the response has Content-Encoding %.20q, but the bytes as stored were requested", e))
	}
	if t := resp.Header.Get("Content-Type"); strings.HasPrefix(t, "multipart/byteranges") {
		return nil, remote.Fail(remote.Refused, errors.New("the response has several ranges, but one was requested"))
	}
	made, err := remote.Check(r, resp.StatusCode, resp.Header.Get("Content-Range"), resp.ContentLength)
	if err != nil {
		return nil, err
	}
	made.Body = resp.Body
	made.Tag.ETag = resp.Header.Get("ETag")
	if t, err := http.ParseTime(resp.Header.Get("Last-Modified")); err == nil {
		made.Tag.Modified = t
	}
	return made, nil
}

// redirect is called before a redirect is followed.
func (b *backend) redirect(req *http.Request, via []*http.Request) error {
	first, last := via[0], via[len(via)-1]
	req.Header.Del("Referer") // net/http puts the last URL there, which may contain a signature
	refuse := func(format string, args ...any) error {
		return remote.Fail(remote.Refused, fmt.Errorf(format, args...))
	}
	switch {
	case len(via) > maxRedirects:
		return refuse("more than %d redirects", maxRedirects)
	case req.URL.Scheme != "https" && (req.URL.Scheme != "http" || last.URL.Scheme == "https"):
		return refuse("a redirect from %s to %s", last.URL.Scheme, req.URL.Scheme)
	case req.URL.Host == first.URL.Host && (b.o.OtherHosts || first.Context().Value(onHub{}) != nil):
		return nil // of the hub: a dataset with a new name
	case req.URL.Host == first.URL.Host:
		target := *req.URL // a prefix of http:// holds for https:// too, and one with a password without it
		target.Scheme, target.User = first.URL.Scheme, first.URL.User
		if _, err := openers.RootsIn(first.Context()).Allow(target.String()); err != nil {
			return refuse("a redirect to outside of the served directories")
		}
		return nil
	}
	s, _ := first.Context().Value(signedBy{}).(*sign.Signature)
	s.Remove(req.Header)
	if b.o.OtherHosts || first.Context().Value(onHub{}) != nil && b.storesHub(req.URL) {
		return nil
	}
	return refuse("a redirect to another host, %s", req.URL.Host)
}
