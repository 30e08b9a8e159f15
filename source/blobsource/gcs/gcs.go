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
	"gocloud.dev/gcp"
	"google.golang.org/api/googleapi"

	"github.com/chaski-eo/chaski/source/blobsource"
	"github.com/chaski-eo/chaski/source/remote"
)

// Options configure New. Credentials come from the environment ("application default").
type Options struct {
	// Anonymous sends no credentials, for public buckets. GS_NO_SIGN_REQUEST=YES and
	// STORAGE_EMULATOR_HOST have the same effect.
	Anonymous bool
	// Connections is the number of idle connections to keep. Default remote.DefaultConcurrency.
	Connections int
}

// New returns the driver.
func New(o Options) blobsource.Driver {
	o.Anonymous = o.Anonymous || blobsource.Unsigned("GS_NO_SIGN_REQUEST")
	if os.Getenv("STORAGE_EMULATOR_HOST") != "" {
		o.Anonymous = true
	}
	return &driver{o: o, transport: blobsource.Tune(http.DefaultTransport.(*http.Transport).Clone(), o.Connections)}
}

type driver struct {
	o         Options
	transport *http.Transport
}

// Bucket implements blobsource.Driver.
func (d *driver) Bucket(ctx context.Context, name string) (*blob.Bucket, error) {
	client := gcp.NewAnonymousHTTPClient(d.transport)
	if !d.o.Anonymous {
		creds, err := gcp.DefaultCredentials(ctx)
		if err != nil {
			return nil, remote.Fail(remote.Denied, err)
		}
		if client, err = gcp.NewHTTPClient(d.transport, gcp.CredentialsTokenSource(creds)); err != nil {
			return nil, remote.Fail(remote.Denied, err)
		}
	}
	return gcsblob.OpenBucket(ctx, client, name, nil)
}

// Condition implements blobsource.Driver.
func (d *driver) Condition(as func(any) bool, tag remote.Tag) error {
	var h **storage.ObjectHandle
	if !as(&h) {
		return nil
	}
	*h = (*h).Retryer(storage.WithPolicy(storage.RetryNever)) // package remote retries, and counts the attempts
	if g, err := strconv.ParseInt(tag.ETag, 10, 64); err == nil && g > 0 {
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
	n := out.Remain()
	if attrs.StartOffset != asked.Off || n > asked.Len {
		return nil, remote.Fail(remote.Transient, errors.New("the response has another range than the requested one"))
	}
	answer := &remote.Answer{Range: remote.Range{Off: attrs.StartOffset, Len: n}, Size: attrs.Size}
	answer.Tag.Modified = attrs.LastModified
	if attrs.Generation > 0 {
		answer.Tag.ETag = strconv.FormatInt(attrs.Generation, 10)
	}
	return answer, nil
}

// ETag implements blobsource.Driver.
func (d *driver) ETag(o *blob.ListObject) string {
	var x storage.ObjectAttrs
	if !o.As(&x) || x.Generation <= 0 {
		return ""
	}
	return strconv.FormatInt(x.Generation, 10)
}

// Status implements blobsource.Driver.
func (d *driver) Status(err error) (int, http.Header) {
	var ge *googleapi.Error
	if errors.As(err, &ge) {
		return ge.Code, ge.Header
	}
	return 0, nil
}

// Close implements blobsource.Driver.
func (d *driver) Close() error {
	d.transport.CloseIdleConnections()
	return nil
}
