// Package httpsource reads byte ranges of http:// and https:// URIs (RFC 9110, section 14), and of files of Hugging
// Face datasets, hf://datasets/OWNER/NAME@REVISION/PATH.
//
// A range costs one GET, opening an object one for its head, which also tells its size. Every answer is held to the
// ETag of the first one, or to its Last-Modified where there is none. Bodies are asked for as they are stored; one
// with a Content-Encoding is refused. Of a server that sends whole objects where ranges are asked for they are read as a whole, up to
// remote.Options.MaxWhole.
// Redirects are followed on one host, to others where Options say so, from https to http never. HTTP has no listing of
// folders; the names of what lies in one are those that the server's own page about it has, or those that the hub lists (Names). There is no authentication but the token of hf, and what a URI holds itself.
package httpsource

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/chaski-eo/chaski/source/remote"
)

// Options of New. The zero value is ready.
type Options struct {
	remote.Options
	// OtherHosts allows redirects to any other host: not for a server whose clients name URIs, as a host that they
	// may name could then send it into its own network.
	OtherHosts bool
	// Transport makes the requests. Default: one of its own, with the proxies of the environment.
	Transport http.RoundTripper
	// HubURL is where hf:// leads. Default DefaultHubURL.
	HubURL string
	// HubToken is sent there, and nowhere else, if it is not empty.
	HubToken string
}

// maxRedirects bounds the redirects of one request.
const maxRedirects = 5

// New returns an opener for the schemes http, https and hf. Close it when it is not needed any more. It is an error
// if options make no sense; nothing is asked of a server yet.
func New(o Options) (*remote.Opener, error) {
	if o.HubURL == "" {
		o.HubURL = DefaultHubURL
	}
	hub, err := url.Parse(o.HubURL)
	if err != nil || hub.Scheme != "https" && hub.Scheme != "http" || hub.Host == "" {
		return nil, fmt.Errorf("httpsource: %q is no URL of a hub", o.HubURL)
	}
	b := &backend{o: o, hub: hub}
	if o.Transport == nil {
		conns := o.Concurrency
		if conns == 0 {
			conns = remote.DefaultConcurrency
		}
		b.own = &http.Transport{
			Proxy:               http.ProxyFromEnvironment,
			DialContext:         (&net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
			ForceAttemptHTTP2:   true,
			TLSHandshakeTimeout: 10 * time.Second,
			MaxIdleConns:        4 * conns,
			MaxIdleConnsPerHost: conns,
			IdleConnTimeout:     90 * time.Second,
			DisableCompression:  true, // ranges are of the bytes as stored
			// Small answers are usual, and large headers are not.
			MaxResponseHeaderBytes: 256 << 10,
			ReadBufferSize:         32 << 10,
		}
		b.o.Transport = b.own
	}
	b.client = &http.Client{Transport: b.o.Transport, CheckRedirect: b.redirect}
	return remote.New(b, o.Options)
}

type backend struct {
	o      Options
	client *http.Client
	own    *http.Transport
	hub    *url.URL
	places places // of files of the hub
}

// Close closes the connections that are idle.
func (b *backend) Close() error {
	if b.own != nil {
		b.own.CloseIdleConnections()
	}
	return nil
}

// Host implements remote.Backend.
func (b *backend) Host(uri string) string {
	if strings.HasPrefix(uri, "hf://") { // also folders
		return b.hub.Host
	}
	u, err := b.parse(uri)
	if err != nil {
		return ""
	}
	return u.Host
}

func (b *backend) parse(uri string) (*url.URL, error) {
	if strings.HasPrefix(uri, "hf://") {
		return hubURL(b.hub, uri)
	}
	u, err := url.Parse(uri)
	var ue *url.Error
	switch {
	case errors.As(err, &ue):
		return nil, ue.Err // without the URI, which the error names anyhow
	case err != nil:
		return nil, err
	case u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return nil, errors.New("not a URL of a host")
	}
	u.Fragment = ""
	return u, nil
}

// onHub is the key of a request's context that says that it is of hf.
type onHub struct{}

// Get implements remote.Backend. A file of the hub is asked for where the hub last led, for a while.
func (b *backend) Get(ctx context.Context, uri string, r remote.Range, tag remote.Tag) (*remote.Answer, error) {
	u, err := b.parse(uri)
	if err != nil {
		return nil, remote.Fail(remote.Refused, err)
	}
	if !strings.HasPrefix(uri, "hf://") {
		a, _, err := b.get(ctx, u, r, tag.Strong(), "")
		return a, err
	}
	ctx = context.WithValue(ctx, onHub{}, true)
	// The tags of answers are those of the hub's stores; the hub itself would compare its own with If-Match.
	if at := b.places.get(uri); at != nil {
		a, _, err := b.get(ctx, at, r, "", "")
		var f *remote.Failure
		if !errors.As(err, &f) || f.Class != remote.Denied && f.Class != remote.Missing && f.Class != remote.Refused {
			return a, err
		}
		b.places.drop(uri) // its signature is over
	}
	a, at, err := b.get(ctx, u, r, "", b.o.HubToken)
	if err == nil && at.Host != b.hub.Host {
		b.places.put(uri, at)
	}
	return a, err
}

// get makes a request. match is for If-Match and token for Authorization, if they are not empty. It returns also the
// URL that answered, after redirects.
func (b *backend) get(ctx context.Context, u *url.URL, r remote.Range, match, token string) (*remote.Answer, *url.URL, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, nil, remote.Fail(remote.Refused, err)
	}
	req.Header.Set("Range", fmt.Sprintf("bytes=%d-%d", r.Off, r.Off+r.Len-1))
	req.Header.Set("Accept-Encoding", "identity")
	req.Header.Set("User-Agent", "chaski")
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	if match != "" {
		req.Header.Set("If-Match", match)
	}
	resp, err := b.client.Do(req)
	if err != nil {
		var ue *url.Error
		if errors.As(err, &ue) {
			err = ue.Err // the URL may hold the signature of a redirect
		}
		return nil, nil, err
	}
	a, err := answer(r, resp)
	if err != nil {
		_ = resp.Body.Close()
		return nil, nil, err
	}
	return a, resp.Request.URL, nil
}

// answer checks a response's headers.
func answer(r remote.Range, resp *http.Response) (*remote.Answer, error) {
	if f := remote.Status(resp.StatusCode, resp.Header); f != nil {
		return nil, f
	}
	if e := resp.Header.Get("Content-Encoding"); e != "" && e != "identity" {
		return nil, remote.Fail(remote.Refused, fmt.Errorf("the body comes with Content-Encoding %.20q, although as stored was asked for", e))
	}
	if t := resp.Header.Get("Content-Type"); strings.HasPrefix(t, "multipart/byteranges") {
		return nil, remote.Fail(remote.Refused, errors.New("several ranges where one was asked for"))
	}
	a, err := remote.Check(r, resp.StatusCode, resp.Header.Get("Content-Range"), resp.ContentLength)
	if err != nil {
		return nil, err
	}
	a.Body = resp.Body
	a.Tag.ETag = resp.Header.Get("ETag")
	if t, err := http.ParseTime(resp.Header.Get("Last-Modified")); err == nil {
		a.Tag.Modified = t
	}
	return a, nil
}

// redirect is called before a redirect is followed.
func (b *backend) redirect(req *http.Request, via []*http.Request) error {
	first, last := via[0], via[len(via)-1]
	refuse := func(format string, args ...any) error {
		return remote.Fail(remote.Refused, fmt.Errorf(format, args...))
	}
	switch {
	case len(via) > maxRedirects:
		return refuse("more than %d redirects", maxRedirects)
	case req.URL.Scheme != "https" && (req.URL.Scheme != "http" || last.URL.Scheme == "https"):
		return refuse("a redirect from %s to %s", last.URL.Scheme, req.URL.Scheme)
	case req.URL.Host == first.URL.Host:
		return nil
	}
	req.Header.Del("Authorization")
	if b.o.OtherHosts || first.Context().Value(onHub{}) != nil && b.storesHub(req.URL) {
		return nil
	}
	return refuse("a redirect to another host, %s", req.URL.Host)
}
