package catalog

import (
	"context"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/source/openers"
)

// Virtual is the chunk.BlockArray of a virtual raster (VRT), which package store/catalog/virtual makes.
type Virtual interface {
	chunk.BlockArray
	// Legend has the colours and names of the classes of the first band.
	Legend() chunk.Legend
	// Sources returns how many files the pixels are in.
	Sources() int
	// Cost returns the bytes of memory that it takes.
	Cost() int64
}

// OpenVirtual makes the asset of a virtual raster. Without package store/catalog/virtual it is an error:
// fault.Unsupported.
var OpenVirtual = func(ctx context.Context, o source.Opener, r source.Reader, uri string, maxChunk int) (Asset, Meta,
	error) {
	return Asset{}, Meta{}, fault.NotImported("VRT", "reads virtual rasters", "store/catalog/virtual")
}

// errVirtualPart is the error of a virtual raster inside another file.
var errVirtualPart = fault.New(fault.Unsupported, "VRT",
	"a virtual raster inside another file is not read: the files that it names do not lie beside it")

// opensOne reports whether an opener opens single objects, so no file lies beside another.
func opensOne(o source.Opener) bool {
	_, lists := o.(source.Lister)
	_, files := o.(*openers.Files)
	return !lists && !files
}

// OpenSource is OpenAsset for a source of a virtual raster, whose axes are as they are stored.
func OpenSource(ctx context.Context, o source.Opener, uri string, maxChunk int) (Asset, Meta, error) {
	return openWith(ctx, o, uri, chunk.Axes{AsStored: true}, maxChunk)
}

// virtualOf returns the virtual raster of an index, or nil.
func virtualOf(x *chunk.Index) Virtual {
	if x.Blocks == nil {
		return nil
	}
	v, _ := x.Blocks.Array.(Virtual)
	return v
}

// IsVirtual reports whether an index is of a virtual raster.
func IsVirtual(x *chunk.Index) bool { return virtualOf(x) != nil }

// SourcesOf returns how many files the pixels of a virtual raster are in.
func SourcesOf(x *chunk.Index) int { return virtualOf(x).Sources() }

// WithoutAlpha returns the index of an image whose last band is alpha, for readers to whom that band is data: it masks
// nothing. Other indexes are returned as they are.
func WithoutAlpha(x *chunk.Index) *chunk.Index {
	if !x.Alpha {
		return x
	}
	image := *x
	image.Alpha = false
	return &image
}

// SourceReader reads a window of some bands of a source of a virtual raster: samples by band, row and column, in the
// source's dtype, and for each 0 if the source has nodata or a mask there. Both are valid until the next call.
type SourceReader func(ctx context.Context, a Asset, bands []int, window chunk.Box) (samples, valid []byte, err error)

// Composer is a chunk.BlockReader of an image that is made of other rasters.
type Composer interface {
	chunk.BlockReader
	// SetSources sets what reads them, before the first call of ReadBox.
	SetSources(read SourceReader)
}
