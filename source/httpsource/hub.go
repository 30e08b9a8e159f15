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
	p, err := parseHub(uri)
	if err != nil {
		return nil, err
	}
	if p.path == "" {
		return nil, errNotHub
	}
	return url.Parse(strings.TrimSuffix(hub.String(), "/") + p.dataset + "/resolve/" + p.revision + p.path)
}

// treeURL returns the URL of the hub's list of what lies in a folder of a dataset, HUB/api/datasets/OWNER/NAME/tree/REVISION/PATH.
func (p hubParts) treeURL(hub *url.URL) (*url.URL, error) {
	return url.Parse(strings.TrimSuffix(hub.String(), "/") + "/api" + p.dataset + "/tree/" + p.revision + p.path + "?recursive=false&expand=false")
}

// hubParts are those of a URI of hf, as a URL has them.
type hubParts struct {
	dataset  string // /datasets/OWNER/NAME
	revision string
	path     string // with a slash in front; empty for all of the dataset
}

var errNotHub = errors.New("not hf://datasets/OWNER/NAME[@REVISION]/PATH")

// parseHub reads hf://datasets/OWNER/NAME[@REVISION][/PATH].
func parseHub(uri string) (hubParts, error) {
	bad := func() (hubParts, error) { return hubParts{}, errNotHub }
	rest, ok := strings.CutPrefix(uri, "hf://datasets/")
	owner, rest, ok2 := strings.Cut(rest, "/")
	if !ok || !ok2 || owner == "" {
		return bad()
	}
	revision := "main"
	name, path, more := strings.Cut(rest, "/")
	if at := strings.IndexByte(name, '@'); at >= 0 {
		after := rest[at+1:]
		name = name[:at]
		if m := specialRevision.FindStringSubmatch(after); m != nil {
			revision = m[1]
			path, more = strings.CutPrefix(after[len(revision):], "/")
		} else {
			revision, path, more = strings.Cut(after, "/")
			var err error
			if revision, err = url.PathUnescape(revision); err != nil {
				return hubParts{}, fmt.Errorf("revision: %w", err)
			}
		}
	}
	if name == "" || revision == "" || more != (path != "") {
		return bad()
	}
	p := hubParts{dataset: "/datasets/" + url.PathEscape(owner) + "/" + url.PathEscape(name), revision: url.PathEscape(revision)}
	list := []string{owner, name, revision}
	if more {
		list = append(list, strings.Split(path, "/")...)
	}
	for i, part := range list {
		if part == "." || part == ".." || part == "" { // which servers take away, with what is in front
			return bad()
		}
		if i >= 3 {
			p.path += "/" + url.PathEscape(part)
		}
	}
	return p, nil
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
