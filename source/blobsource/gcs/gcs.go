// Package gcs is the driver of package blobsource for Google Cloud Storage. Tags are the generations of objects.
package gcs

import (
	"context"
	"errors"
	"net/http"
	"os"
	"strconv"

	"cloud.google.com/go/storage"
	"gocloud.dev/blob"
	"gocloud.dev/blob/gcsblob"
	"golang.org/x/oauth2"
	"golang.org/x/oauth2/google"
	"google.golang.org/api/googleapi"
	"google.golang.org/api/option"

	"github.com/chaski-eo/chaski/source/blobsource"
	"github.com/chaski-eo/chaski/source/remote"
)

// New returns the driver. Credentials come from the environment ("application default"); GS_NO_SIGN_REQUEST=YES and
// STORAGE_EMULATOR_HOST send none, for public buckets. GS_USER_PROJECT names the project that pays for requests, as in
// GDAL.
func New() blobsource.Driver {
	return &driver{transport: blobsource.Tune(http.DefaultTransport.(*http.Transport).Clone())}
}

type driver struct{ transport *http.Transport }

// Bucket implements blobsource.Driver.
func (d *driver) Bucket(ctx context.Context, name string) (*blob.Bucket, error) {
	client := &http.Client{Transport: d.transport, CheckRedirect: blobsource.NoRedirect}
	options := []option.ClientOption{option.WithHTTPClient(client)}
	if !blobsource.Unsigned("GS_NO_SIGN_REQUEST") && os.Getenv("STORAGE_EMULATOR_HOST") == "" {
		// The credentials are renewed long after this call, and its context, have ended.
		found, err := google.FindDefaultCredentials(context.WithoutCancel(ctx), storage.ScopeReadWrite)
		if err != nil {
			return nil, remote.Fail(remote.Denied, err)
		}
		if domain, err := found.GetUniverseDomain(); err == nil { // else the public one
			options = append(options, option.WithUniverseDomain(domain))
		}
		client.Transport = &oauth2.Transport{Base: d.transport, Source: found.TokenSource}
	}
	if project := os.Getenv("GS_USER_PROJECT"); project != "" {
		client.Transport = payer{client.Transport, project}
	}
	made, err := storage.NewClient(ctx, options...)
	if err != nil {
		return nil, remote.Fail(remote.Denied, err)
	}
	made.SetRetry(storage.WithPolicy(storage.RetryNever)) // package remote retries, and counts the attempts
	return gcsblob.OpenBucket(ctx, nil, name, &gcsblob.Options{Client: made})
}

// payer says in each request which project pays for it.
type payer struct {
	http.RoundTripper
	project string
}

// RoundTrip implements http.RoundTripper.
func (p payer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context()) // a transport must not change it
	r.Header.Set("X-Goog-User-Project", p.project)
	return p.RoundTripper.RoundTrip(r)
}

// Condition implements blobsource.Driver.
func (d *driver) Condition(as func(any) bool, tag remote.Tag) error {
	var h **storage.ObjectHandle
	if g, err := strconv.ParseInt(tag.ETag, 10, 64); err == nil && g > 0 && as(&h) {
		*h = (*h).If(storage.Conditions{GenerationMatch: g})
	}
	return nil
}

// Answer implements blobsource.Driver.
func (d *driver) Answer(r *blob.Reader, asked remote.Range) (*remote.Answer, error) {
	var out *storage.Reader
	if !r.As(&out) {
		return nil, remote.Fail(remote.Refused, errors.New("the response is not from GCS"))
	}
	attrs := out.Attrs
	if attrs.Decompressed || attrs.ContentEncoding == "gzip" {
		return nil, remote.Fail(remote.Refused,
			errors.New("the object is stored with gzip encoding: byte ranges of it cannot be read"))
	}
	size := out.Remain()
	if attrs.StartOffset != asked.Off || size > asked.Len {
		return nil, remote.Fail(remote.Transient, errors.New("the response has another range than the requested one"))
	}
	return &remote.Answer{Range: remote.Range{Off: attrs.StartOffset, Len: size}, Size: attrs.Size,
		Tag: remote.Tag{ETag: generation(attrs.Generation), Modified: attrs.LastModified}}, nil
}

// generation returns a generation as a tag, or "" for a number that no generation has.
func generation(g int64) string {
	if g <= 0 {
		return ""
	}
	return strconv.FormatInt(g, 10)
}

// ETag implements blobsource.Driver.
func (d *driver) ETag(o *blob.ListObject) string {
	var listed storage.ObjectAttrs
	if !o.As(&listed) {
		return ""
	}
	return generation(listed.Generation)
}

// Status implements blobsource.Driver.
func (d *driver) Status(err error) (int, http.Header) {
	if failed, ok := errors.AsType[*googleapi.Error](err); ok {
		return failed.Code, failed.Header
	}
	return 0, nil
}

// Close implements blobsource.Driver.
func (d *driver) Close() error {
	d.transport.CloseIdleConnections()
	return nil
}
