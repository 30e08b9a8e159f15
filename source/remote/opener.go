package remote

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/keylock"
	"github.com/chaski-eo/chaski/internal/lru"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/source/openers"
)

// Opener opens the objects of a Backend. It is a source.KnownOpener and a source.Lister, and safe
// for concurrent use. Close it after use.
type Opener struct {
	backend  Backend
	options  Options
	hosts    hosts
	cache    cache
	counters counters
	opening  keylock.Locks[string] // one caller at a time opens an object: others find it in the cache afterwards
	wholes   wholes
}

// New returns an opener. Closing it closes the backend too, if that is an io.Closer. It returns an
// error if options are invalid.
func New(b Backend, o Options) (*Opener, error) {
	o = o.withDefaults()
	if err := o.validate(); err != nil {
		return nil, err
	}
	// The largest object fits: each range would otherwise read it again.
	room := max(o.WholeBytes, o.MaxWhole+lru.Overhead)
	objects := lru.New[objectName, *objectVersion](o.CacheBytes)
	objects.OnEvict((*objectVersion).free)
	return &Opener{backend: b, options: o, cache: cache{objects},
		wholes: wholes{lru.New[objectName, *wholeObject](room), make(chan struct{}, 1)}}, nil
}

// Close closes the backend. Readers must not be used afterwards.
func (o *Opener) Close() error {
	if c, ok := o.backend.(io.Closer); ok {
		return c.Close()
	}
	return nil
}

// Open implements source.Opener. It costs one request, which also brings the head of the object (see source.WithWhole),
// or none if the object was opened within Options.Fresh.
func (o *Opener) Open(ctx context.Context, uri string) (source.Reader, error) {
	done, err := o.opening.Lock(ctx, uri)
	if err != nil {
		return nil, err
	}
	defer done()
	if x := o.cache.get(objectName{uri, openers.RootsIn(ctx)}, o.options.Fresh); x != nil {
		return &reader{o: o, x: x}, nil
	}
	object, err := o.head(ctx, uri)
	if err != nil {
		return nil, err
	}
	o.cache.add(object)
	return &reader{o: o, x: object}, nil
}

// head makes the request that opens an object.
func (o *Opener) head(ctx context.Context, uri string) (*objectVersion, error) {
	made := &objectVersion{objectName: objectName{uri, openers.RootsIn(ctx)}, opened: time.Now()}
	block := int64(o.options.Block)
	ask := Range{0, max(block, source.Whole(ctx))}
	err := o.get(ctx, made.objectName, ask, Tag{}, func(a *Answer) error {
		if a.Size < 0 {
			return Fail(Refused, errors.New("the server does not state the size of the object"))
		}
		// A server may send less than is asked (RFC 9110, 15.3.7).
		if a.Off != 0 || a.Len < min(a.Size, block) {
			return Fail(Transient, fmt.Errorf("requested the first %d bytes, but got %d bytes at %d of %d", ask.Len,
				a.Len, a.Off, a.Size))
		}
		data := make([]byte, a.Len) // Check limits it to the requested bytes
		if err := o.readBody(a, data); err != nil {
			return err
		}
		made.size, made.tag = a.Size, a.Tag
		switch {
		case a.Len <= block:
			made.spans = []blockSpan{{0, data}}
		case a.Len == a.Size:
			made.wholeBytes = data
		default: // too large to be kept whole
			made.spans = []blockSpan{{0, bytes.Clone(data[:block])}}
		}
		return nil
	})
	var f *Failure
	if errors.As(err, &f) && f.Class == PastEnd && f.Size == 0 { // an empty object has no first byte
		return made, nil
	}
	size, ok, err := o.readsWhole(err)
	if ok {
		made.size = size
		made.lacksRanges.Store(true)
		_, err = o.wholeObject(ctx, made)
	}
	return made, err
}

// OpenKnown implements source.KnownOpener. It uses the blocks of an object that Open has opened within Options.Fresh: a
// file whose header was just read has its head in memory.
func (o *Opener) OpenKnown(ctx context.Context, uri string, k source.Known) (source.Reader, error) {
	if k.Size > 0 {
		name := objectName{uri, openers.RootsIn(ctx)}
		x := o.cache.get(name, o.options.Fresh)
		if x == nil || x.size != k.Size || x.currentTag().ETag != k.ETag {
			x = &objectVersion{objectName: name, size: k.Size, tag: Tag{ETag: k.ETag}}
		}
		return &reader{o: o, x: x, exact: true}, nil
	}
	file, err := o.Open(ctx, uri)
	if err != nil {
		return nil, err
	}
	if is, known := (Tag{ETag: source.ETag(file)}), (Tag{ETag: k.ETag}); !known.Same(is) {
		err := fault.New(fault.Corrupt, "object", "%v", errOtherTag(is, known))
		return nil, fault.WithFile(err, uri)
	}
	return file, nil
}

// List implements source.Lister, if the backend does.
func (o *Opener) List(ctx context.Context, folder string, each func(source.Entry) error) error {
	lister, ok := o.backend.(Lister)
	if !ok || !lister.Lists(folder) {
		return openers.List(ctx, noLister{}, folder, each)
	}
	host := o.hosts.get(o.backend.Host(folder), &o.options)
	var token []byte
	for {
		var page []source.Entry
		var next []byte
		err := o.try(ctx, host, requestPlace{folder, "listing", fault.NoOffset}, 0, func(ctx context.Context,
			_ *requestFlight) (err error) {
			o.counters.requests.Add(1)
			page, next, err = lister.ListPage(ctx, folder, token)
			return err
		})
		if err != nil {
			return err
		}
		for _, e := range page {
			if err := each(e); err != nil {
				return err
			}
		}
		if len(next) == 0 {
			return nil
		}
		token = next
	}
}

// Names implements source.Namer, if the backend can name entries or list objects.
func (o *Opener) Names(ctx context.Context, folder string) (names []string, err error) {
	namer, ok := o.backend.(Namer)
	if !ok {
		return openers.Names(ctx, struct{ source.Lister }{o}, folder)
	}
	h := o.hosts.get(o.backend.Host(folder), &o.options)
	err = o.try(ctx, h, requestPlace{folder, "listing", fault.NoOffset}, 0, func(ctx context.Context,
		_ *requestFlight) (err error) {
		o.counters.requests.Add(1)
		names, err = namer.Names(ctx, folder)
		return err
	})
	return names, err
}

// noLister hides the List method of an opener.
type noLister struct{ source.Opener }

// WholeBytes returns the memory of cached whole objects, in bytes: see Options.
func (o *Opener) WholeBytes() int64 { return o.wholes.Used() }

// CachedBytes returns the memory of cached blocks, in bytes.
func (o *Opener) CachedBytes() int64 { return o.cache.Used() }
