package convert

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/chaski-eo/chaski/chunk"
	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/loader"
	"github.com/chaski-eo/chaski/store/catalog"
	"github.com/chaski-eo/chaski/store/tiledb"
	"github.com/chaski-eo/chaski/store/tiledb/filter"
	"github.com/chaski-eo/chaski/tiff"
)

// TileDB is a dense array of format version 3, one for all rasters.
const TileDB = "tiledb"

// ArrayOptions say how rasters become an array, beside Options.Level, Workers, MaxBytes, Opener and Progress.
type ArrayOptions struct {
	// Dims are the dimensions, in their order: n, b, y and x. n may be missing for one raster, b for ones of one
	// band. With n in front one tile's images are in memory at a time, else all.
	Dims []string
	// Extents are the sides of a tile along each of Dims; they are cut to what there is.
	Extents []int
	Attr    string // the name of the attribute
	Key     []byte // of 32 bytes, to encrypt with; nil for none
	// Overwrite replaces an array that is there once the new one is complete.
	Overwrite bool
	// Left, if not nil, is told what of a raster, by its place among all, is left out.
	Left func(i int, names []string)
}

// ParseDims reads "n b y x".
func ParseDims(text string) ([]string, error) {
	dims := strings.Fields(text)
	for i, d := range dims {
		if !slices.Contains([]string{"n", "b", "y", "x"}, d) || slices.Contains(dims[:i], d) {
			return nil, fmt.Errorf("dimensions %q are not n, b, y and x, each once", text)
		}
	}
	if !slices.Contains(dims, "y") || !slices.Contains(dims, "x") {
		return nil, fmt.Errorf("dimensions %q: y and x are needed", text)
	}
	return dims, nil
}

// ParseExtents reads "y=256 x=256"; what is not named is 1 along n and b, and tile along y and x.
func ParseExtents(text string, dims []string, tile int) ([]int, error) {
	of := map[string]int{"n": 1, "b": 1, "y": tile, "x": tile}
	for _, part := range strings.FieldsFunc(text, func(r rune) bool { return r == ' ' || r == ',' }) {
		name, value, _ := strings.Cut(part, "=")
		n, err := strconv.Atoi(value)
		if err != nil || n < 1 || n > chunk.MaxSide || !slices.Contains(dims, name) {
			return nil, fmt.Errorf("extents %q: %q is not DIM=CELLS, DIM one of %s", text, part, strings.Join(dims, " "))
		}
		of[name] = n
	}
	out := make([]int, len(dims))
	for i, d := range dims {
		out[i] = of[d]
	}
	return out, nil
}

// toArray is one conversion of rasters to an array.
type toArray struct {
	o      Options
	a      ArrayOptions
	paths  []string
	size   map[string]int
	dtype  chunk.DType
	schema *tiledb.Schema
	next   int // of paths
}

// Array writes rasters of one shape and dtype, in their order, as a dense array in a folder that must not exist, or with
// Overwrite be one. The array appears once it is complete: an interrupted run leaves the array from before it or the new
// one, and hidden files that the next run refuses or, with Overwrite, removes. An array holds nothing of a raster but its
// samples; ArrayOptions.Left is told what is left out, and Options.Strict refuses rasters that have more.
func Array(ctx context.Context, folder string, paths []string, o Options, a ArrayOptions) (err error) {
	c := &toArray{o: o, a: a, paths: paths}
	if err := c.measure(ctx); err != nil {
		return fault.WithFile(err, paths[0])
	}
	if err := c.makeSchema(); err != nil {
		return err
	}
	if err := c.schema.Validate(); err != nil { // before anything is made
		return fault.WithFile(err, folder)
	}
	at := placeOf(folder)
	path, err := at.begin(a.Overwrite)
	if err != nil {
		return err
	}
	defer at.abandon()
	if err := tiledb.Create(path, c.schema, a.Key); err != nil {
		return fault.WithFile(err, folder)
	}
	var files tiledb.Files
	defer files.Close()
	array, err := tiledb.Open(ctx, &files, path, tiledb.Options{Key: a.Key, MaxTile: o.MaxBytes, MaxResult: o.MaxBytes})
	if err != nil {
		return err
	}
	if a.Dims[0] == "n" {
		err = array.WriteDenseSlabs(ctx, c.schema.Domain(), func(slab tiledb.Box) ([]tiledb.Values, error) {
			return c.read(ctx, int(slab[0].Hi-slab[0].Lo)+1)
		})
	} else {
		var v []tiledb.Values
		if v, err = c.read(ctx, len(paths)); err == nil {
			err = array.WriteDense(ctx, c.schema.Domain(), v)
		}
	}
	if err != nil {
		return err
	}
	return at.put(path, a.Overwrite)
}

// measure finds the shape of all from that of the first.
func (c *toArray) measure(ctx context.Context) error {
	first, _, err := catalog.OpenAsset(ctx, c.o.Opener, c.paths[0], c.o.limits().MaxChunk)
	if err != nil {
		return err
	}
	x := first.Index
	c.dtype = x.DType
	c.size = map[string]int{"n": len(c.paths), "b": x.Bands, "y": x.Height, "x": x.Width}
	for _, d := range []string{"n", "b"} {
		if c.size[d] > 1 && !slices.Contains(c.a.Dims, d) {
			return fault.New(fault.Unsupported, "conversion", fault.NoOffset, "%d along %s, which is not among the dimensions %q", c.size[d], d, strings.Join(c.a.Dims, " "))
		}
	}
	return nil
}

// datatypes are the types of samples in arrays.
var datatypes = map[chunk.DType]tiledb.Datatype{
	chunk.Int8: tiledb.Int8, chunk.Uint8: tiledb.Uint8, chunk.Int16: tiledb.Int16, chunk.Uint16: tiledb.Uint16, chunk.Int32: tiledb.Int32,
	chunk.Uint32: tiledb.Uint32, chunk.Int64: tiledb.Int64, chunk.Uint64: tiledb.Uint64, chunk.Float32: tiledb.Float32, chunk.Float64: tiledb.Float64,
}

func (c *toArray) makeSchema() error {
	typ, ok := datatypes[c.dtype]
	if !ok {
		return fault.WithFile(fault.New(fault.Unsupported, "conversion", fault.NoOffset, "arrays have no %s samples here", c.dtype), c.paths[0])
	}
	p := filter.Pipeline{MaxChunk: filter.DefaultMaxChunk}
	if typ.Size() > 1 {
		p.Filters = append(p.Filters, filter.Filter{ID: filter.ByteShuffle})
	}
	p.Filters = append(p.Filters, filter.Filter{ID: filter.Zstd, Level: int32(c.o.Level)})
	c.schema = &tiledb.Schema{Dense: true, Capacity: 10000, DimType: tiledb.Int32, Coords: tiledb.DefaultFilters(), Offsets: tiledb.DefaultFilters(),
		Attrs: []tiledb.Attr{{Name: c.a.Attr, Type: typ, Values: 1, Pipeline: p}}}
	for i, d := range c.a.Dims {
		n := c.size[d]
		c.schema.Dims = append(c.schema.Dims, tiledb.Dim{Name: d, Extent: uint64(min(c.a.Extents[i], n)),
			Domain: tiledb.Interval{Lo: tiledb.Int32.CoordOf(0), Hi: tiledb.Int32.CoordOf(int64(n) - 1)}})
	}
	return nil
}

// read reads the next n rasters, in the order of the dimensions.
func (c *toArray) read(ctx context.Context, n int) ([]tiledb.Values, error) {
	paths := c.paths[c.next : c.next+n]
	for i, path := range paths {
		h, err := c.o.inspect(ctx, path)
		if err != nil {
			return nil, fault.WithFile(err, path)
		}
		left, err := c.o.keep(h)
		if err != nil {
			return nil, fault.WithFile(err, path)
		}
		if len(left) > 0 && c.a.Left != nil {
			c.a.Left(c.next+i, left)
		}
	}
	a, err := loader.Read(ctx, paths, loader.ReadOptions{Layout: c.layout(), Threads: c.o.Workers, MaxBytes: c.o.MaxBytes, Options: c.o.loader()})
	if err != nil {
		return nil, fault.WithFile(err, paths[0])
	}
	for i, d := range c.a.Dims {
		want := c.size[d]
		if d == "n" {
			want = n
		}
		if a.DType != c.dtype || a.Shape[i] != want {
			return nil, fault.WithFile(fault.New(fault.Unsupported, "stack", fault.NoOffset, "another shape or dtype than the first raster's (%d, %d, %d) %s",
				c.size["b"], c.size["y"], c.size["x"], c.dtype), paths[0])
		}
	}
	c.next += n
	if c.o.Progress != nil {
		c.o.Progress(c.next, len(c.paths))
	}
	return []tiledb.Values{{Data: a.Data}}, nil
}

// layout is the pattern of the dimensions; an axis of one that is none of them is joined to y.
func (c *toArray) layout() string {
	var missing []string
	for _, d := range []string{"n", "b"} {
		if !slices.Contains(c.a.Dims, d) {
			missing = append(missing, d)
		}
	}
	if len(missing) == 0 {
		return strings.Join(c.a.Dims, " ")
	}
	out := slices.Clone(c.a.Dims)
	out[slices.Index(out, "y")] = "(" + strings.Join(append(missing, "y"), " ") + ")"
	return strings.Join(out, " ")
}

// Image writes an image of an array to w, as a TOG or a rumi file. The fill value is its nodata where it may have
// cells that were never written.
func Image(ctx context.Context, w io.Writer, r *tiledb.Reader, m *tiledb.Images, i int64, o Options) error {
	x := m.Index(i)
	shape := [3]int{x.Bands, x.Height, x.Width}
	n := int64(x.DType.Size())
	for _, s := range shape {
		if n > o.MaxBytes/int64(s) {
			return fault.New(fault.Limit, "array", fault.NoOffset, "(%d, %d, %d) %s is over %d bytes", x.Bands, x.Height, x.Width, x.DType, o.MaxBytes)
		}
		n *= int64(s)
	}
	var meta tiff.Meta
	if meta.NoData = "nan"; x.NoDataBits != nil && x.DType == chunk.Uint64 {
		meta.NoData = strconv.FormatUint(*x.NoDataBits, 10)
	} else if x.NoDataBits != nil {
		meta.NoData = strconv.FormatInt(int64(*x.NoDataBits), 10)
	} else if x.NoData == nil {
		meta.NoData = ""
	} else if *x.NoData == *x.NoData {
		meta.NoData = strconv.FormatFloat(*x.NoData, 'f', -1, 64)
	}
	h := &holding{meta: meta}
	if err := o.fits(x.DType, shape, &h.meta); err != nil {
		return err
	}
	pixels := make([]byte, n)
	if err := m.Read(ctx, r, pixels, i, chunk.Box{B1: x.Bands, Y1: x.Height, X1: x.Width}); err != nil {
		return err
	}
	if o.Format == TOG {
		return tiff.WriteTOG(w, pixels, o.togOptions(ctx, shape, x.DType, h))
	}
	return o.rumi(ctx, w, pixels, shape, x.DType, h)
}
