package gcs

import (
	"cmp"
	"context"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"gocloud.dev/blob/driver"
	"gocloud.dev/gcerrors"

	"github.com/chaski-eo/chaski/source/remote"
)

// bucket implements driver.Bucket by HTTP requests: objects are read through the XML API of Cloud Storage, as Google's
// own client reads them, and listed, described and written through the JSON API (Cloud Storage documentation, "XML API
// overview" and "JSON API overview"). Google's client would link gRPC's control plane, OpenTelemetry and a monitoring
// service into the command: 4 MB.
type bucket struct {
	client *http.Client
	base   string // scheme and host
	name   string
	wait   time.Duration // before the second request for a part of an upload
}

// object is the description of an object in the JSON API. Its numbers are strings.
type object struct {
	Name        string    `json:"name"`
	Size        int64     `json:"size,string"`
	Generation  int64     `json:"generation,string"`
	Updated     time.Time `json:"updated"`
	ContentType string    `json:"contentType"`
	CRC32C      string    `json:"crc32c"`
}

// statusError is a response with a status of 300 or more.
type statusError struct {
	code   int
	header http.Header
	text   string
}

func (e *statusError) Error() string {
	return strings.TrimSpace(fmt.Sprintf("%d %s %s", e.code, http.StatusText(e.code), e.text))
}

// maxError is the largest body of a failed response that is read, and maxPage that of a listing: 1000 names of at most
// 1024 bytes, each of which JSON may write in 6, with their descriptions.
const (
	maxError = 64 << 10
	maxPage  = 1000 * (6*1024 + 1024)
)

// do makes a request. A status that is not in wanted is an error; with none, 200 to 299 are wanted.
func (b *bucket) do(req *http.Request, wanted ...int) (*http.Response, error) {
	resp, err := b.client.Do(req)
	if err != nil {
		return nil, err
	}
	if slices.Contains(wanted, resp.StatusCode) || len(wanted) == 0 && resp.StatusCode/100 == 2 {
		return resp, nil
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(io.LimitReader(resp.Body, maxError)) // half of an explanation is better than none
	return nil, &statusError{resp.StatusCode, resp.Header, explanation(body)}
}

// explanation returns the message in the body of an error of either API, or "".
func explanation(body []byte) string {
	var fromJSON struct {
		Error struct {
			Message string `json:"message"`
		} `json:"error"`
	}
	if json.Unmarshal(body, &fromJSON) == nil {
		return fromJSON.Error.Message
	}
	var fromXML struct {
		Message string
	}
	if xml.Unmarshal(body, &fromXML) == nil {
		return fromXML.Message
	}
	return ""
}

// describe requests JSON and decodes at most limit bytes of it.
func (b *bucket) describe(ctx context.Context, path string, query url.Values, limit int64, out any) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, b.base+path+"?"+query.Encode(), http.NoBody)
	if err != nil {
		return err
	}
	resp, err := b.do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if err := json.NewDecoder(io.LimitReader(resp.Body, limit)).Decode(out); err != nil {
		return remote.Fail(remote.Transient, fmt.Errorf("the response is not JSON of at most %d bytes: %w", limit, err))
	}
	return nil
}

// objects returns the path of the bucket's objects in the JSON API.
func (b *bucket) objects() string { return "/storage/v1/b/" + url.PathEscape(b.name) + "/o" }

// Attributes implements driver.Bucket.
func (b *bucket) Attributes(ctx context.Context, key string) (*driver.Attributes, error) {
	var o object
	query := url.Values{"fields": {"name,size,generation,updated,contentType"}}
	if err := b.describe(ctx, b.objects()+"/"+url.PathEscape(key), query, maxError, &o); err != nil {
		return nil, err
	}
	return &driver.Attributes{ContentType: o.ContentType, ModTime: o.Updated, CreateTime: o.Updated, Size: o.Size,
		AsFunc: o.as}, nil
}

// as gives the object to a caller who asks for it.
func (o *object) as(i any) bool {
	p, ok := i.(**object)
	if ok {
		*p = o
	}
	return ok
}

// ListPaged implements driver.Bucket.
func (b *bucket) ListPaged(ctx context.Context, o *driver.ListOptions) (*driver.ListPage, error) {
	query := url.Values{"prefix": {o.Prefix}, "maxResults": {strconv.Itoa(cmp.Or(o.PageSize, 1000))},
		"fields": {"prefixes,nextPageToken,items(name,size,generation,updated)"}}
	if o.Delimiter != "" {
		query.Set("delimiter", o.Delimiter)
	}
	if len(o.PageToken) > 0 {
		query.Set("pageToken", string(o.PageToken))
	}
	var answer struct {
		Items         []*object `json:"items"`
		Prefixes      []string  `json:"prefixes"`
		NextPageToken string    `json:"nextPageToken"`
	}
	if err := b.describe(ctx, b.objects(), query, maxPage, &answer); err != nil {
		return nil, err
	}
	page := &driver.ListPage{NextPageToken: []byte(answer.NextPageToken)}
	for _, item := range answer.Items {
		page.Objects = append(page.Objects, &driver.ListObject{Key: item.Name, ModTime: item.Updated, Size: item.Size,
			AsFunc: item.as})
	}
	for _, prefix := range answer.Prefixes {
		page.Objects = append(page.Objects, &driver.ListObject{Key: prefix, IsDir: true,
			AsFunc: func(any) bool { return false }})
	}
	slices.SortFunc(page.Objects, func(x, y *driver.ListObject) int { return cmp.Compare(x.Key, y.Key) })
	return page, nil
}

// reader is the body of a response, with its headers.
type reader struct {
	io.ReadCloser
	resp *http.Response
}

// Attributes implements driver.Reader.
func (r *reader) Attributes() *driver.ReaderAttributes {
	a := &driver.ReaderAttributes{ContentType: r.resp.Header.Get("Content-Type"), Size: r.resp.ContentLength}
	if _, size, err := remote.ContentRange(r.resp.Header.Get("Content-Range")); err == nil {
		a.Size = size
	}
	a.ModTime, _ = http.ParseTime(r.resp.Header.Get("Last-Modified")) // not known if it is missing
	return a
}

// As implements driver.Reader: it gives the response.
func (r *reader) As(i any) bool {
	p, ok := i.(**http.Response)
	if ok {
		*p = r.resp
	}
	return ok
}

// NewRangeReader implements driver.Bucket.
func (b *bucket) NewRangeReader(ctx context.Context, key string, offset, length int64,
	o *driver.ReaderOptions) (driver.Reader, error) {
	u := b.base + (&url.URL{Path: "/" + b.name + "/" + key}).EscapedPath()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u, http.NoBody)
	if err != nil {
		return nil, err
	}
	if offset > 0 || length >= 0 {
		last := ""
		if length >= 0 {
			last = strconv.FormatInt(offset+max(length, 1)-1, 10)
		}
		req.Header.Set("Range", fmt.Sprintf("bytes=%d-%s", offset, last))
	}
	// Without this header the store would decompress objects that are stored with gzip encoding.
	req.Header.Set("Accept-Encoding", "gzip")
	if o.BeforeRead != nil {
		err := o.BeforeRead(func(i any) bool {
			p, ok := i.(**http.Request)
			if ok {
				*p = req
			}
			return ok
		})
		if err != nil {
			return nil, err
		}
	}
	resp, err := b.do(req)
	if err != nil {
		return nil, err
	}
	r := &reader{resp.Body, resp}
	if length == 0 {
		_ = resp.Body.Close()
		r.ReadCloser = http.NoBody
	}
	return r, nil
}

// Delete implements driver.Bucket.
func (b *bucket) Delete(ctx context.Context, key string, _ *driver.DeleteOptions) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodDelete, b.base+b.objects()+"/"+url.PathEscape(key),
		http.NoBody)
	if err != nil {
		return err
	}
	resp, err := b.do(req)
	if err != nil {
		return err
	}
	return resp.Body.Close()
}

// errUnused is the answer to what chaski never asks of a bucket.
var errUnused = errors.New("chaski does not do this in Google Cloud Storage")

// Copy implements driver.Bucket.
func (b *bucket) Copy(context.Context, string, string, *driver.CopyOptions) error { return errUnused }

// SignedURL implements driver.Bucket.
func (b *bucket) SignedURL(context.Context, string, *driver.SignedURLOptions) (string, error) {
	return "", errUnused
}

// As implements driver.Bucket.
func (b *bucket) As(any) bool { return false }

// ErrorAs implements driver.Bucket.
func (b *bucket) ErrorAs(err error, i any) bool {
	p, ok := i.(**statusError)
	return ok && errors.As(err, p)
}

// ErrorCode implements driver.Bucket.
func (b *bucket) ErrorCode(err error) gcerrors.ErrorCode {
	var status *statusError
	switch {
	case errors.Is(err, context.Canceled):
		return gcerrors.Canceled
	case errors.Is(err, context.DeadlineExceeded):
		return gcerrors.DeadlineExceeded
	case errors.Is(err, errUnused):
		return gcerrors.Unimplemented
	case !errors.As(err, &status):
		return gcerrors.Unknown
	}
	switch status.code {
	case http.StatusNotFound:
		return gcerrors.NotFound
	case http.StatusUnauthorized, http.StatusForbidden:
		return gcerrors.PermissionDenied
	case http.StatusPreconditionFailed, http.StatusNotModified:
		return gcerrors.FailedPrecondition
	case http.StatusBadRequest:
		return gcerrors.InvalidArgument
	case http.StatusTooManyRequests:
		return gcerrors.ResourceExhausted
	}
	return gcerrors.Unknown
}

// Close implements driver.Bucket.
func (b *bucket) Close() error { return nil }
