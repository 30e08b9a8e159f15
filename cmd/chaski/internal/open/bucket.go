package open

import (
	"context"
	"strings"

	"gocloud.dev/blob"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/source/blobsource"
	"github.com/chaski-eo/chaski/source/blobsource/s3"
)

// IsStore reports whether a URI is in an object store that chaski can write to.
func IsStore(uri string) bool {
	scheme := source.Scheme(uri)
	return scheme == "s3" || clouds[scheme] != nil
}

// Bucket opens the bucket of a URI for which IsStore holds. It returns the key in the bucket, and a function that
// closes it. Credentials come from the environment, as for reading.
func Bucket(ctx context.Context, uri string) (b *blob.Bucket, key string, done func(), err error) {
	uri, err = source.Resolve(uri)
	if err != nil {
		return nil, "", nil, err
	}
	scheme, rest, _ := strings.Cut(uri, "://")
	name, key, _ := strings.Cut(rest, "/")
	if name == "" {
		err := fault.New(fault.Unsupported, "URI", fault.NoOffset, "it has no bucket")
		return nil, "", nil, fault.WithFile(err, uri)
	}
	var d blobsource.Driver
	if scheme == "s3" {
		d = s3.New(s3.Options{})
	} else {
		d = clouds[scheme]()
	}
	if b, err = d.Bucket(ctx, name); err != nil {
		_ = d.Close()
		return nil, "", nil, err
	}
	return b, key, func() {
		_ = b.Close() // all writes have been answered
		_ = d.Close()
	}, nil
}
