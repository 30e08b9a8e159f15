package job

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"strings"
	"time"

	"gocloud.dev/blob"
	"gocloud.dev/gcerrors"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/source"
)

// Objects returns the folder of the objects of a bucket whose keys begin with prefix and "/". url names it in errors.
// The bucket is closed by the caller.
//
// A store shows an object whole or not at all, so that a result that is written needs no second name. job.json is
// written only if it is not there, which the store decides (If-None-Match of S3 and Azure, ifGenerationMatch of
// Google).
func Objects(bucket *blob.Bucket, prefix, url string) Folder {
	if prefix = strings.Trim(prefix, "/"); prefix != "" {
		prefix += "/"
	}
	return &objects{bucket, prefix, strings.TrimSuffix(url, "/")}
}

type objects struct {
	bucket *blob.Bucket
	prefix string
	url    string
}

const (
	// tries is how often a request is tried whose failure may be temporary. The drivers do not repeat requests.
	tries = 5
	// firstWait is how long the second try waits, at most, and each further one twice as long: 3 s for all, in which a
	// store that asked to slow down has done so.
	firstWait = 200 * time.Millisecond
	// part is the size of the parts of an upload, each held in memory; smaller objects are written in one request. S3
	// accepts 10,000 parts an object, which is 160 GB.
	part = 16 << 20
)

func (f *objects) name(file string) string { return f.url + "/" + file }

// prepare implements folder: a store has no folders to make.
func (f *objects) prepare(context.Context) error { return nil }

// probe implements folder. The record of a run, which comes next, is written where the result will be.
func (f *objects) probe(context.Context) error { return nil }

func (f *objects) exists(ctx context.Context, file string) (there bool, err error) {
	err = f.again(ctx, file, func() (err error) {
		there, err = f.bucket.Exists(ctx, f.prefix+file)
		return err
	})
	return there, err
}

func (f *objects) read(ctx context.Context, file string, most int64) (b []byte, err error) {
	err = f.again(ctx, file, func() error {
		b, err = f.get(ctx, file, 0, most+1)
		return err
	})
	if err == nil && int64(len(b)) > most {
		err = fault.WithFile(fault.New(fault.Limit, "job", fault.NoOffset, "over %d bytes", most), f.name(file))
	}
	return b, err
}

func (f *objects) section(ctx context.Context, file string, off, n int64) (b []byte, err error) {
	err = f.again(ctx, file, func() error {
		b, err = f.get(ctx, file, off, n)
		return err
	})
	if err == nil && int64(len(b)) != n {
		err = fault.WithFile(fault.New(fault.Corrupt, "items", off, "%d bytes of %d", len(b), n), f.name(file))
	}
	return b, err
}

// get reads at most n bytes. The memory grows with what arrives.
func (f *objects) get(ctx context.Context, file string, off, n int64) ([]byte, error) {
	reader, err := f.bucket.NewRangeReader(ctx, f.prefix+file, off, n, nil)
	if err != nil {
		return nil, err
	}
	b, err := io.ReadAll(io.LimitReader(reader, n))
	return b, errors.Join(err, reader.Close())
}

// downloaded is an object in a scratch.
type downloaded struct{ *scratch }

// Size implements content.
func (d downloaded) Size() int64 { return d.size }

// open implements folder: it reads the object once, because results are read whole, and pieces cost a request each.
func (f *objects) open(ctx context.Context, file string) (c content, err error) {
	err = f.again(ctx, file, func() (err error) {
		reader, err := f.bucket.NewReader(ctx, f.prefix+file, nil)
		if err != nil {
			return err
		}
		scratch := newScratch()
		_, err = io.Copy(&limited{scratch, maxResult}, reader)
		if err = errors.Join(err, reader.Close()); err != nil {
			return errors.Join(err, scratch.Close())
		}
		c = downloaded{scratch}
		return nil
	})
	return c, err
}

func (f *objects) write(ctx context.Context, file string, write func(io.Writer) error) error {
	return f.again(ctx, file, func() error { return f.put(ctx, file, write, &blob.WriterOptions{BufferSize: part}) })
}

// maxParts is the most requests that S3 takes an object in.
const maxParts = 10_000

// Upload writes a local file as an object of a bucket, in parts: the object is the old one or the new one at any time.
// url names the bucket in errors.
func Upload(ctx context.Context, bucket *blob.Bucket, key, url, file string) (err error) {
	in, err := os.Open(file)
	if err != nil {
		return err
	}
	defer in.Close() //nolint:errcheck // it was only read
	st, err := in.Stat()
	if err != nil {
		return err
	}
	write := func(w io.Writer) error {
		_, err := io.Copy(w, io.NewSectionReader(in, 0, st.Size()))
		return err
	}
	f := &objects{bucket, "", url}
	return f.again(ctx, key, func() error {
		return f.put(ctx, key, write, &blob.WriterOptions{BufferSize: max(part, int(st.Size()/maxParts)+1)})
	})
}

// put writes an object. An error of write leaves none.
func (f *objects) put(ctx context.Context, file string, write func(io.Writer) error, o *blob.WriterOptions) error {
	o.ContentType, o.DisableContentTypeDetection = "application/octet-stream", true
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	writer, err := f.bucket.NewWriter(ctx, f.prefix+file, o)
	if err != nil {
		return err
	}
	if err := write(writer); err != nil {
		cancel() // Close would write what there is
		return errors.Join(err, writer.Close())
	}
	return writer.Close()
}

func (f *objects) create(ctx context.Context, file string, b []byte) error {
	tried := false
	err := f.again(ctx, file, func() error {
		err := f.put(ctx, file, func(w io.Writer) error {
			_, err := w.Write(b)
			return err
		}, &blob.WriterOptions{IfNotExist: true, BufferSize: len(b) + 1}) // in one request, which the condition is of
		if gcerrors.Code(err) != gcerrors.FailedPrecondition {
			tried = true
			return err
		}
		if tried { // the answer to an earlier try may have been lost
			if have, rerr := f.get(ctx, file, 0, int64(len(b))+1); rerr == nil && bytes.Equal(have, b) {
				return nil
			}
		}
		return fs.ErrExist
	})
	return err
}

func (f *objects) list(ctx context.Context, sub, begin string) (names []string, err error) {
	prefix := f.prefix + sub + "/"
	token := blob.FirstPageToken
	for len(token) > 0 {
		var page []*blob.ListObject
		var next []byte
		err := f.again(ctx, sub, func() (err error) {
			page, next, err = f.bucket.ListPage(ctx, token, 1000, &blob.ListOptions{Prefix: prefix + begin})
			return err
		})
		if err != nil {
			return nil, err
		}
		for _, o := range page {
			names = append(names, strings.TrimPrefix(o.Key, prefix))
		}
		token = next
	}
	return names, nil
}

// again makes a request, and makes it again after a failure that is not the fault of the request.
func (f *objects) again(ctx context.Context, file string, request func() error) error {
	wait := firstWait
	for n := 1; ; n++ {
		err := request()
		if err == nil || errors.Is(err, fs.ErrExist) || fault.KindOf(err) != 0 {
			return err
		}
		switch code := gcerrors.Code(err); {
		case ctx.Err() != nil:
			return ctx.Err()
		case code == gcerrors.NotFound:
			return fault.WithFile(fault.New(fault.NotFound, "object or bucket", fault.NoOffset, "no such object"),
				f.name(file))
		case code == gcerrors.PermissionDenied, code == gcerrors.InvalidArgument, code == gcerrors.Unimplemented,
			n == tries:
			return &source.RequestError{URI: f.name(file), Part: "object", Off: fault.NoOffset, Attempts: n,
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
