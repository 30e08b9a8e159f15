// Package gcs is the driver of package blobsource for Google Cloud Storage. Tags are the generations of objects.
package gcs

import (
	"context"
	"errors"
	"net/http"
	"os"
	"strconv"
	"strings"

	"gocloud.dev/blob"
	"golang.org/x/oauth2"
	"golang.org/x/oauth2/google"

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
	base := "https://storage.googleapis.com"
	if emulator := os.Getenv("STORAGE_EMULATOR_HOST"); emulator != "" {
		if base = strings.TrimSuffix(emulator, "/"); !strings.Contains(base, "://") {
			base = "http://" + base
		}
		o.Anonymous = true
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	return &store{o: o, base: base, transport: blobsource.Tune(transport, o.Connections)}
}

type store struct {
	o         Options
	base      string // scheme and host of the store
	transport *http.Transport
}

// scope is the permission to ask for: what the account may do in the store decides.
const scope = "https://www.googleapis.com/auth/cloud-platform"

// Bucket implements blobsource.Driver.
func (d *store) Bucket(ctx context.Context, name string) (*blob.Bucket, error) {
	b := &bucket{name: name, base: d.base, wait: firstWait, client: &http.Client{Transport: d.transport,
		CheckRedirect: blobsource.NoRedirect}}
	if !d.o.Anonymous {
		// The credentials are renewed long after this call, and its context, have ended.
		found, err := google.FindDefaultCredentials(context.WithoutCancel(ctx), scope)
		if err != nil {
			return nil, remote.Fail(remote.Denied, err)
		}
		if domain, err := found.GetUniverseDomain(); err == nil { // else the public one
			b.base = "https://storage." + domain
		}
		b.client.Transport = &oauth2.Transport{Base: d.transport, Source: found.TokenSource}
	}
	return blob.NewBucket(b), nil
}

// Condition implements blobsource.Driver.
func (d *store) Condition(as func(any) bool, tag remote.Tag) error {
	var req *http.Request
	if g, err := strconv.ParseInt(tag.ETag, 10, 64); err == nil && g > 0 && as(&req) {
		req.Header.Set("X-Goog-If-Generation-Match", tag.ETag)
	}
	return nil
}

// Answer implements blobsource.Driver.
func (d *store) Answer(r *blob.Reader, asked remote.Range) (*remote.Answer, error) {
	var resp *http.Response
	if !r.As(&resp) {
		return nil, remote.Fail(remote.Refused, errors.New("the response is not from GCS"))
	}
	h := resp.Header
	if h.Get("X-Goog-Stored-Content-Encoding") == "gzip" || h.Get("Content-Encoding") == "gzip" {
		return nil, remote.Fail(remote.Refused,
			errors.New("the object is stored with gzip encoding: byte ranges of it cannot be read"))
	}
	answer, err := remote.Check(asked, resp.StatusCode, h.Get("Content-Range"), resp.ContentLength)
	if err != nil {
		return nil, err
	}
	answer.Tag.Modified, _ = http.ParseTime(h.Get("Last-Modified")) // not known if it is missing
	answer.Tag.ETag = generation(h.Get("X-Goog-Generation"))
	return answer, nil
}

// generation returns a generation if it is one, or "".
func generation(text string) string {
	if g, err := strconv.ParseInt(text, 10, 64); err != nil || g <= 0 {
		return ""
	}
	return text
}

// ETag implements blobsource.Driver.
func (d *store) ETag(o *blob.ListObject) string {
	var listed *object
	if !o.As(&listed) {
		return ""
	}
	return generation(strconv.FormatInt(listed.Generation, 10))
}

// Status implements blobsource.Driver.
func (d *store) Status(err error) (int, http.Header) {
	var status *statusError
	if errors.As(err, &status) {
		return status.code, status.header
	}
	return 0, nil
}

// Close implements blobsource.Driver.
func (d *store) Close() error {
	d.transport.CloseIdleConnections()
	return nil
}
