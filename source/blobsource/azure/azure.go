// Package azure is the driver of package blobsource for Azure Blob Storage.
package azure

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"
	azblob "github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"gocloud.dev/blob"
	"gocloud.dev/blob/azureblob"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/source/blobsource"
	"github.com/chaski-eo/chaski/source/remote"
)

// New returns the driver. The account is AZURE_STORAGE_ACCOUNT. The credentials are AZURE_STORAGE_KEY,
// AZURE_STORAGE_SAS_TOKEN or AZURE_STORAGE_CONNECTION_STRING, otherwise those that azidentity.NewDefaultAzureCredential
// finds; AZURE_NO_SIGN_REQUEST=YES sends none, for public containers.
func New() blobsource.Driver {
	return &driver{blobsource.Tune(http.DefaultTransport.(*http.Transport).Clone())}
}

type driver struct{ transport *http.Transport }

// Bucket implements blobsource.Driver.
func (d *driver) Bucket(ctx context.Context, name string) (*blob.Bucket, error) {
	client, err := d.client(name)
	if fault.KindOf(err) != 0 {
		return nil, err
	}
	if err != nil {
		return nil, remote.Fail(remote.Denied, err)
	}
	return azureblob.OpenBucket(ctx, client, nil)
}

// client returns a client of a container. name is CONTAINER, of the account of the environment, or CONTAINER@HOST.
func (d *driver) client(name string) (*container.Client, error) {
	options := &container.ClientOptions{ClientOptions: azcore.ClientOptions{
		Transport: &http.Client{Transport: d.transport, CheckRedirect: blobsource.NoRedirect},
		Retry:     policy.RetryOptions{MaxRetries: -1}, // package remote retries, and counts the attempts
	}}
	anonymous := blobsource.Unsigned("AZURE_NO_SIGN_REQUEST")
	name, host, other := strings.Cut(name, "@")
	parts := azureblob.NewDefaultServiceURLOptions()
	found := os.Getenv("AZURE_STORAGE_CONNECTION_STRING")
	key := os.Getenv("AZURE_STORAGE_KEY")
	if other {
		account, domain, err := accountOf(host)
		if err != nil {
			return nil, err
		}
		if account != parts.AccountName { // the key and the signature are for another account
			parts.SASToken, key = "", ""
		}
		if !strings.Contains(";"+found+";", ";AccountName="+account+";") {
			found = ""
		}
		parts.AccountName = account
		if os.Getenv("AZURE_STORAGE_DOMAIN") == "" {
			parts.StorageDomain = domain
		}
	}
	if found != "" && !anonymous {
		return container.NewClientFromConnectionString(found, name, options)
	}
	if parts.AccountName == "" {
		return nil, fault.New(fault.Unsupported, "account", "it names no account, and AZURE_STORAGE_ACCOUNT is not set")
	}
	service, err := azureblob.NewServiceURL(parts)
	if err != nil {
		return nil, err
	}
	base, query, _ := strings.Cut(string(service), "?")
	address := strings.TrimSuffix(base, "/") + "/" + name
	if query != "" {
		address += "?" + query
	}
	switch {
	case anonymous || query != "": // the SAS token is part of the URL
		return container.NewClientWithNoCredential(address, options)
	case key != "":
		cred, err := container.NewSharedKeyCredential(parts.AccountName, key)
		if err != nil {
			return nil, err
		}
		return container.NewClientWithSharedKeyCredential(address, cred, options)
	}
	cred, err := azidentity.NewDefaultAzureCredential(nil)
	if err != nil {
		return nil, err
	}
	return container.NewClient(address, cred, options)
}

// clouds are the domains of Azure's clouds. Requests have credentials, so they must not go to other hosts.
var clouds = [...]string{"core.windows.net", "core.usgovcloudapi.net", "core.chinacloudapi.cn"}

// accountOf returns the account and the domain of blobs for the host of an endpoint, ACCOUNT.dfs.core.windows.net or
// ACCOUNT.blob.core.windows.net. Both endpoints of an account have the same objects. A host without dots is an account.
func accountOf(host string) (account, domain string, err error) {
	account, rest, endpoint := strings.Cut(host, ".")
	service, cloud, _ := strings.Cut(rest, ".")
	switch {
	case account == "" || strings.Trim(account, "abcdefghijklmnopqrstuvwxyz0123456789") != "":
	case !endpoint:
		return account, "blob." + clouds[0], nil
	case (service == "dfs" || service == "blob") && slices.Contains(clouds[:], cloud):
		return account, "blob." + cloud, nil
	}
	return "", "", fmt.Errorf("%q is no account of Azure: it must be like ACCOUNT.dfs.core.windows.net", host)
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
	answer, err := remote.Check(asked, 0, text, length)
	if err != nil {
		return nil, err
	}
	if out.ETag != nil {
		answer.Tag.ETag = string(*out.ETag)
	}
	if out.LastModified != nil {
		answer.Tag.Modified = *out.LastModified
	}
	return answer, nil
}

// ETag implements blobsource.Driver.
func (d *driver) ETag(o *blob.ListObject) string {
	var x container.BlobItem
	if !o.As(&x) || x.Properties == nil || x.Properties.ETag == nil {
		return ""
	}
	// Listings leave out the quotation marks of the header. The tag needs them to match.
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
