package taco

import (
	"context"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/source/refcache"
)

// maxHeld is the number of readers that a dataset keeps open. Containers of thousands of files are read all the
// same: those that were not read for longest are closed, and opened again when they are.
const maxHeld = 200

// holder is an opener whose readers may stay open for as long as one likes: no more than maxHeld of them, and those in
// use, are open underneath. All that it opens of an object is of one version.
type holder struct {
	opener source.Opener
	watch  *refcache.Watch
	open   *refcache.Shelf[*heldReader, source.Reader]
}

func newHolder(o source.Opener) *holder {
	return &holder{opener: o, watch: refcache.NewWatch(o), open: refcache.New[*heldReader](refcache.Options[source.Reader]{
		Max: maxHeld, Close: source.Reader.Close,
	})}
}

// Changed reports whether one of the files that were opened so far is another one now, or may be one, as it cannot be
// reached, or as there are too many to look: a dataset that is kept for later is opened anew then. Remote files are asked
// of one byte each, on condition of their entity tag, and no more often than every few seconds.
func (d *Dataset) Changed(ctx context.Context) bool { return d.opener.watch.Changed(ctx) }

// Open implements source.Opener.
func (p *holder) Open(ctx context.Context, uri string) (source.Reader, error) {
	r, err := p.opener.Open(ctx, uri)
	if err != nil {
		if ctx.Err() == nil {
			p.watch.NoteAbsent(uri)
		}
		return nil, err
	}
	if !p.watch.Note(uri, r) {
		_ = r.Close() // it was only opened
		return nil, changed(uri)
	}
	h := &heldReader{p: p, uri: uri, version: refcache.VersionOf(r), gap: source.Gap(r)}
	l, err := p.open.Take(ctx, h, func(context.Context) (source.Reader, error) { return r, nil })
	if err != nil {
		return nil, err
	}
	return h, l.Give(true)
}

// changed is the error for a file of which an earlier version was read.
func changed(uri string) error {
	return fault.WithFile(fault.New(fault.Corrupt, "file", fault.NoOffset, "it changed since it was opened"), uri)
}

// OpenKnown implements source.KnownOpener. Such readers are not kept: they are closed soon.
func (p *holder) OpenKnown(ctx context.Context, uri string, k source.Known) (source.Reader, error) {
	return source.OpenKnown(ctx, p.opener, uri, k)
}

// Close closes what is open underneath. Readers that were not closed are not used afterwards.
func (p *holder) Close() error { return p.open.Close() }

// heldReader is open underneath, or opened again when it is read.
type heldReader struct {
	p       *holder
	uri     string
	version refcache.Version
	gap     int64
}

func (r *heldReader) Size() int64  { return r.version.Size }
func (r *heldReader) Close() error { return r.p.open.Drop(r) }

// Gap implements source.Gapped, ETag source.Tagged.
func (r *heldReader) Gap() int64   { return r.gap }
func (r *heldReader) ETag() string { return r.version.ETag }

func (r *heldReader) ReadAt(ctx context.Context, b []byte, off int64) (err error) {
	l, err := r.p.open.Take(ctx, r, r.again)
	if err != nil {
		return err
	}
	defer func() {
		if gerr := l.Give(true); err == nil {
			err = gerr
		}
	}()
	return l.Value.ReadAt(ctx, b, off)
}

// again opens the reader's object again.
func (r *heldReader) again(ctx context.Context) (source.Reader, error) {
	f, err := source.OpenKnown(ctx, r.p.opener, r.uri, source.Known{Size: r.version.Size, ETag: r.version.ETag})
	if err != nil {
		return nil, err
	}
	if !refcache.VersionOf(f).Same(r.version) {
		_ = f.Close() // it was only opened
		return nil, changed(r.uri)
	}
	return f, nil
}
