// Package blobsource reads byte ranges of objects in object stores, lists and writes them, through gocloud.dev/blob:
// s3://BUCKET/KEY, gs://BUCKET/KEY, az://CONTAINER/KEY, abfs://CONTAINER@HOST/KEY.
//
// The drivers are the packages s3, gcs and azure below this one. A program passes the drivers that
// it imports to New, and compiles no other SDK. Keys in a URI are not escaped.
package blobsource

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"

	"gocloud.dev/blob"
	"gocloud.dev/gcerrors"

	"github.com/chaski-eo/chaski/internal/keylock"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/source/remote"
)

// Driver is what differs from store to store. It is safe for concurrent use.
type Driver interface {
	// Bucket opens a bucket. It is closed with the opener.
	Bucket(ctx context.Context, name string) (*blob.Bucket, error)
	// Condition adds the tag that an object must have to a request; see
	// blob.ReaderOptions.BeforeRead. It also turns off the retries of the SDK.
	Condition(as func(any) bool, tag remote.Tag) error
	// Answer returns the headers of the response to a range request.
	Answer(r *blob.Reader, asked remote.Range) (*remote.Answer, error)
	// ETag returns the tag of a listed object, in the form that responses have.
	ETag(o *blob.ListObject) string
	// Status returns the HTTP status and headers of an error, or 0.
	Status(err error) (int, http.Header)
	// Close closes idle connections.
	Close() error
}

// NoRedirect is the CheckRedirect of the HTTP client of a driver: a store has no reason to redirect to another host.
func NoRedirect(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// New returns an opener for the URIs of a driver. Close it after use. It returns an error if
// options are invalid. Credentials are looked up when a bucket is first used.
func New(d Driver, o remote.Options) (*remote.Opener, error) {
	return remote.New(&backend{driver: d, buckets: map[string]*blob.Bucket{}}, o)
}

type backend struct {
	driver  Driver
	mu      sync.Mutex
	buckets map[string]*blob.Bucket
	opening keylock.Locks[string] // one caller at a time opens a bucket
}

// maxBuckets limits the open buckets, because users choose the names of buckets in URIs.
const maxBuckets = 256

// split returns the bucket and the key of a URI.
func split(uri string) (name, key string) {
	_, rest, _ := strings.Cut(uri, "://")
	name, key, _ = strings.Cut(rest, "/")
	return name, key
}

// Host implements remote.Backend.
func (b *backend) Host(uri string) string {
	name, _ := split(uri)
	return name
}

func (b *backend) bucket(ctx context.Context, name string) (*blob.Bucket, error) {
	if name == "" {
		return nil, remote.Fail(remote.Refused, errors.New("the URI has no bucket"))
	}
	unlock, err := b.opening.Lock(ctx, name)
	if err != nil {
		return nil, err
	}
	defer unlock()
	b.mu.Lock()
	found, open := b.buckets[name], len(b.buckets)
	b.mu.Unlock()
	if found != nil {
		return found, nil
	}
	if open >= maxBuckets {
		return nil, remote.Fail(remote.Denied, fmt.Errorf("more than %d buckets", maxBuckets))
	}
	if found, err = b.driver.Bucket(ctx, name); err != nil {
		return nil, b.failure(err)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.buckets[name] = found
	return found, nil
}

// Get implements remote.Backend.
func (b *backend) Get(ctx context.Context, uri string, r remote.Range, tag remote.Tag) (a *remote.Answer, err error) {
	name, key := split(uri)
	if key == "" {
		return nil, remote.Fail(remote.Refused, errors.New("the URI has no object"))
	}
	bucket, err := b.bucket(ctx, name)
	if err != nil {
		return nil, err
	}
	defer func() {
		if p := recover(); p != nil { // a driver may trust the headers of the server and panic
			a, err = nil, remote.Fail(remote.Transient, fmt.Errorf("the driver failed: %v", p))
		}
	}()
	body, err := bucket.NewRangeReader(ctx, key, r.Off, r.Len,
		&blob.ReaderOptions{BeforeRead: func(as func(any) bool) error {
			return b.driver.Condition(as, tag)
		}})
	if err != nil {
		return nil, b.failure(err)
	}
	if a, err = b.driver.Answer(body, r); err != nil {
		_ = body.Close()
		return nil, err
	}
	a.Body = body
	return a, nil
}

// Put implements remote.Putter.
func (b *backend) Put(ctx context.Context, uri string, body io.Reader, fresh bool) error {
	name, key := split(uri)
	if key == "" || strings.HasSuffix(key, "/") {
		return remote.Fail(remote.Refused, errors.New("the URI has no object"))
	}
	bucket, err := b.bucket(ctx, name)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	// The type is not guessed from the first bytes, which would differ from store to store.
	w, err := bucket.NewWriter(ctx, key, &blob.WriterOptions{ContentType: "application/octet-stream",
		DisableContentTypeDetection: true, IfNotExist: fresh})
	if err != nil {
		return b.failure(err)
	}
	if _, err = io.Copy(w, body); err != nil {
		cancel() // closing writes no object then
		_ = w.Close()
		return b.failure(err)
	}
	err = w.Close()
	if err != nil && fresh && gcerrors.Code(err) == gcerrors.FailedPrecondition {
		return remote.Fail(remote.Refused, remote.ErrExists)
	}
	if err != nil {
		return b.failure(err)
	}
	return nil
}

// Remove implements remote.Putter.
func (b *backend) Remove(ctx context.Context, uri string) error {
	name, key := split(uri)
	if key == "" {
		return remote.Fail(remote.Refused, errors.New("the URI has no object"))
	}
	bucket, err := b.bucket(ctx, name)
	if err != nil {
		return err
	}
	if err := bucket.Delete(ctx, key); err != nil {
		return b.failure(err)
	}
	return nil
}

// failure classifies an error of a driver. What it returns has neither the key nor a URL, which may contain a
// signature.
func (b *backend) failure(err error) error {
	var f *remote.Failure
	if errors.As(err, &f) {
		return f
	}
	code := gcerrors.Code(err)
	if inner := errors.Unwrap(err); inner != nil && strings.HasPrefix(err.Error(), "blob (key ") {
		err = inner
	}
	if ue := (*url.Error)(nil); errors.As(err, &ue) {
		err = ue.Err
	}
	if status, h := b.driver.Status(err); status >= 300 {
		f = remote.Status(status, h)
		f.Err = Brief(err)
		return f
	}
	switch code {
	case gcerrors.NotFound:
		return remote.Fail(remote.Missing, Brief(err))
	case gcerrors.FailedPrecondition:
		return remote.Fail(remote.Changed, Brief(err))
	case gcerrors.PermissionDenied, gcerrors.InvalidArgument, gcerrors.Unimplemented:
		return remote.Fail(remote.Denied, Brief(err))
	}
	return err
}

// Brief returns the last part of an error's text on one line, without the identifiers of requests. The SDKs
// repeat the request in front of it.
func Brief(err error) error {
	text := strings.Join(strings.Fields(err.Error()), " ")
	for _, before := range [...]string{"(code=Unknown): ", "api error ", "get credentials: ", "RESPONSE "} {
		if i := strings.LastIndex(text, before); i >= 0 {
			text = text[i+len(before):]
		}
	}
	const most = 300
	if len(text) > most {
		text = text[:most] + "…"
	}
	return errors.New(text)
}

// pageSize is the number of objects requested in one page of a listing, the most that S3 returns.
const pageSize = 1000

// Lists implements remote.Lister.
func (b *backend) Lists(string) bool { return true }

// ListPage implements remote.Lister.
func (b *backend) ListPage(ctx context.Context, folder string, token []byte) (page []source.Entry,
	next []byte, err error) {
	name, prefix := split(folder)
	bucket, err := b.bucket(ctx, name)
	if err != nil {
		return nil, nil, err
	}
	if prefix = strings.TrimSuffix(prefix, "/"); prefix != "" {
		prefix += "/"
	}
	if token == nil {
		token = blob.FirstPageToken
	}
	objects, next, err := bucket.ListPage(ctx, token, pageSize, &blob.ListOptions{Prefix: prefix})
	if err != nil {
		return nil, nil, b.failure(err)
	}
	for _, listObject := range objects {
		path := strings.TrimPrefix(listObject.Key, prefix)
		if listObject.IsDir || path == "" || strings.HasSuffix(path, "/") {
			continue
		}
		page = append(page, source.Entry{Path: path, Size: listObject.Size, ETag: b.driver.ETag(listObject)})
	}
	return page, next, nil
}

// Close implements io.Closer.
func (b *backend) Close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	var errs []error
	for _, opened := range b.buckets {
		errs = append(errs, opened.Close())
	}
	clear(b.buckets)
	return errors.Join(append(errs, b.driver.Close())...)
}
