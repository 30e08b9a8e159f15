package taco

import (
	"context"
	"errors"
	"strings"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store/catalog"
)

// OpenMember implements rows.Members. It opens a sample of a container or the raster in a cell of a table:
// the reader covers its bytes alone. A chunk ("data.taco::img1/lrf::2") is opened as a TIFF, whose bytes behind the
// header are the chunk: reading it takes one range. A local file of that very name takes precedence. For remote names
// the container is tried first, because hardly any object has the separator in its name, and each attempt costs a
// request. A sample that is a folder is fault.Unsupported. To read many samples, use a Dataset and Entry.Open.
func (Kind) OpenMember(ctx context.Context, o source.Opener, uri string) (source.Reader, error) {
	if !source.IsRemote(uri) {
		file, err := o.Open(ctx, uri)
		if fault.KindOf(err) == fault.NotFound {
			return openMember(ctx, o, uri)
		}
		return file, err
	}
	reader, err := openMember(ctx, o, uri)
	// Behind a query, a server would take the path for a part of the query and answer with anything.
	if k := fault.KindOf(err); k != fault.NotFound && k != fault.Unsupported || strings.Contains(uri, "?") {
		return reader, err
	}
	if file, ferr := o.Open(ctx, uri); ferr == nil {
		return file, nil
	}
	return nil, err
}

// openMember opens a sample of a container, or the raster in a cell of a table.
func openMember(ctx context.Context, o source.Opener, uri string) (source.Reader, error) {
	container, path, _ := source.Split(uri)
	if catalog.HasCells(container) {
		asset, err := catalog.OpenCell(ctx, o, container, path, 0)
		return source.Memory(asset.Bytes), err
	}
	dataset, err := Open(ctx, o, []string{container}, Options{})
	if err != nil {
		return nil, err
	}
	sample, err := dataset.Resolve(ctx, path)
	if err = errors.Join(err, dataset.Close()); err != nil {
		return nil, err
	}
	switch {
	case sample.Of != nil:
		head, err := openChunk(ctx, o, sample)
		if err != nil {
			return nil, err
		}
		file, err := sample.Open(ctx, o)
		return &prefixed{file, string(head), max(int64(len(head)), readAhead)}, err
	case sample.Folder:
		return nil, fault.WithFile(fault.New(fault.Unsupported, "sample "+sample.Path,
			"is a folder: only files have bytes"), container)
	}
	return sample.Open(ctx, o)
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
	if !source.Fits(off, int64(len(b)), p.Size()) {
		return fault.At(fault.Corrupt, "byte range", off, "%d bytes reach past the sample's %d", len(b), p.Size())
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
