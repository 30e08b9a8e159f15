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
	"github.com/chaski-eo/chaski/source/sign"
)

// maxPage limits a server's index page, in bytes: 80,000 links of 100 bytes.
const maxPage = 8 << 20

// Names implements remote.Namer. HTTP cannot list directories, but servers have index pages: the
// entries of a directory are the links of its page that lead into the directory itself. HTML pages
// of any server or written by hand are read, and the JSON of nginx (autoindex_format json) and of
// Caddy. The hub lists directories of hf:// URIs.
func (b *backend) Names(ctx context.Context, folder string) ([]string, error) {
	if strings.HasPrefix(folder, "hf://") {
		return b.hubNames(ctx, folder)
	}
	address, err := b.parse(folder)
	switch {
	case err != nil:
		return nil, remote.Fail(remote.Refused, err)
	case address.RawQuery != "":
		return nil, remote.Fail(remote.Refused, errors.New("the URI of a directory must not have a query"))
	}
	address = address.JoinPath("/")
	signature, err := b.o.Sign.Sign(ctx, address)
	if err != nil {
		return nil, err
	}
	resp, err := b.page(ctx, signature.URL(address), "text/html, application/json;q=0.9", signature)
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
	// If the answer has neither a length nor chunks, a connection that breaks looks like the end of
	// the page. The page must then end with its closing tag.
	ends := resp.ContentLength >= 0 || len(resp.TransferEncoding) > 0 || resp.ProtoMajor > 1
	base := resp.Request.URL // after redirects
	if len(body) > maxPage {
		return nil, notListed(fmt.Errorf("the page has over %d bytes", maxPage))
	}
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	switch kind {
	case "text/html", "application/xhtml+xml":
		return linked(base, body, ends)
	case "application/json":
		return entries(body)
	}
	return nil, notListed(fmt.Errorf("the page has the content type %.60q", kind))
}

// page requests the index page of a directory, of one of the types in accept.
func (b *backend) page(ctx context.Context, u *url.URL, accept string,
	signature *sign.Signature) (*http.Response, error) {
	req, err := b.request(ctx, u, signature)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", accept)
	resp, err := b.do(req)
	if err != nil {
		return nil, err
	}
	if e := resp.Header.Get("Content-Encoding"); e != "" && e != "identity" && resp.StatusCode == http.StatusOK {
		_ = resp.Body.Close()
		return nil, remote.Fail(remote.Refused,
			fmt.Errorf("the page has Content-Encoding %.20q, but the bytes as stored were requested", e))
	}
	return resp, nil
}

// notListed returns the failure for a server without a usable index page.
func notListed(err error) error {
	return remote.Fail(remote.Refused,
		fmt.Errorf("the server has no listing of the folder (%w): it needs an index page, or an index.html with "+
			"links to the entries", err))
}

// linked returns the names of the entries directly below the URL of an HTML page that its links
// lead to. ends says that the page is known to be complete.
func linked(base *url.URL, page []byte, ends bool) ([]string, error) {
	if !strings.HasSuffix(base.Path, "/") {
		return nil, notListed(errors.New("a redirect to a page that is not the directory's"))
	}
	var names []string
	seen := map[string]bool{}
	tokenizer := html.NewTokenizer(bytes.NewReader(page))
	for {
		switch tokenizer.Next() {
		case html.ErrorToken:
			if err := tokenizer.Err(); err != io.EOF {
				return nil, notListed(err)
			}
			if !ends {
				return nil, remote.Fail(remote.Transient, errors.New("the index page is incomplete"))
			}
			return names, nil
		case html.EndTagToken:
			if tag, _ := tokenizer.TagName(); string(tag) == "html" {
				ends = true
			}
		case html.StartTagToken, html.SelfClosingTagToken:
			switch token := tokenizer.Token(); token.Data {
			case "base":
				return nil, notListed(errors.New("the page has a <base> element"))
			case "a":
				for _, a := range token.Attr {
					if name := child(base, a.Val); a.Key == "href" && name != "" && !seen[name] {
						seen[name] = true
						names = append(names, name)
					}
				}
			}
		}
	}
}

// child returns the name of the entry that a link leads to, with "/" if it is a directory, or "" if
// the link leads out of the directory.
func child(folder *url.URL, href string) string {
	address, err := folder.Parse(strings.TrimSpace(href))
	if err != nil || address.Scheme != folder.Scheme || address.Host != folder.Host {
		return ""
	}
	if address.RawQuery != "" || address.ForceQuery || address.Fragment != "" {
		return ""
	}
	name, below := strings.CutPrefix(address.Path, folder.Path)
	if !below || !plain(strings.TrimSuffix(name, "/")) {
		return ""
	}
	return name
}

// plain reports whether a name is an entry of a directory.
func plain(name string) bool {
	return name != "" && name != "." && name != ".." && !strings.ContainsAny(name, "/\\\x00")
}

// listEntry is an entry in the JSON of nginx or Caddy.
type listEntry struct {
	Name  string `json:"name"`
	Type  string `json:"type"`   // nginx: "directory", "file", …
	IsDir bool   `json:"is_dir"` // Caddy
}

func entries(page []byte) ([]string, error) {
	var list []listEntry
	if err := json.Unmarshal(page, &list); err != nil {
		return nil, notListed(errors.New("the JSON is not a list of entries"))
	}
	var names []string
	for _, entry := range list {
		name, slash := strings.CutSuffix(entry.Name, "/")
		if !plain(name) {
			return nil, notListed(fmt.Errorf("the entry %.60q is not a file name", entry.Name))
		}
		if slash || entry.IsDir || entry.Type == "directory" {
			name += "/"
		}
		names = append(names, name)
	}
	return names, nil
}
