package httpsource

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"regexp"
	"strings"
	"time"

	"github.com/chaski-eo/chaski/internal/lru"
	"github.com/chaski-eo/chaski/source/remote"
)

// DefaultHubURL is the Hugging Face hub.
const DefaultHubURL = "https://huggingface.co"

// HubFromEnv returns the hub and the token in the environment, in the variables of the hub's own
// tools: HF_ENDPOINT (default DefaultHubURL) and HF_TOKEN.
func HubFromEnv() (hub, token string) {
	if hub = strings.TrimSuffix(os.Getenv("HF_ENDPOINT"), "/"); hub == "" {
		hub = DefaultHubURL
	}
	return hub, os.Getenv("HF_TOKEN")
}

// specialRevision matches revisions that contain a "/": of pull requests and of the hub's own
// conversions.
var specialRevision = regexp.MustCompile(`^(refs/(?:convert/\w+|pr/\d+))(?:/|$)`)

// hubURL returns the URL of a file of a dataset, HUB/datasets/OWNER/NAME/resolve/REVISION/PATH, for
// hf://datasets/OWNER/NAME[@REVISION]/PATH. The revision is a branch, tag or commit, by default main; a "/" in it is
// written %2F, except in refs/pr/N and refs/convert/NAME.
func hubURL(hub *url.URL, uri string) (*url.URL, error) {
	parts, err := parseHub(uri)
	if err != nil {
		return nil, err
	}
	if parts.path == "" {
		return nil, errNotHub
	}
	return url.Parse(strings.TrimSuffix(hub.String(),
		"/") + parts.dataset + "/resolve/" + parts.revision + parts.path)
}

// treeURL returns the URL of the hub's listing of a directory of a dataset, or of all that is below it,
// HUB/api/datasets/OWNER/NAME/tree/REVISION/PATH, and the path of the directory.
func (b *backend) treeURL(folder string, recursive bool) (address *url.URL, dir string, err error) {
	p, err := parseHub(strings.TrimRight(folder, "/"))
	if err == nil {
		address, err = url.Parse(fmt.Sprintf("%s/api%s/tree/%s%s?recursive=%t&expand=false",
			strings.TrimSuffix(b.hub.String(), "/"), p.dataset, p.revision, p.path, recursive))
	}
	if err == nil {
		dir, err = url.PathUnescape(strings.TrimPrefix(p.path, "/"))
	}
	if err != nil {
		return nil, "", remote.Fail(remote.Refused, err)
	}
	return address, dir, nil
}

// hubParts are the parts of an hf:// URI, escaped as in a URL.
type hubParts struct {
	dataset  string // /datasets/OWNER/NAME
	revision string
	path     string // with a leading slash; empty for the whole dataset
}

var errNotHub = errors.New("not hf://datasets/OWNER/NAME[@REVISION]/PATH")

// parseHub parses hf://datasets/OWNER/NAME[@REVISION][/PATH].
func parseHub(uri string) (hubParts, error) {
	bad := func() (hubParts, error) { return hubParts{}, errNotHub }
	rest, ok := strings.CutPrefix(uri, "hf://datasets/")
	owner, rest, ok2 := strings.Cut(rest, "/")
	if !ok || !ok2 || owner == "" {
		return bad()
	}
	revision := "main"
	name, path, deeper := strings.Cut(rest, "/")
	if pos := strings.IndexByte(name, '@'); pos >= 0 {
		after := rest[pos+1:]
		name = name[:pos]
		if m := specialRevision.FindStringSubmatch(after); m != nil {
			revision = m[1]
			path, deeper = strings.CutPrefix(after[len(revision):], "/")
		} else {
			revision, path, deeper = strings.Cut(after, "/")
			var err error
			if revision, err = url.PathUnescape(revision); err != nil {
				return hubParts{}, fmt.Errorf("revision: %w", err)
			}
		}
	}
	if name == "" || revision == "" || deeper != (path != "") {
		return bad()
	}
	parts := hubParts{dataset: "/datasets/" + url.PathEscape(owner) + "/" + url.PathEscape(name),
		revision: url.PathEscape(revision)}
	list := []string{owner, name, revision}
	if deeper {
		list = append(list, strings.Split(path, "/")...)
	}
	for i, part := range list {
		// servers remove these with the part in front, which would lead to another file
		if part == "." || part == ".." || part == "" {
			return bad()
		}
		if i >= 3 {
			parts.path += "/" + url.PathEscape(part)
		}
	}
	return parts, nil
}

// storesHub reports whether a URL belongs to the hub or to the storage in which it keeps files.
func (b *backend) storesHub(u *url.URL) bool {
	host := u.Hostname()
	return u.Host == b.hub.Host || u.Scheme == "https" &&
		(strings.HasSuffix(host, ".huggingface.co") || strings.HasSuffix(host, ".hf.co"))
}

const (
	// The hub signs its redirects for about an hour. 5 minutes save nearly all requests to the hub, and leave
	// time: a range that begins just before does not meet an expired signature.
	placeKept = 5 * time.Minute
	// Signed URLs have about 1 KiB: some 12,000 are kept.
	placesBytes = 16 << 20
)

// places remembers where the hub redirected files to, because the hub counts requests and each
// range would cost one.
type places struct{ *lru.Cache[string, hubPlace] }

type hubPlace struct {
	url   *url.URL
	until time.Time
}

func (p places) get(uri string) *url.URL {
	if place, ok := p.Get(uri); ok && time.Now().Before(place.until) {
		return place.url
	}
	return nil
}

func (p places) put(uri string, u *url.URL) {
	p.Add(uri, hubPlace{u, time.Now().Add(placeKept)}, int64(len(uri)+len(u.Path)+len(u.RawQuery)))
}
