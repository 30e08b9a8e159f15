// Package azure is the driver of package blobsource for Azure Blob Storage.
package azure

import (
	"context"
	"errors"
	"net/http"
	"os"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"
	azblob "github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"gocloud.dev/blob"
	"gocloud.dev/blob/azureblob"

	"github.com/chaski-eo/chaski/source/blobsource"
	"github.com/chaski-eo/chaski/source/remote"
)

// Options configure New. The account is AZURE_STORAGE_ACCOUNT. The credentials are
// AZURE_STORAGE_KEY, AZURE_STORAGE_SAS_TOKEN or AZURE_STORAGE_CONNECTION_STRING, otherwise those
// that azidentity.NewDefaultAzureCredential finds.
type Options struct {
	// Anonymous sends no credentials, for public containers. AZURE_NO_SIGN_REQUEST=YES has the same
	// effect.
	Anonymous bool
	// Connections is the number of idle connections to keep. Default remote.DefaultConcurrency.
	Connections int
}

// New returns the driver.
func New(o Options) blobsource.Driver {
	o.Anonymous = o.Anonymous || blobsource.Unsigned("AZURE_NO_SIGN_REQUEST")
	return &driver{o: o, transport: blobsource.Tune(http.DefaultTransport.(*http.Transport).Clone(), o.Connections)}
}

type driver struct {
	o         Options
	transport *http.Transport
}

// Bucket implements blobsource.Driver.
func (d *driver) Bucket(ctx context.Context, name string) (*blob.Bucket, error) {
	client, err := d.client(name)
	if err != nil {
		return nil, remote.Fail(remote.Denied, err)
	}
	return azureblob.OpenBucket(ctx, client, nil)
}

func (d *driver) client(name string) (*container.Client, error) {
	o := &container.ClientOptions{ClientOptions: azcore.ClientOptions{
		Transport: &http.Client{Transport: d.transport},
		Retry:     policy.RetryOptions{MaxRetries: -1}, // package remote retries, and counts the attempts
	}}
	if c := os.Getenv("AZURE_STORAGE_CONNECTION_STRING"); c != "" && !d.o.Anonymous {
		return container.NewClientFromConnectionString(c, name, o)
	}
	su := azureblob.NewDefaultServiceURLOptions()
	service, err := azureblob.NewServiceURL(su)
	if err != nil {
		return nil, err
	}
	base, query, _ := strings.Cut(string(service), "?")
	u := strings.TrimSuffix(base, "/") + "/" + name
	if query != "" {
		u += "?" + query
	}
	key := os.Getenv("AZURE_STORAGE_KEY")
	switch {
	case d.o.Anonymous || query != "": // the SAS token is part of the URL
		return container.NewClientWithNoCredential(u, o)
	case key != "":
		cred, err := container.NewSharedKeyCredential(su.AccountName, key)
		if err != nil {
			return nil, err
		}
		return container.NewClientWithSharedKeyCredential(u, cred, o)
	}
	cred, err := azidentity.NewDefaultAzureCredential(nil)
	if err != nil {
		return nil, err
	}
	return container.NewClient(u, cred, o)
}

// Condition implements blobsource.Driver.
func (d *driver) Condition(as func(any) bool, tag remote.Tag) error {
	var in *azblob.DownloadStreamOptions
	if e := tag.Strong(); e != "" && as(&in) {
		match := azcore.ETag(e)
		in.AccessConditions = &azblob.AccessConditions{
			ModifiedAccessConditions: &azblob.ModifiedAccessConditions{IfMatch: &match},
		}
	}
	return nil
}

// Answer implements blobsource.Driver.
func (d *driver) Answer(r *blob.Reader, asked remote.Range) (*remote.Answer, error) {
	var out azblob.DownloadStreamResponse
	if !r.As(&out) {
		return nil, remote.Fail(remote.Refused, errors.New("the response is not from Azure"))
	}
	length, text := int64(-1), ""
	if out.ContentLength != nil {
		length = *out.ContentLength
	}
	if out.ContentRange != nil {
		text = *out.ContentRange
	}
	a, err := remote.Check(asked, 0, text, length)
	if err != nil {
		return nil, err
	}
	if out.ETag != nil {
		a.Tag.ETag = string(*out.ETag)
	}
	if out.LastModified != nil {
		a.Tag.Modified = *out.LastModified
	}
	return a, nil
}

// ETag implements blobsource.Driver.
func (d *driver) ETag(o *blob.ListObject) string {
	var x container.BlobItem
	if !o.As(&x) || x.Properties == nil || x.Properties.ETag == nil {
		return ""
	}
	// Listings leave out the quotation marks of the header. Without them the tag of a listing would
	// never match.
	return `"` + strings.Trim(string(*x.Properties.ETag), `"`) + `"`
}

// Status implements blobsource.Driver.
func (d *driver) Status(err error) (int, http.Header) {
	var re *azcore.ResponseError
	if !errors.As(err, &re) {
		return 0, nil
	}
	if re.RawResponse != nil {
		return re.StatusCode, re.RawResponse.Header
	}
	return re.StatusCode, nil
}

// Close implements blobsource.Driver.
func (d *driver) Close() error {
	d.transport.CloseIdleConnections()
	return nil
}
