package taco

import (
	"context"
	"errors"
	"strings"
	"sync"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store/catalog"
	"github.com/chaski-eo/chaski/store/taco/internal/model"
)

// Separator separates a container from the path of a sample in it: "data.tacozip::roi_1/image".
const Separator = "::"

// Split splits a name into a container and the path of a sample in it. ok is false if the name has
// no Separator.
func Split(name string) (container, path string, ok bool) { return strings.Cut(name, Separator) }

// Opener opens samples of containers as well as what its base opens. It splits names at Separator,
// and its readers cover the bytes of the sample alone. A chunk ("data.taco::img1/lrf::2") is opened
// as a TIFF of its own, whose bytes behind the header are the chunk: reading it takes
// one range. It is safe for concurrent use.
type Opener struct {
	Base source.Opener

	mu    sync.Mutex
	found map[string]found // by name; at most maxFound entries
}

// InContainers returns an Opener.
func InContainers(files source.Opener) source.Opener { return &Opener{Base: files} }

// found is the place of a sample and, for a chunk, the header in front of it.
type found struct {
	Entry
	head []byte
}

// maxFound limits the samples whose places an Opener remembers.
const maxFound = 1 << 12

// Open implements source.Opener. A sample that is a folder is fault.Unsupported. Each unknown name
// opens its container anew: to read many samples, use a Dataset and Section.
func (o *Opener) Open(ctx context.Context, uri string) (source.Reader, error) {
	_, _, ok := Split(uri)
	switch {
	case !ok:
		return o.Base.Open(ctx, uri)
	case source.IsRemote(uri):
		// Hardly any object has the separator in its name, and each attempt costs a request.
		reader, err := o.sample(ctx, uri)
		// Behind a query, a server would take the path for a part of the query and answer with anything.
		if k := fault.KindOf(err); k != fault.NotFound && k != fault.Unsupported || strings.Contains(uri, "?") {
			return reader, err
		}
		if file, ferr := o.Base.Open(ctx, uri); ferr == nil {
			return file, nil
		}
		return nil, err
	}
	// The file comes first, because a local file may have the separator in its own name.
	file, err := o.Base.Open(ctx, uri)
	if fault.KindOf(err) == fault.NotFound {
		return o.sample(ctx, uri)
	}
	return file, err
}

// OpenKnown implements source.KnownOpener. For a member of a container it opens the path, since the
// known size and ETag belong to a whole file.
func (o *Opener) OpenKnown(ctx context.Context, uri string, k source.Known) (source.Reader, error) {
	if _, _, ok := Split(uri); ok {
		return o.Open(ctx, uri)
	}
	return source.OpenKnown(ctx, o.Base, uri, k)
}

// List implements source.Lister.
func (o *Opener) List(ctx context.Context, dir string, each func(source.Entry) error) error {
	return source.List(ctx, o.Base, dir, each)
}

// sample opens a sample of a container, or the raster in a cell of a table.
func (o *Opener) sample(ctx context.Context, uri string) (source.Reader, error) {
	if table, cell, _ := Split(uri); catalog.IsParquet(table) {
		asset, err := catalog.OpenCell(ctx, o.Base, table, cell, 0)
		return source.Memory(asset.Bytes), err
	}
	// The lock is not held while a container is opened, because that may wait for the network: two
	// callers may do it for one name.
	o.mu.Lock()
	e, ok := o.found[uri]
	o.mu.Unlock()
	if !ok {
		container, path, _ := Split(uri)
		var err error
		if e, err = o.find(ctx, container, path); err != nil {
			return nil, err
		}
		o.mu.Lock()
		// Starting over when the map is full avoids bookkeeping for each name; lost names are found
		// again by opening their container.
		if o.found == nil || len(o.found) >= maxFound {
			o.found = map[string]found{}
		}
		o.found[uri] = e
		o.mu.Unlock()
	}
	file, err := Section(ctx, o.Base, e.Entry)
	if err == nil && e.head != nil {
		file = &prefixed{file, string(e.head), max(int64(len(e.head)), readAhead)}
	}
	return file, err
}

func (o *Opener) find(ctx context.Context, container, path string) (found, error) {
	dataset, err := Open(ctx, o.Base, []string{container}, Options{})
	if err != nil {
		return found{}, err
	}
	e, err := dataset.Resolve(ctx, path)
	if err = errors.Join(err, dataset.Close()); err != nil {
		return found{}, err
	}
	if e.Of != nil {
		head, err := openChunk(ctx, o.Base, e)
		return found{e, head}, err
	}
	if e.Kind == Folder {
		return found{}, fault.WithFile(fault.New(fault.Unsupported, "sample "+e.Path, fault.NoOffset,
			"is a folder: only files have bytes"), container)
	}
	return found{Entry: e}, nil
}

// Section opens the bytes of a sample: offset 0 of the reader is their first. If the size of the
// container's object is known (Entry.Object), opening it costs no request if the opener supports
// that, and each read is one request for exactly its range.
func Section(ctx context.Context, o source.Opener, e Entry) (source.Reader, error) {
	file, err := source.OpenKnown(ctx, o, e.URI, e.Object)
	if err != nil || e.Offset == Whole {
		return file, err
	}
	reader, err := source.SectionOf(file, e.Offset, e.Size)
	if err != nil {
		err = fault.WithFile(fault.WithPart(err, "sample "+e.Path, 0), e.URI)
		return nil, errors.Join(err, file.Close())
	}
	if len(e.Head) > 0 {
		return &prefixed{reader, e.Head, int64(len(e.Head))}, nil
	}
	return reader, nil
}

// Alone returns an opener that ignores the name and opens an entry as a file of its own.
func Alone(o source.Opener, e Entry) source.Opener { return alone{o, e} }

type alone struct {
	opener source.Opener
	entry  Entry
}

// Open implements source.Opener.
func (a alone) Open(ctx context.Context, _ string) (source.Reader, error) {
	return Section(ctx, a.opener, a.entry)
}

// prefixed reads a header, zeros up to start, and the bytes of a reader behind them.
type prefixed struct {
	source.Reader
	head  string
	start int64
}

// Size implements source.Reader.
func (p *prefixed) Size() int64 { return p.start + p.Reader.Size() }

// ReadAt implements source.Reader.
func (p *prefixed) ReadAt(ctx context.Context, b []byte, off int64) error {
	if off < 0 || off > p.Size() || int64(len(b)) > p.Size()-off {
		return fault.New(fault.Corrupt, "byte range", off, "%d bytes reach past the sample's %d", len(b), p.Size())
	}
	if off < p.start {
		before := b[:min(int64(len(b)), p.start-off)]
		clear(before[copy(before, p.head[min(off, int64(len(p.head))):]):])
		b, off = b[len(before):], p.start
	}
	if len(b) == 0 {
		return ctx.Err()
	}
	return p.Reader.ReadAt(ctx, b, off-p.start)
}

// Gap implements source.Gapped, ETag source.Tagged. Both ask the object.
func (p *prefixed) Gap() int64   { return source.Gap(p.Reader) }
func (p *prefixed) ETag() string { return source.ETag(p.Reader) }

// VSI returns the path under which GDAL opens the bytes of a sample: /vsisubfile/ for a range, with
// GDAL's file systems for the schemes of URIs.
func VSI(e Entry) string {
	if e.Kind == Folder && e.URI == "" { // a folder of shards is nowhere
		return ""
	}
	return model.Subfile(e, source.VSI(e.URI))
}
