// Package s3 is the driver of package blobsource for S3 and compatible stores.
package s3

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"os"
	"strings"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/smithy-go"
	"github.com/aws/smithy-go/logging"
	smithyhttp "github.com/aws/smithy-go/transport/http"
	"gocloud.dev/blob"
	"gocloud.dev/blob/s3blob"

	"github.com/chaski-eo/chaski/internal/keylock"
	"github.com/chaski-eo/chaski/source/blobsource"
	"github.com/chaski-eo/chaski/source/remote"
)

// Options configure New. Empty fields are taken from the environment and the files of the AWS SDK:
// AWS_REGION, AWS_PROFILE, AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_ENDPOINT_URL and so on.
// AWS_NO_SIGN_REQUEST=YES sends no signature, for public buckets.
type Options struct {
	// Endpoint is the URL of a store other than AWS. Buckets are then part of the path, not of the
	// host name.
	Endpoint string
	Region   string
	// RequesterPays says in each request that its account pays for it, as buckets such as usgs-landsat ask for.
	// AWS_REQUEST_PAYER=requester does the same, as in GDAL.
	RequesterPays bool
}

// New returns the driver.
func New(o Options) blobsource.Driver {
	o.RequesterPays = o.RequesterPays || strings.EqualFold(os.Getenv("AWS_REQUEST_PAYER"), "requester")
	o.Endpoint = cmp.Or(o.Endpoint, os.Getenv("AWS_ENDPOINT_URL_S3"), os.Getenv("AWS_ENDPOINT_URL"))
	return &driver{o: o}
}

type driver struct {
	o Options

	client keylock.Value[*s3.Client] // the configuration may be in files, and behind a server

	mu   sync.Mutex   // guards http
	http *http.Client // the HTTP client of client
}

// defaultRegion is used if no region is configured. A bucket of another region answers with an
// error that names it.
const defaultRegion = "us-east-1"

// Bucket implements blobsource.Driver.
func (d *driver) Bucket(ctx context.Context, name string) (*blob.Bucket, error) {
	client, err := d.client.Get(ctx, func() (*s3.Client, error) { return d.connect(ctx) })
	if err != nil {
		return nil, remote.Fail(remote.Denied, err)
	}
	return s3blob.OpenBucket(ctx, client, name, nil)
}

// connect creates the client that all buckets share.
func (d *driver) connect(ctx context.Context) (*s3.Client, error) {
	build := awshttp.NewBuildableClient().WithTransportOptions(func(t *http.Transport) {
		blobsource.Tune(t)
		t.ReadBufferSize = 32 << 10
	})
	load := []func(*config.LoadOptions) error{
		config.WithHTTPClient(build),
		config.WithLogger(logging.Nop{}), // errors carry what matters
		config.WithRetryer(func() aws.Retryer {
			return aws.NopRetryer{}
		}), // package remote retries, and counts the attempts
	}
	if d.o.Region != "" {
		load = append(load, config.WithRegion(d.o.Region))
	}
	if blobsource.Unsigned("AWS_NO_SIGN_REQUEST") {
		load = append(load, config.WithCredentialsProvider(aws.AnonymousCredentials{}))
	}
	loaded, err := config.LoadDefaultConfig(ctx, load...)
	if err != nil {
		return nil, err
	}
	loaded.Region = cmp.Or(loaded.Region, defaultRegion)
	// the SDK's own client, perhaps with certificates of the environment
	if b, ok := loaded.HTTPClient.(*awshttp.BuildableClient); ok {
		build = b
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.http = &http.Client{Transport: build.GetTransport(), CheckRedirect: blobsource.NoRedirect}
	return s3.NewFromConfig(loaded, func(so *s3.Options) {
		so.HTTPClient = d.http
		so.ResponseChecksumValidation = aws.ResponseChecksumValidationWhenRequired // ranges have no checksums
		so.DisableLogOutputChecksumValidationSkipped = true
		if d.o.RequesterPays {
			so.APIOptions = append(so.APIOptions, smithyhttp.SetHeaderValue("x-amz-request-payer", "requester"))
		}
		if d.o.Endpoint != "" {
			so.BaseEndpoint, so.UsePathStyle = aws.String(d.o.Endpoint), true
		}
	}), nil
}

// Condition implements blobsource.Driver.
func (d *driver) Condition(as func(any) bool, tag remote.Tag) error {
	var in *s3.GetObjectInput
	if e := tag.Strong(); e != "" && as(&in) {
		in.IfMatch = aws.String(e)
	}
	return nil
}

// Answer implements blobsource.Driver.
func (d *driver) Answer(r *blob.Reader, asked remote.Range) (*remote.Answer, error) {
	var out s3.GetObjectOutput
	if !r.As(&out) {
		return nil, remote.Fail(remote.Refused, errors.New("the response is not from S3"))
	}
	if e := aws.ToString(out.ContentEncoding); strings.Contains(e, "aws-chunked") {
		return nil, remote.Fail(remote.Refused, errors.New("the body is aws-chunked, which has no byte ranges"))
	}
	length := int64(-1)
	if out.ContentLength != nil {
		length = *out.ContentLength
	}
	answer, err := remote.Check(asked, 0, aws.ToString(out.ContentRange), length)
	if err != nil {
		return nil, err
	}
	answer.Tag = remote.Tag{ETag: aws.ToString(out.ETag), Modified: aws.ToTime(out.LastModified)}
	return answer, nil
}

// ETag implements blobsource.Driver.
func (d *driver) ETag(o *blob.ListObject) string {
	var x types.Object
	if !o.As(&x) {
		return ""
	}
	return aws.ToString(x.ETag)
}

// Status implements blobsource.Driver.
func (d *driver) Status(err error) (int, http.Header) {
	var re *awshttp.ResponseError
	switch {
	case errors.As(err, &re):
		var h http.Header
		if resp := re.HTTPResponse(); resp != nil {
			h = resp.Header
		}
		var api smithy.APIError
		if errors.As(err, &api) && api.ErrorCode() == "InvalidRange" && h.Get("Content-Range") == "" {
			// S3 says this of the object, and its size only in the body, which the SDK drops: the object ends before
			// the range, and is empty if that begins at 0.
			h = http.Header{"Content-Range": {"bytes */0"}}
		}
		return re.HTTPStatusCode(), h
	// Nobody has any credentials, so another attempt would not help.
	case strings.Contains(err.Error(), "get credentials"):
		return http.StatusUnauthorized, nil
	}
	return 0, nil
}

// Close implements blobsource.Driver.
func (d *driver) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.http != nil {
		d.http.CloseIdleConnections()
	}
	return nil
}
