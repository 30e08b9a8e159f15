package httpsource

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"regexp"
	"strings"

	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/source/remote"
	"github.com/chaski-eo/chaski/source/sign"
)

// maxTreePages limits the pages of the hub's listing of a directory. A page has a thousand entries.
const maxTreePages = 256

// treeEntry is an entry of the hub's listing of a directory.
type treeEntry struct {
	Type string `json:"type"` // "file", "directory"
	Path string `json:"path"` // relative to the root of the dataset; as treeEntries returns it, to the directory
	Size int64  `json:"size"`
}

// hubNames is Names for a directory of a dataset, which the hub lists in pages of JSON.
func (b *backend) hubNames(ctx context.Context, folder string) (names []string, err error) {
	address, dir, err := b.treeURL(folder, false)
	if err != nil {
		return nil, err
	}
	left := int64(maxPage)
	for range maxTreePages {
		page, next, err := b.treePage(ctx, address, left)
		if err != nil {
			return nil, err
		}
		left -= int64(len(page))
		list, err := treeEntries(page, dir, plain)
		if err != nil {
			return nil, err
		}
		for _, entry := range list {
			if entry.Type == "directory" {
				entry.Path += "/"
			}
			names = append(names, entry.Path)
		}
		if next == nil {
			return names, nil
		}
		address = next
	}
	return nil, remote.Fail(remote.Refused, fmt.Errorf("a list of over %d pages", maxTreePages))
}

// Lists implements remote.Lister: the hub lists what is below a directory of a dataset, and HTTP nothing.
func (b *backend) Lists(folder string) bool { return strings.HasPrefix(folder, "hf://") }

// ListPage implements remote.Lister. A token is the URL of a page. The files have no tags, because the storage to which
// the hub redirects has others.
func (b *backend) ListPage(ctx context.Context, folder string, token []byte) (page []source.Entry, next []byte,
	err error) {
	address, dir, err := b.treeURL(folder, true)
	if err == nil && token != nil {
		address, err = url.Parse(string(token))
	}
	if err != nil {
		return nil, nil, err
	}
	text, following, err := b.treePage(ctx, address, maxPage)
	if err != nil {
		return nil, nil, err
	}
	list, err := treeEntries(text, dir, fs.ValidPath)
	if err != nil {
		return nil, nil, err
	}
	for _, entry := range list {
		if entry.Type == "file" {
			page = append(page, source.Entry{Path: entry.Path, Size: max(entry.Size, 0)})
		}
	}
	if following != nil {
		next = []byte(following.String())
	}
	return page, next, nil
}

// treePage requests a page of at most so many bytes, and returns the URL of the next one, or nil.
func (b *backend) treePage(ctx context.Context, u *url.URL, most int64) (page []byte, next *url.URL, err error) {
	token := ""
	// a redirect may have led to another host, which must not get the token
	if u.Scheme == b.hub.Scheme && u.Host == b.hub.Host {
		token = b.o.HubToken
	}
	resp, err := b.page(ctx, u, "application/json", sign.Bearer(token))
	if err != nil {
		return nil, nil, err
	}
	defer resp.Body.Close()
	if f := remote.Status(resp.StatusCode, resp.Header); f != nil {
		return nil, nil, f
	}
	if resp.StatusCode != http.StatusOK {
		return nil, nil, remote.Fail(remote.Refused, fmt.Errorf("HTTP status %d", resp.StatusCode))
	}
	if page, err = io.ReadAll(io.LimitReader(resp.Body, most+1)); err != nil {
		return nil, nil, err
	}
	if int64(len(page)) > most {
		return nil, nil, remote.Fail(remote.Refused, fmt.Errorf("a list of over %d bytes", maxPage))
	}
	next, err = nextPage(resp.Request.URL, resp.Header.Values("Link"))
	return page, next, err
}

// nextLink matches a link to the next page in a Link header (RFC 8288): <TARGET>; rel="next".
var nextLink = regexp.MustCompile(`(?i)<([^>]*)>[^,]*;\s*rel\s*=\s*"?\s*next\s*"?\s*(?:[;,]|$)`)

// nextPage returns the URL of the next page, if there is a link to it. It takes only the query from the link, because
// mirrors of the hub link to the hub itself, and the token must not be sent to another host.
func nextPage(at *url.URL, links []string) (*url.URL, error) {
	for _, link := range links {
		found := nextLink.FindStringSubmatch(link)
		if found == nil {
			continue
		}
		address, err := at.Parse(found[1])
		if err != nil || address.RawQuery == at.RawQuery {
			return nil, remote.Fail(remote.Refused, errors.New("the link to the next page is not a URL"))
		}
		next := *at
		next.RawQuery = address.RawQuery
		return &next, nil
	}
	return nil, nil
}

// treeEntries returns the entries of a page, whose paths below the directory must be valid.
func treeEntries(page []byte, folder string, valid func(path string) bool) (list []treeEntry, err error) {
	if err := json.Unmarshal(page, &list); err != nil {
		return nil, remote.Fail(remote.Refused, errors.New("the JSON is not a list of entries"))
	}
	if folder != "" {
		folder += "/"
	}
	for i, entry := range list {
		name, in := strings.CutPrefix(entry.Path, folder)
		if !in || !valid(name) || strings.ContainsAny(name, "\\\x00") {
			return nil, remote.Fail(remote.Refused, fmt.Errorf("the entry %.60q is not inside %.60q", entry.Path,
				folder))
		}
		list[i].Path = name
	}
	return list, nil
}
