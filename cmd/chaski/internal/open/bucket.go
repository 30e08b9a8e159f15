package open

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"strings"
	"time"

	"gocloud.dev/blob"
	"gocloud.dev/gcerrors"

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

const (
	// tries is how often an upload is tried whose failure may be temporary. No driver but that for gs, whose
	// library sends the rest of a part again, repeats requests.
	tries = 5
	// firstWait is how long the second try waits, at most, and each further one twice as long: 3 s for all, in which a
	// store that asked to slow down has done so.
	firstWait = 200 * time.Millisecond
	// partSize is the least size of the parts of an upload, each held in memory.
	partSize = 16 << 20
	// maxParts is the most requests that a store takes an object in.
	maxParts = 10_000
)

// Upload writes a local file as an object of a bucket, in parts: the object is the old one or the new one at any time.
// url names the object in errors.
func Upload(ctx context.Context, bucket *blob.Bucket, key, url, file string) error {
	wait := firstWait
	for n := 1; ; n++ {
		err := upload(ctx, bucket, key, file)
		if err == nil {
			return nil
		}
		switch code := gcerrors.Code(err); {
		case ctx.Err() != nil:
			return ctx.Err()
		case code == gcerrors.NotFound:
			return fault.WithFile(fault.New(fault.NotFound, "bucket", fault.NoOffset,
				"no such bucket, or no permission to write there"), url)
		case code == gcerrors.PermissionDenied, code == gcerrors.InvalidArgument, code == gcerrors.Unimplemented,
			n == tries:
			return &source.RequestError{URI: url, Part: "object", Off: fault.NoOffset, Attempts: n,
				Err: errors.New(strings.Join(strings.Fields(err.Error()), " "))}
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(rand.N(wait)):
			wait *= 2
		}
	}
}

// upload tries to write an object. An error leaves none.
func upload(ctx context.Context, bucket *blob.Bucket, key, file string) error {
	in, err := os.Open(file)
	if err != nil {
		return err
	}
	defer in.Close() //nolint:errcheck // it was only read
	st, err := in.Stat()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	writer, err := bucket.NewWriter(ctx, key, &blob.WriterOptions{ContentType: "application/octet-stream",
		DisableContentTypeDetection: true, BufferSize: max(partSize, int(st.Size()/maxParts)+1)})
	if err != nil {
		return err
	}
	if _, err := io.Copy(writer, in); err != nil {
		cancel() // Close would write what there is
		return errors.Join(err, writer.Close())
	}
	return writer.Close()
}
