package httpsource

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"regexp"
	"strings"
	"sync"
	"time"
)

// DefaultHubURL is the Hugging Face hub.
const DefaultHubURL = "https://huggingface.co"

// HubFromEnv returns the hub and the token that the hub's own tools take from the environment: HF_ENDPOINT (else
// DefaultHubURL) and HF_TOKEN.
func HubFromEnv() (hub, token string) {
	if hub = strings.TrimSuffix(os.Getenv("HF_ENDPOINT"), "/"); hub == "" {
		hub = DefaultHubURL
	}
	return hub, os.Getenv("HF_TOKEN")
}

// revisions with a "/" in them: those of pull requests and of what the hub converts itself.
var specialRevision = regexp.MustCompile(`^(refs/(?:convert/\w+|pr/\d+))(?:/|$)`)

// hubURL returns the URL of a file of a dataset, HUB/datasets/OWNER/NAME/resolve/REVISION/PATH, for
// hf://datasets/OWNER/NAME[@REVISION]/PATH. The revision is a branch, tag or commit, by default main; a "/" in it is
// written %2F, except in refs/pr/N and refs/convert/NAME.
func hubURL(hub *url.URL, uri string) (*url.URL, error) {
	bad := func() (*url.URL, error) {
		return nil, errors.New("not hf://datasets/OWNER/NAME[@REVISION]/PATH")
	}
	rest, ok := strings.CutPrefix(uri, "hf://datasets/")
	owner, rest, ok2 := strings.Cut(rest, "/")
	if !ok || !ok2 || owner == "" {
		return bad()
	}
	revision := "main"
	name, path, ok := strings.Cut(rest, "/")
	if at := strings.IndexByte(name, '@'); at >= 0 {
		after := rest[at+1:]
		name = name[:at]
		if m := specialRevision.FindStringSubmatch(after); m != nil {
			revision = m[1]
			path, ok = strings.CutPrefix(after[len(revision):], "/")
		} else {
			revision, path, ok = strings.Cut(after, "/")
			var err error
			if revision, err = url.PathUnescape(revision); err != nil {
				return nil, fmt.Errorf("revision: %w", err)
			}
		}
	}
	if !ok || name == "" || path == "" || revision == "" {
		return bad()
	}
	for _, part := range strings.Split(owner+"/"+name+"/"+path, "/") {
		if part == "." || part == ".." || part == "" {
			return bad()
		}
	}
	parts := strings.Split(path, "/")
	for i, p := range parts {
		parts[i] = url.PathEscape(p)
	}
	return url.Parse(strings.TrimSuffix(hub.String(), "/") + "/datasets/" + url.PathEscape(owner) + "/" + url.PathEscape(name) +
		"/resolve/" + url.PathEscape(revision) + "/" + strings.Join(parts, "/"))
}

// storesHub reports whether a URL is of the hub, or of the stores that it keeps its files in.
func (b *backend) storesHub(u *url.URL) bool {
	host := u.Hostname()
	return u.Host == b.hub.Host || u.Scheme == "https" &&
		(strings.HasSuffix(host, ".huggingface.co") || strings.HasSuffix(host, ".hf.co"))
}

// The hub signs where it leads for about an hour.
const (
	placeKept = 5 * time.Minute
	maxPlaces = 1 << 14
)

// places remembers where the hub keeps files, so that not every range costs it a request: it counts them.
type places struct {
	mu sync.Mutex
	by map[string]hubPlace
}

type hubPlace struct {
	url   *url.URL
	until time.Time
}

func (p *places) get(uri string) *url.URL {
	p.mu.Lock()
	defer p.mu.Unlock()
	at, ok := p.by[uri]
	if !ok || time.Now().After(at.until) {
		return nil
	}
	return at.url
}

func (p *places) put(uri string, u *url.URL) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.by == nil || len(p.by) >= maxPlaces { // they are found again soon enough
		p.by = map[string]hubPlace{}
	}
	p.by[uri] = hubPlace{u, time.Now().Add(placeKept)}
}

func (p *places) drop(uri string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.by, uri)
}
