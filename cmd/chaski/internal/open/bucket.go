package open

import (
	"context"
	"strings"

	"gocloud.dev/blob"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/source/blobsource/s3"
)

// IsS3 reports whether a URI is in S3, the object store that chaski can write to.
func IsS3(uri string) bool { return source.Scheme(uri) == "s3" }

// Bucket opens the bucket of a URI in S3. It returns the name of the bucket, the key in it, and a function that closes
// it. Credentials come from the environment, as for reading.
func Bucket(ctx context.Context, uri string) (b *blob.Bucket, name, key string, done func(), err error) {
	name, key, _ = strings.Cut(strings.TrimPrefix(uri, "s3://"), "/")
	if name == "" {
		err := fault.New(fault.Unsupported, "URI", fault.NoOffset, "it has no bucket")
		return nil, "", "", nil, fault.WithFile(err, uri)
	}
	driver := s3.New(s3.Options{})
	if b, err = driver.Bucket(ctx, name); err != nil {
		_ = driver.Close()
		return nil, "", "", nil, err
	}
	return b, name, key, func() {
		// Its error does not matter, since all writes have been answered.
		_ = b.Close()
		_ = driver.Close()
	}, nil
}
