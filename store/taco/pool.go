package taco

import (
	"context"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/source/refcache"
)

// maxOpenFiles limits the files that a dataset keeps open, because a folder container may have thousands and a process
// often has 1,024 descriptors. The least recently used ones are closed, and opened again when they are read.
const maxOpenFiles = 200

// pooledOpener opens readers that may stay in use for any length of time: at most maxOpenFiles of them, and those being
// read, have an open file. All readers of one object read the same version of it.
type pooledOpener struct {
	opener source.Opener
	watch  *refcache.Watch
	open   *refcache.Cache[*pooledReader, source.Reader]
}

func newPooledOpener(o source.Opener) *pooledOpener {
	open := refcache.New[*pooledReader](refcache.Options[source.Reader]{
		MaxEntries: maxOpenFiles, Close: source.Reader.Close,
	})
	return &pooledOpener{opener: o, watch: refcache.NewWatch(o), open: open}
}

// Changed reports whether any file that was opened so far has changed, cannot be reached, or cannot
// be watched because there are too many. A long-lived dataset must then be opened anew. Remote
// files are checked with a request of one byte each, at most every refcache.CheckInterval.
func (d *Dataset) Changed(ctx context.Context) bool { return d.opener.watch.Changed(ctx) }

// Open implements source.Opener.
func (p *pooledOpener) Open(ctx context.Context, uri string) (source.Reader, error) {
	file, err := p.opener.Open(ctx, uri)
	if err != nil {
		// A canceled call does not know whether the file exists: recording it as absent would mark it as changed later.
		if ctx.Err() == nil {
			p.watch.RecordAbsent(uri)
		}
		return nil, err
	}
	if !p.watch.Record(uri, file) {
		_ = file.Close() // nothing was read
		return nil, errChanged(uri)
	}
	h := &pooledReader{p: p, uri: uri, version: refcache.VersionOf(file), gap: source.Gap(file)}
	lease, err := p.open.Acquire(ctx, h, func(context.Context) (source.Reader, error) { return file, nil })
	if err != nil {
		return nil, err
	}
	return h, lease.Release(true)
}

// errChanged returns the error for a file that differs from the version read before.
func errChanged(uri string) error {
	return fault.WithFile(fault.New(fault.Corrupt, "file", "it changed since it was opened"), uri)
}

// OpenKnown implements source.KnownOpener. These readers are not pooled, because their users close them soon.
func (p *pooledOpener) OpenKnown(ctx context.Context, uri string, k source.Known) (source.Reader, error) {
	return source.OpenKnown(ctx, p.opener, uri, k)
}

// Close closes the open files. Readers must not be used afterwards.
func (p *pooledOpener) Close() error { return p.open.Close() }

// pooledReader reads one object through a file that the pool may close between reads.
type pooledReader struct {
	p       *pooledOpener
	uri     string
	version refcache.Version
	gap     int64
}

func (r *pooledReader) Size() int64  { return r.version.Size }
func (r *pooledReader) Close() error { return r.p.open.Evict(r) }

// Gap implements source.Gapped, ETag source.Tagged.
func (r *pooledReader) Gap() int64   { return r.gap }
func (r *pooledReader) ETag() string { return r.version.ETag }

func (r *pooledReader) ReadAt(ctx context.Context, b []byte, off int64) (err error) {
	lease, err := r.p.open.Acquire(ctx, r, r.reopen)
	if err != nil {
		return err
	}
	defer func() {
		if rerr := lease.Release(true); err == nil {
			err = rerr
		}
	}()
	return lease.Value.ReadAt(ctx, b, off)
}

// reopen opens the reader's object again, in the same version.
func (r *pooledReader) reopen(ctx context.Context) (source.Reader, error) {
	file, err := source.OpenKnown(ctx, r.p.opener, r.uri, source.Known{Size: r.version.Size, ETag: r.version.ETag})
	if err != nil {
		return nil, err
	}
	if !refcache.VersionOf(file).Same(r.version) {
		_ = file.Close() // nothing was read
		return nil, errChanged(r.uri)
	}
	return file, nil
}
