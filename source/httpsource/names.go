package httpsource

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"

	"golang.org/x/net/html"

	"github.com/chaski-eo/chaski/source/remote"
)

// maxPage bounds a server's page about a folder, in bytes.
const maxPage = 8 << 20

// Names implements remote.Namer. HTTP has no listing of folders, but servers have pages about them: what such a page
// links to in the folder itself lies there. Read are pages in HTML, of any server or written by hand, and the JSON of
// nginx (autoindex_format json) and of Caddy. Folders of hf are listed by the hub.
func (b *backend) Names(ctx context.Context, folder string) ([]string, error) {
	if strings.HasPrefix(folder, "hf://") {
		return b.hubNames(ctx, folder)
	}
	u, err := b.parse(folder)
	switch {
	case err != nil:
		return nil, remote.Fail(remote.Refused, err)
	case u.RawQuery != "":
		return nil, remote.Fail(remote.Refused, errors.New("a folder has no query"))
	}
	u = u.JoinPath("/")
	resp, err := b.page(ctx, u, "text/html, application/json;q=0.9", "")
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	switch resp.StatusCode {
	case http.StatusForbidden, http.StatusNotFound, http.StatusMethodNotAllowed:
		return nil, notListed(remote.Status(resp.StatusCode, resp.Header))
	}
	if f := remote.Status(resp.StatusCode, resp.Header); f != nil {
		return nil, f
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxPage+1))
	if err != nil {
		return nil, err
	}
	// Neither a length nor chunks: then what is missing at the end is not noticed but by its own.
	ends := resp.ContentLength >= 0 || len(resp.TransferEncoding) > 0 || resp.ProtoMajor > 1
	base := resp.Request.URL // after redirects
	if len(body) > maxPage {
		return nil, notListed(fmt.Errorf("a page of over %d bytes", maxPage))
	}
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	switch kind {
	case "text/html", "application/xhtml+xml":
		return linked(base, body, ends)
	case "application/json":
		return entries(body)
	}
	return nil, notListed(fmt.Errorf("a page of the type %.60q", kind))
}

// page asks for the page about a folder, of the types in accept. token is for Authorization, if it is not empty.
func (b *backend) page(ctx context.Context, u *url.URL, accept, token string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, remote.Fail(remote.Refused, err)
	}
	req.Header.Set("Accept", accept)
	req.Header.Set("Accept-Encoding", "identity")
	req.Header.Set("User-Agent", "chaski")
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := b.client.Do(req)
	if err != nil {
		var ue *url.Error
		if errors.As(err, &ue) {
			err = ue.Err
		}
		return nil, err
	}
	if e := resp.Header.Get("Content-Encoding"); e != "" && e != "identity" && resp.StatusCode == http.StatusOK {
		_ = resp.Body.Close()
		return nil, remote.Fail(remote.Refused, fmt.Errorf("the page comes with Content-Encoding %.20q, although as stored was asked for", e))
	}
	return resp, nil
}

// notListed is the failure of a server that does not say what lies in a folder.
func notListed(err error) error {
	return remote.Fail(remote.Refused, fmt.Errorf("the server has no listing of the folder (%w): its own index, or an index.html of links to what lies in it, is needed", err))
}

// linked returns the names that links of a page in HTML lead to directly below its own URL. ends says that the page is
// known to be whole.
func linked(base *url.URL, page []byte, ends bool) ([]string, error) {
	if !strings.HasSuffix(base.Path, "/") {
		return nil, notListed(errors.New("a redirect to a page that is no folder's"))
	}
	var names []string
	seen := map[string]bool{}
	z := html.NewTokenizer(bytes.NewReader(page))
	for {
		switch z.Next() {
		case html.ErrorToken:
			if err := z.Err(); err != io.EOF {
				return nil, notListed(err)
			}
			if !ends {
				return nil, remote.Fail(remote.Transient, errors.New("the page about the folder has no end"))
			}
			return names, nil
		case html.EndTagToken:
			if tag, _ := z.TagName(); string(tag) == "html" {
				ends = true
			}
		case html.StartTagToken, html.SelfClosingTagToken:
			switch t := z.Token(); t.Data {
			case "base":
				return nil, notListed(errors.New("a page with a base of its own"))
			case "a":
				for _, a := range t.Attr {
					if name := child(base, a.Val); a.Key == "href" && name != "" && !seen[name] {
						seen[name] = true
						names = append(names, name)
					}
				}
			}
		}
	}
}

// child returns the name that a link has below a folder, with "/" if it is a folder, or "" for one that leads elsewhere.
func child(folder *url.URL, href string) string {
	u, err := folder.Parse(strings.TrimSpace(href))
	if err != nil || u.Scheme != folder.Scheme || u.Host != folder.Host || u.RawQuery != "" || u.ForceQuery || u.Fragment != "" {
		return ""
	}
	name, below := strings.CutPrefix(u.Path, folder.Path)
	if !below || !plain(strings.TrimSuffix(name, "/")) {
		return ""
	}
	return name
}

// plain reports whether a name is one of something in a folder.
func plain(name string) bool {
	return name != "" && name != "." && name != ".." && !strings.ContainsAny(name, "/\\\x00")
}

// entry is what nginx and Caddy say in JSON of what lies in a folder.
type entry struct {
	Name  string `json:"name"`
	Type  string `json:"type"`   // nginx: "directory", "file", …
	IsDir bool   `json:"is_dir"` // Caddy
}

func entries(page []byte) ([]string, error) {
	var list []entry
	if err := json.Unmarshal(page, &list); err != nil {
		return nil, notListed(errors.New("JSON that is no list of names"))
	}
	var names []string
	for _, e := range list {
		name, slash := strings.CutSuffix(e.Name, "/")
		if !plain(name) {
			return nil, notListed(fmt.Errorf("an entry called %.60q", e.Name))
		}
		if slash || e.IsDir || e.Type == "directory" {
			name += "/"
		}
		names = append(names, name)
	}
	return names, nil
}
