package s3

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/ratelimit"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go"
	"gocloud.dev/blob"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/source/blobsource"
	"github.com/chaski-eo/chaski/source/remote"
)

// Store writes the objects of a bucket. Their names are URIs: s3://BUCKET/KEY. It is safe for concurrent use. Errors
// are source.RequestError, or fault.NotFound.
type Store struct {
	client *s3.Client
	bucket string
	part   int64 // the least size of a part of an upload
}

// StoreOf returns the store of a bucket that a driver of this package has opened, of the given name.
func StoreOf(b *blob.Bucket, name string) (*Store, error) {
	var c *s3.Client
	if !b.As(&c) {
		return nil, errors.New("the bucket is not of S3")
	}
	return &Store{c, name, partBytes}, nil
}

const (
	contentType = "application/octet-stream"
	// tries is how often a request is made that fails for no reason of its own.
	tries = 5
	// firstWait is how long the second try waits, at most, and each further one twice as long: 3 s for all.
	firstWait = 200 * time.Millisecond
)

// retryer repeats all requests that write. The client's own makes a request once, because package remote repeats
// requests that read.
var retryer = retry.NewStandard(func(o *retry.StandardOptions) {
	o.MaxAttempts = tries
	o.RateLimiter = ratelimit.None // parts of one object fail together
	o.Backoff = retry.BackoffDelayerFunc(func(attempt int, _ error) (time.Duration, error) {
		return rand.N(firstWait << min(max(attempt, 1)-1, tries)), nil
	})
})

// again makes a request again that fails for no reason of its own.
func again(o *s3.Options) { o.Retryer = retryer }

func (s *Store) uri(key string) string { return "s3://" + s.bucket + "/" + key }

// key returns the key of a URI.
func (s *Store) key(uri string) (string, error) {
	key, ok := strings.CutPrefix(uri, "s3://"+s.bucket+"/")
	if !ok || key == "" {
		return "", fmt.Errorf("%s is not an object of the bucket %s", uri, s.bucket)
	}
	return key, nil
}

// Put writes an object in one request: it is the old one or the new one.
func (s *Store) Put(ctx context.Context, uri string, b []byte) error {
	key, err := s.key(uri)
	if err != nil {
		return err
	}
	return s.fail(uri, s.put(ctx, key, b))
}

func (s *Store) put(ctx context.Context, key string, b []byte) error {
	_, err := s.client.PutObject(ctx, &s3.PutObjectInput{Bucket: &s.bucket, Key: &key, Body: bytes.NewReader(b),
		ContentType: aws.String(contentType)}, again)
	return err
}

// maxGet bounds what Get reads: it is for objects of a few bytes.
const maxGet = 1 << 20

// Get reads a small object. One that does not exist is fault.NotFound.
func (s *Store) Get(ctx context.Context, uri string) ([]byte, error) {
	key, err := s.key(uri)
	if err != nil {
		return nil, err
	}
	out, err := s.client.GetObject(ctx, &s3.GetObjectInput{Bucket: &s.bucket, Key: &key}, again)
	if err != nil {
		return nil, s.fail(uri, err)
	}
	b, err := io.ReadAll(io.LimitReader(out.Body, maxGet))
	return b, s.fail(uri, errors.Join(err, out.Body.Close()))
}

// List calls each for all objects whose URIs begin with prefix, until it returns an error.
func (s *Store) List(ctx context.Context, prefix string, each func(uri string) error) error {
	key, ok := strings.CutPrefix(prefix, s.uri(""))
	if !ok {
		return fmt.Errorf("%s is not in the bucket %s", prefix, s.bucket)
	}
	pages := s3.NewListObjectsV2Paginator(s.client, &s3.ListObjectsV2Input{Bucket: &s.bucket, Prefix: &key})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx, again)
		if err != nil {
			return s.fail(prefix, err)
		}
		for _, o := range page.Contents {
			if err := each(s.uri(aws.ToString(o.Key))); err != nil {
				return err
			}
		}
	}
	return nil
}

// Delete removes an object, if there is one.
func (s *Store) Delete(ctx context.Context, uri string) error {
	key, err := s.key(uri)
	if err != nil {
		return err
	}
	_, err = s.client.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: &s.bucket, Key: &key}, again)
	return s.fail(uri, err)
}

// abort ends an unfinished upload, also after the context has ended. A failure leaves it for the next run.
func (s *Store) abort(ctx context.Context, key, id string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), abortTime)
	defer cancel()
	_, _ = s.client.AbortMultipartUpload(ctx, &s3.AbortMultipartUploadInput{Bucket: &s.bucket, Key: &key,
		UploadId: &id}, again)
}

// code returns the code of an error of S3, such as NoSuchUpload.
func code(err error) string {
	if api, ok := errors.AsType[smithy.APIError](err); ok {
		return api.ErrorCode()
	}
	return ""
}

// fail returns the error about a request for an object.
func (s *Store) fail(uri string, err error) error {
	var known *source.RequestError
	switch {
	case err == nil, errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded),
		errors.As(err, &known), fault.KindOf(err) != 0:
		return err
	}
	switch code(err) {
	case "NoSuchBucket", "NoSuchKey", "NotFound":
		return fault.WithFile(fault.New(fault.NotFound, "object or bucket", fault.NoOffset, "no such object"), uri)
	case "NoSuchUpload":
		err = errors.New("another run has begun to write it, and has ended this upload")
	}
	count := 1
	if attempts, ok := errors.AsType[*retry.MaxAttemptsError](err); ok {
		count = attempts.Attempt
	}
	status, _ := (&driver{}).Status(err)
	return &source.RequestError{URI: uri, Part: "object", Off: fault.NoOffset, Attempts: count,
		Denied: status != 0 && remote.Status(status, nil).Class == remote.Denied, Err: blobsource.Brief(err)}
}
