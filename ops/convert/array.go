package convert

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/chaski-eo/chaski/chunk"
	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/durable"
	"github.com/chaski-eo/chaski/internal/pathname"
	"github.com/chaski-eo/chaski/loader/raster"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store/catalog"
	"github.com/chaski-eo/chaski/store/tiledb"
	"github.com/chaski-eo/chaski/store/tiledb/filter"
	"github.com/chaski-eo/chaski/tiff"
)

// TileDB is the format of Array: one dense array of format version 3 for all rasters.
const TileDB = "tiledb"

// ArrayOptions say how Array writes rasters as an array, beside Options.Level, Workers, MaxBytes, MaxChunk,
// Strict, Opener and Progress.
type ArrayOptions struct {
	// Dims are the dimensions in their order: n, b, y and x. n may be missing for one raster, and b for rasters
	// of one band. If n comes first, the images of one tile along n are in memory at a time, otherwise all.
	Dims []string
	// Extents are the sides of a tile along each of Dims. They are cut to the length of the dimension.
	Extents []int
	Attr    string // the name of the attribute
	Key     []byte // 32 bytes to encrypt the array with; nil for no encryption
	// Overwrite replaces an existing array when the new one is complete.
	Overwrite bool
	// Left, if not nil, is called with the names of what is left out of paths[i].
	Left func(i int, names []string)
}

// ParseDims reads dimensions such as "n b y x".
func ParseDims(text string) ([]string, error) {
	dims := strings.Fields(text)
	for i, d := range dims {
		if !slices.Contains([]string{"n", "b", "y", "x"}, d) || slices.Contains(dims[:i], d) {
			return nil, fmt.Errorf("dims is %q: it may have n, b, y and x, each once", text)
		}
	}
	if !slices.Contains(dims, "y") || !slices.Contains(dims, "x") {
		return nil, fmt.Errorf("dims is %q: it must have y and x", text)
	}
	return dims, nil
}

// ParseExtents reads extents such as "y=256 x=256". The default is 1 along n and b, and tile along y and x.
func ParseExtents(text string, dims []string, tile int) ([]int, error) {
	sizes := map[string]int{"n": 1, "b": 1, "y": tile, "x": tile}
	for _, part := range strings.FieldsFunc(text, func(r rune) bool { return r == ' ' || r == ',' }) {
		name, value, _ := strings.Cut(part, "=")
		n, err := strconv.Atoi(value)
		if err != nil || n < 1 || n > chunk.MaxSide || !slices.Contains(dims, name) {
			return nil, fmt.Errorf("extent is %q: %q must be DIM=CELLS, with DIM one of %s", text, part,
				strings.Join(dims, " "))
		}
		sizes[name] = n
	}
	out := make([]int, len(dims))
	for i, d := range dims {
		out[i] = sizes[d]
	}
	return out, nil
}

// toArray is the state of one call of Array.
type toArray struct {
	o      Options
	a      ArrayOptions
	paths  []string
	size   map[string]int
	dtype  chunk.DType
	schema *tiledb.Schema
	next   int // index in paths of the next raster to read
}

// Array writes rasters of the same shape and dtype, in the order of paths, as one dense array in the directory
// dir. dir must not exist or, with Overwrite, must be an array.
//
// The array appears when it is complete. An interrupted run leaves the old array or the new one, and a hidden directory
// beside dir, which a later run removes.
//
// An array holds only the pixels of a raster. Array calls ArrayOptions.Left with what it leaves out, and with
// Options.Strict it refuses rasters that hold more than pixels.
func Array(ctx context.Context, dir string, paths []string, o Options, a ArrayOptions) error {
	c := &toArray{o: o, a: a, paths: paths}
	if err := c.measure(ctx); err != nil {
		return fault.WithFile(err, paths[0])
	}
	if err := c.makeSchema(); err != nil {
		return err
	}
	// Before anything is written, so that an error leaves no files.
	if err := c.schema.Validate(); err != nil {
		return fault.WithFile(err, dir)
	}
	err := newArray(dir, a.Overwrite, func(path string) error { return c.write(ctx, path) })
	return fault.WithFile(err, dir)
}

// write makes the array at a path.
func (c *toArray) write(ctx context.Context, path string) error {
	if err := tiledb.Create(path, c.schema, c.a.Key); err != nil {
		return err
	}
	var files source.Files
	defer files.Close()
	array, err := tiledb.Open(ctx, &files, path,
		tiledb.Options{Key: c.a.Key, MaxTile: c.o.MaxBytes, MaxResult: c.o.MaxBytes})
	if err != nil {
		return err
	}
	if c.a.Dims[0] == "n" {
		return array.WriteDenseSlabs(ctx, c.schema.Domain(), func(slab tiledb.Box) ([]tiledb.Values, error) {
			return c.read(ctx, int(slab[0].Hi-slab[0].Lo)+1)
		})
	}
	values, err := c.read(ctx, len(c.paths))
	if err != nil {
		return err
	}
	return array.WriteDense(ctx, c.schema.Domain(), values)
}

// measure takes the shape and dtype of all rasters from the first. read checks the others.
func (c *toArray) measure(ctx context.Context) error {
	first, _, err := catalog.OpenAsset(ctx, c.o.Opener, c.paths[0], c.o.limits().MaxChunk)
	if err != nil {
		return err
	}
	index := first.Index
	c.dtype = index.DType
	if steps, err := c.o.Steps.Indices("t", index.Steps()); err != nil {
		return err
	} else if len(steps) > 1 {
		return fault.New(fault.Unsupported, "conversion", fault.NoOffset,
			"it has %d steps of time, and an array holds one of each raster: --t picks one", len(steps))
	}
	c.size = map[string]int{"n": len(c.paths), "b": index.StepBands(), "y": index.Height, "x": index.Width}
	for _, d := range []string{"n", "b"} {
		if c.size[d] > 1 && !slices.Contains(c.a.Dims, d) {
			return fault.New(fault.Unsupported, "conversion", fault.NoOffset,
				"it has %d along %s, which dims %q lacks", c.size[d], d, strings.Join(c.a.Dims, " "))
		}
	}
	return nil
}

func (c *toArray) makeSchema() error {
	typ, ok := tiledb.TypeOf(c.dtype)
	if !ok {
		return fault.WithFile(fault.New(fault.Unsupported, "conversion", fault.NoOffset,
			"a TileDB array cannot hold dtype %s", c.dtype), c.paths[0])
	}
	pipeline := filter.Pipeline{MaxChunk: filter.DefaultMaxChunk}
	// Shuffled, because bytes of equal weight next to each other compress better. Single bytes need no shuffle.
	if typ.Size() > 1 {
		pipeline.Filters = append(pipeline.Filters, filter.Filter{ID: filter.ByteShuffle})
	}
	pipeline.Filters = append(pipeline.Filters, filter.Filter{ID: filter.Zstd, Level: int32(c.o.Level)})
	c.schema = &tiledb.Schema{Dense: true, Capacity: 10000, DimType: tiledb.Int32, Coords: tiledb.DefaultFilters(),
		Offsets: tiledb.DefaultFilters(),
		Attrs:   []tiledb.Attr{{Name: c.a.Attr, Type: typ, Values: 1, Pipeline: pipeline}}}
	for i, d := range c.a.Dims {
		n := c.size[d]
		c.schema.Dims = append(c.schema.Dims, tiledb.Dim{Name: d, Extent: uint64(min(c.a.Extents[i], n)),
			Domain: tiledb.Interval{Lo: tiledb.Int32.CoordOf(0), Hi: tiledb.Int32.CoordOf(int64(n) - 1)}})
	}
	return nil
}

// read reads the next n rasters and lays them out in the order of the dimensions.
func (c *toArray) read(ctx context.Context, n int) ([]tiledb.Values, error) {
	paths := c.paths[c.next : c.next+n]
	for i, path := range paths {
		holding, err := c.o.inspect(ctx, path)
		if err != nil {
			return nil, fault.WithFile(err, path)
		}
		left, err := c.o.keep(holding)
		if err != nil {
			return nil, fault.WithFile(err, path)
		}
		if len(left) > 0 && c.a.Left != nil {
			c.a.Left(c.next+i, left)
		}
	}
	array, err := raster.Read(ctx, paths, raster.ReadOptions{Layout: c.layout(), T: c.o.Steps, Threads: c.o.Workers,
		MaxBytes: c.o.MaxBytes, Options: c.o.loader()})
	if err != nil {
		return nil, fault.WithFile(err, paths[0])
	}
	for i, d := range c.a.Dims {
		want := c.size[d]
		if d == "n" {
			want = n
		}
		if array.DType != c.dtype || array.Shape[i] != want {
			return nil, fault.WithFile(fault.New(fault.Unsupported, "stack", fault.NoOffset,
				"it has another shape or dtype than the first raster, (%d, %d, %d) %s",
				c.size["b"], c.size["y"], c.size["x"], c.dtype), paths[0])
		}
	}
	c.next += n
	if c.o.Progress != nil {
		c.o.Progress(c.next, len(c.paths))
	}
	return []tiledb.Values{{Data: array.Data}}, nil
}

// layout returns the einops pattern of the dimensions. A pattern needs all axes, so that an axis of length 1 that is no
// dimension is joined to y.
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

// Image writes image i of the array m to w as a TOG or a rumi file, read by r. The nodata value is the array's
// fill value if the image may have cells that were never written. o.Opener and o.Strict are not used. Errors about
// the array have a kind.
func Image(ctx context.Context, w io.Writer, r *tiledb.Reader, m *tiledb.Images, i int64, o Options) error {
	index := m.Index(i)
	shape := [3]int{index.Bands, index.Height, index.Width}
	size := int64(index.DType.Size())
	for _, s := range shape {
		if size > o.MaxBytes/int64(s) {
			return fault.New(fault.Limit, "array", fault.NoOffset, "(%d, %d, %d) %s is over %d bytes", index.Bands,
				index.Height, index.Width, index.DType, o.MaxBytes)
		}
		size *= int64(s)
	}
	pixels := make([]byte, size)
	picture := &image{holding: &holding{meta: tiff.Meta{NoData: NoDataText(index)}}, pixels: pixels, times: 1,
		shape: shape, dtype: index.DType}
	if err := o.fits(picture); err != nil {
		return err
	}
	if err := m.Read(ctx, r, pixels, i, chunk.Box{B1: index.Bands, Y1: index.Height, X1: index.Width}); err != nil {
		return err
	}
	return o.write(ctx, w, picture)
}

// newArray has write make an array at a path in a hidden directory beside dir, and then gives it the name dir in one
// step: see durable.Replace. With overwrite dir may be an array, whose files are then removed.
func newArray(dir string, overwrite bool, write func(path string) error) (err error) {
	place := pathname.Join(dir)
	// For a link, beside the directory that it leads to, since a rename needs to stay on one file system, and the link
	// should stay.
	if real, err := filepath.EvalSymlinks(place); err == nil {
		place = real
	}
	// The hidden name repeats the name of the array, which must not be "." then.
	if place, err = filepath.Abs(place); err != nil {
		return err
	}
	check := func() error {
		if _, err := os.Lstat(place); errors.Is(err, fs.ErrNotExist) || overwrite && tiledb.IsArray(place) {
			return nil
		}
		return fault.WithFile(fault.New(fault.Unsupported, "folder", fault.NoOffset,
			"it exists; --overwrite replaces an array"), dir)
	}
	if err := check(); err != nil {
		return err
	}
	hidden, err := durable.NewFolder(place)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, hidden.Remove()) }()
	path := pathname.Join(hidden.Path, "array")
	if err := write(path); err != nil {
		return err
	}
	// Again, because another run may have changed it meanwhile.
	if err := check(); err != nil {
		return err
	}
	return durable.Replace(path, place)
}
