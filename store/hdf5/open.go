package hdf5

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/chunk"
	format "github.com/chaski-eo/chaski/format/hdf5"
	"github.com/chaski-eo/chaski/internal/cast"
	"github.com/chaski-eo/chaski/internal/keylock"
	"github.com/chaski-eo/chaski/internal/magic"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store/arrays"
)

// opened is an HDF5 file that becomes a group of arrays.
type opened struct {
	*arrays.Node
	open   source.Opener
	uri    string
	object source.Known
	tree   *format.File
	names  map[uint64]string // of dimension scales, by the address of their dataset
	ids    map[int64]string  // of netCDF-4 dimensions, by their number
	made   map[*format.Node]*node
}

// Open opens an HDF5 file as a group, or with FILE::PATH a group or an array in it.
func Open(ctx context.Context, o source.Opener, uri string, opt arrays.Options) (*arrays.Node, error) {
	name, inside, _ := source.Split(uri)
	node, err := openFile(ctx, o, name, opt)
	if err != nil {
		return nil, fault.WithFile(err, name)
	}
	if inside = strings.Trim(inside, "/"); inside == "" {
		return node, nil
	}
	return node.Inside(ctx, inside)
}

// openFile reads the tree of a file.
func openFile(ctx context.Context, o source.Opener, uri string, opt arrays.Options) (*arrays.Node, error) {
	r, err := o.Open(ctx, uri)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	switch is, err := format.Is(ctx, r); {
	case err != nil:
		return nil, err
	case !is:
		return nil, notHDF5(ctx, r)
	}
	made := &opened{open: o, uri: uri, object: source.Known{Size: r.Size(), ETag: source.ETag(r)},
		names: map[uint64]string{}, ids: map[int64]string{}, made: map[*format.Node]*node{}}
	made.Node = arrays.New(ctx, o, uri, nil, opt)
	made.tree, err = format.Open(ctx, r, func(n int64) error { return made.Charge(ctx, n) })
	if err != nil {
		made.Drop()
		return nil, err
	}
	made.scales()
	for _, p := range made.tree.Paths {
		if err := made.add(ctx, named(p), made.tree.Nodes[p]); err != nil {
			made.Drop()
			return nil, err
		}
	}
	made.Format = made.tree.Version
	return made.Node, nil
}

// notHDF5 says what a file with the name of an HDF5 file is.
func notHDF5(ctx context.Context, r source.Reader) error {
	head, err := source.Read(ctx, r, 0, min(r.Size(), magic.Head))
	if err != nil {
		return err
	}
	switch {
	case bytes.HasPrefix(head, []byte("CDF")):
		return fault.At(fault.Unsupported, "file", 0, "it is NetCDF-3, which is not read: convert it, as by "+
			"'nccopy -k nc4 OLD NEW'")
	case bytes.HasPrefix(head, []byte("\x0e\x03\x13\x01")):
		return fault.At(fault.Unsupported, "file", 0, "it is HDF4, which is not read: convert its variables by the "+
			"names that 'gdalinfo FILE' lists, as by 'gdal_translate -of COG NAME OUT.tif'")
	case magic.OfBytes(head) != "":
		return fault.At(fault.Unsupported, "file", 0, "it is %s, not an HDF5 file", magic.OfBytes(head))
	}
	return fault.At(fault.Corrupt, "superblock", 0, "it does not begin like an HDF5 file")
}

// isPlaceholder reports whether a dataset only stands for a netCDF-4 dimension without coordinates.
func isPlaceholder(n *format.Node) bool {
	names, _ := n.Attr("NAME").([]string)
	return len(names) == 1 && strings.HasPrefix(names[0], "This is a netCDF dimension but not a netCDF variable")
}

// notCoordinate begins the name of a dataset of a netCDF-4 variable that has the name of a dimension and is not its
// coordinate: the dataset of this name is the dimension ("NC_NON_COORD_PREPEND" of netCDF-C).
const notCoordinate = "_nc4_non_coord_"

// named returns the path of a node with the name that its writer gave it.
func named(p string) string {
	folder, name := path.Split(p)
	return folder + strings.TrimPrefix(name, notCoordinate)
}

// scales finds the names of dimensions.
func (o *opened) scales() {
	seen := map[*format.Node]bool{}
	for _, p := range o.tree.Paths {
		node := o.tree.Nodes[p]
		if seen[node] {
			continue
		}
		seen[node] = true
		if class, _ := node.Attr("CLASS").([]string); !slices.Equal(class, []string{"DIMENSION_SCALE"}) {
			continue
		}
		if o.names[node.Addr] == "" {
			o.names[node.Addr] = path.Base(p)
		}
		if id, ok := node.Attr("_Netcdf4Dimid").([]int64); ok && len(id) == 1 && o.ids[id[0]] == "" {
			o.ids[id[0]] = path.Base(p)
		}
	}
}

// node is what a node of the file becomes, under each of its paths.
type node struct {
	array  *arrays.Meta
	chunks *chunkFinder
	texts  arrays.Texts
	attrs  arrays.Object
	skip   bool
	err    error
	// pixels is set if the node may be images, so an error of it is no reason to pass it over.
	pixels bool
}

// add adds a node of the file to the group.
func (o *opened) add(ctx context.Context, p string, n *format.Node) error {
	made := o.made[n]
	if made == nil {
		made = &node{err: n.Err, skip: isPlaceholder(n), pixels: n.Err != nil && !n.NamedType}
		var attrs arrays.Object
		var err error
		if n.Err == nil && !made.skip {
			attrs, err = o.attributes(ctx, n)
			made.attrs = attrs
		}
		switch {
		case err != nil:
			return err
		case n.Err != nil || made.skip:
		case n.Dataset == nil:
		case n.Dataset.Type.Class == format.String || n.Dataset.Type.Text || n.Dataset.Type.List() != nil:
			// Characters (n, length), as NetCDF has strings, are their last dimension.
			d := *n.Dataset
			characters := d.Type.Class == format.String && d.Type.Size == 1 && len(d.Shape) > 1
			if characters {
				typ := *d.Type
				typ.Size = max(int(d.Shape[len(d.Shape)-1]), 1)
				d.Type = &typ
			}
			made.texts = o.texts(&d)
			number := &format.Datatype{Class: format.Fixed, Size: 1}
			made.array, made.chunks, made.err = o.array(p, n, number, !characters, attrs)
			if list := d.Type.List(); list != nil && made.err == nil {
				made.array.List = dtypeOf(list)
			}
		default:
			made.array, made.chunks, made.err = o.array(p, n, n.Dataset.Type.Number(), false, attrs)
			made.pixels = len(n.Dataset.Shape) > 1 && n.Dataset.Type.Class != format.Reference
		}
		o.made[n] = made
	}
	switch {
	case made.skip:
	case made.err != nil:
		o.PutBroken(p, made.err, made.pixels, made.attrs)
	case made.array == nil:
		o.PutGroup(p, made.attrs)
	default:
		meta := *made.array
		o.PutArray(p, &meta, made.chunks, made.texts)
	}
	return ctx.Err()
}

// texts returns what makes strings of the elements of a dataset, which lie in them or, of any length, where they say.
func (o *opened) texts(d *format.Dataset) arrays.Texts {
	return func(ctx context.Context, data []byte) ([]string, error) {
		r, err := source.OpenKnown(ctx, o.open, o.uri, o.object)
		if err != nil {
			return nil, err
		}
		defer r.Close()
		texts, err := d.Strings(ctx, r, data)
		if list := d.Type.List(); list != nil && list.Big && err == nil {
			for i, text := range texts {
				numbers := []byte(text)
				for number := range slices.Chunk(numbers, list.Size) {
					slices.Reverse(number)
				}
				texts[i] = string(numbers)
			}
		}
		return texts, err
	}
}

// dtypeOf returns the type of the samples that are stored as numbers of a type.
func dtypeOf(number *format.Datatype) chunk.DType {
	switch {
	case number.Class == format.Float:
		return floats[number.Size]
	case number.Signed:
		return dtypes[number.Size][1]
	}
	return dtypes[number.Size][0]
}

// dtypes are the types of integers by their bytes, unsigned and signed.
var dtypes = map[int][2]chunk.DType{1: {chunk.Uint8, chunk.Int8}, 2: {chunk.Uint16, chunk.Int16},
	4: {chunk.Uint32, chunk.Int32}, 8: {chunk.Uint64, chunk.Int64}}

// floats are the types of floats by their bytes.
var floats = map[int]chunk.DType{2: chunk.Float16, 4: chunk.Float32, 8: chunk.Float64}

const datasetPart = "dataset"

// array describes a dataset as an array of numbers. With split the numbers of an element are a last dimension.
func (o *opened) array(p string, n *format.Node, number *format.Datatype, split bool,
	attrs arrays.Object) (*arrays.Meta, *chunkFinder, error) {
	d := n.Dataset
	part := d.Type.Part
	if part != nil {
		number = &part.As
	}
	if number == nil {
		return nil, nil, fault.New(fault.Unsupported, datasetPart,
			"elements of type %v of %d bytes: arrays of numbers and booleans are read", d.Type.Class, d.Type.Size)
	}
	if d.Null {
		return nil, nil, fault.New(fault.Unsupported, datasetPart, "it has no elements (a null dataspace)")
	}
	shape, chunks := d.Shape, d.Chunked()
	if n := int64(d.Type.Size / number.Size); split {
		shape = append(slices.Clip(shape), n)
		if chunks != nil {
			chunks = append(slices.Clip(chunks), n)
		}
	}
	made := &arrays.Meta{Shape: shape, Chunks: chunks, Bool: d.Type.Bool,
		Big: number.Big && number.Size > 1, Fill: make([]byte, number.Size), Attrs: attrs}
	if len(shape) == len(d.Shape) {
		made.Names = o.dimensions(p, n)
	}
	if made.DType = dtypeOf(number); made.Bool {
		made.DType = chunk.Uint8
	}
	if len(d.Fill) == d.Type.Size {
		made.Fill = bytes.Clone(d.Fill)
	}
	if made.Big {
		slices.Reverse(made.Fill)
	}
	if part != nil {
		made.Element, made.Sample = dtypes[d.Type.Size][0], part.Sample
		if d.Fill != nil {
			fill := part.Sample(cast.Uint(made.Fill, d.Type.Size))
			made.Fill = make([]byte, number.Size)
			cast.PutUint(made.Fill, number.Size, fill)
		}
	}
	var err error
	if made.Filters, made.Text, err = filtersOf(d); err != nil {
		return nil, nil, err
	}
	made.Text = fmt.Sprint(p, shape, made.Chunks, made.DType, made.Big, made.Fill, made.Text)
	if part != nil {
		made.Text += fmt.Sprint(*part)
	}
	finder := &chunkFinder{o: o, d: d}
	if made.Chunks == nil {
		inline, err := finder.lay()
		if err != nil {
			return nil, nil, err
		}
		finder.side = made.LaySide(finder.stored(chunk.Stored{}), finder.at)
		if inline {
			made.Chunks = wholeArray(shape)
		}
	}
	for i, side := range made.Chunks {
		finder.grid = append(finder.grid, (shape[i]+side-1)/side)
	}
	return made, finder, nil
}

// filtersOf returns the filters of a dataset, and a text of them for the fingerprint.
func filtersOf(d *format.Dataset) (list []arrays.Filter, text string, err error) {
	type printed struct {
		name string
		size int
	}
	prints := []printed{}
	for _, f := range d.Filters {
		name, ok := filters[f.ID]
		if !ok {
			return nil, "", fault.New(fault.Unsupported, datasetPart,
				"filter %d (%s): deflate, shuffle, fletcher32, szip, scaleoffset, nbit, bzip2, lzf, blosc and zstd "+
					"are read", f.ID, f.Name)
		}
		filter, size := arrays.Filter{Name: name, Codec: name}, d.Type.Size
		if f.ID == format.Shuffle {
			if len(f.Data) > 0 && f.Data[0] <= math.MaxUint16 {
				size = int(f.Data[0])
			}
			filter.Conf = arrays.Object{"elementsize": strconv.AppendInt(nil, int64(size), 10)}
		} else if f.Data != nil {
			values, err := json.Marshal(f.Data)
			if err != nil {
				return nil, "", err
			}
			filter.Conf = arrays.Object{"values": values}
		}
		list, prints = append(list, filter), append(prints, printed{name, size})
	}
	return list, fmt.Sprint(prints), nil
}

// filters are the filters that are read, as codecs.
var filters = map[int]string{format.Deflate: "zlib", format.Shuffle: "shuffle", format.Fletcher32: "fletcher32",
	format.SZIP: "szip", format.ScaleOffset: "scaleoffset", format.NBit: "nbit", format.BZip2: "bz2", format.LZF: "lzf",
	format.Blosc: "blosc", format.Zstd: "zstd"}

// wholeArray returns the chunk that is the whole array.
func wholeArray(shape []int64) []int64 {
	chunk := slices.Clone(shape)
	for d := range chunk {
		chunk[d] = max(chunk[d], 1)
	}
	return chunk
}

// dimensions returns the names of the dimensions of a dataset, or nil.
func (o *opened) dimensions(p string, n *format.Node) []string {
	names := make([]string, len(n.Dataset.Shape)) // strings have a dimension more, without a name
	if refs, ok := n.Attr("DIMENSION_LIST").([][]uint64); ok && len(refs) == len(names) {
		for d, list := range refs {
			if len(list) > 0 {
				names[d] = o.names[list[0]]
			}
		}
	} else if ids, ok := n.Attr("_Netcdf4Coordinates").([]int64); ok && len(ids) == len(names) {
		for d, id := range ids {
			names[d] = o.ids[id]
		}
	} else if len(names) == 1 && o.names[n.Addr] != "" {
		names[0] = path.Base(p)
	}
	labels, _ := n.Attr("DIMENSION_LABELS").([]string)
	for d := range names {
		if names[d] == "" && len(labels) == len(names) {
			names[d] = labels[d]
		}
	}
	if slices.ContainsFunc(names, func(s string) bool { return s != "" }) {
		return names
	}
	return nil
}

// attributes returns the attributes of a node as JSON, whose bytes are charged.
func (o *opened) attributes(ctx context.Context, n *format.Node) (arrays.Object, error) {
	out := arrays.Object{}
	for i := range n.Attrs {
		a := &n.Attrs[i]
		if hidden(a.Name) {
			continue
		}
		var list []byte
		switch values := a.Value().(type) {
		case []float64:
			list = joined(values, number)
		case []int64:
			list = joined(values, func(b []byte, v int64) []byte { return strconv.AppendInt(b, v, 10) })
		case []uint64:
			list = joined(values, func(b []byte, v uint64) []byte { return strconv.AppendUint(b, v, 10) })
		case []bool:
			list = joined(values, strconv.AppendBool)
		case []string:
			list = joined(values, func(b []byte, v string) []byte {
				text, _ := json.Marshal(v)
				return append(b, text...)
			})
		default:
			continue
		}
		if a.Shape != nil {
			list = append(append([]byte{'['}, list...), ']')
		}
		if err := o.tree.Keep(n, int64(len(list))); err != nil {
			return nil, err
		}
		if err := o.Charge(ctx, int64(len(list))); err != nil {
			return nil, err
		}
		out[a.Name] = list
	}
	return out, nil
}

// joined appends values after each other, with commas.
func joined[T any](values []T, add func([]byte, T) []byte) (list []byte) {
	for i, v := range values {
		if i > 0 {
			list = append(list, ',')
		}
		list = add(list, v)
	}
	return slices.Clip(list)
}

// number appends a float as JSON. JSON lacks NaN and infinities, so these are strings, as in Zarr.
func number(b []byte, v float64) []byte {
	switch {
	case math.IsNaN(v):
		return append(b, `"NaN"`...)
	case math.IsInf(v, 1):
		return append(b, `"Infinity"`...)
	case math.IsInf(v, -1):
		return append(b, `"-Infinity"`...)
	}
	length := len(b)
	if b = strconv.AppendFloat(b, v, 'g', -1, 64); !bytes.ContainsAny(b[length:], ".e") {
		b = append(b, ".0"...) // so that it stays a float
	}
	return b
}

// chunkFinder finds the chunks of a dataset.
type chunkFinder struct {
	o    *opened
	d    *format.Dataset
	grid []int64
	// Of elements that lie side by side.
	side    *arrays.Side
	at      chunk.Range
	inline  []byte
	written bool

	index keylock.Value[*format.Chunks]
}

// lay finds elements that lie side by side, and reports whether they lie in the header.
func (f *chunkFinder) lay() (inline bool, err error) {
	f.at.Off, f.at.Len, f.inline, f.written, err = f.d.Contiguous()
	f.index.Set(nil)
	return f.inline != nil, err
}

// Prepare implements arrays.Chunks.
func (f *chunkFinder) Prepare(ctx context.Context) error {
	_, err := f.read(ctx)
	return err
}

// read returns the index, which it reads once.
func (f *chunkFinder) read(ctx context.Context) (*format.Chunks, error) {
	return f.index.Get(ctx, func() (*format.Chunks, error) {
		r, err := source.OpenKnown(ctx, f.o.open, f.o.uri, f.o.object)
		if err != nil {
			return nil, err
		}
		defer r.Close()
		if r.Size() != f.o.object.Size {
			return nil, fault.New(fault.Corrupt, "file", "it has %d bytes, %d when it was opened",
				r.Size(), f.o.object.Size)
		}
		return f.d.Chunks(ctx, r, func(n int64) error { return f.o.Hold(ctx, n) })
	})
}

// Find implements arrays.Chunks.
func (f *chunkFinder) Find(ctx context.Context, at []int64) (chunk.Stored, error) {
	switch {
	case f.d.Chunked() != nil:
	case !f.written:
		return f.stored(chunk.Stored{Absent: true}), nil
	case f.inline != nil:
		return f.stored(chunk.Stored{Inline: f.inline}), nil
	default:
		return f.side.Find(ctx, at)
	}
	index, err := f.read(ctx)
	if err != nil {
		return chunk.Stored{}, err
	}
	number := int64(0)
	for d, n := range f.grid {
		number = number*n + at[d]
	}
	c, ok := index.Find(number)
	return f.stored(chunk.Stored{Absent: !ok, At: chunk.Range{Off: c.Off, Len: c.Size}, Skip: c.Skip}), nil
}

// stored adds the file to a place in it.
func (f *chunkFinder) stored(s chunk.Stored) chunk.Stored {
	s.URI, s.Size, s.ETag = f.o.uri, f.o.object.Size, f.o.object.ETag
	return s
}
