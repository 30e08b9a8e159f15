// Package filter runs the filter pipelines of TileDB: a tile is cut into chunks, each chunk passes
// through the filters of a pipeline, and every filter may leave metadata beside the data.
//
// Specification: "Tile-based format" of the TileDB format description, version 3, and the folder format_spec of TileDB
// for later versions. Read and written are no filter, gzip (a zlib stream), zstd, byteshuffle and AES-256-GCM. Only
// read are LZ4 (a raw block), RLE, bzip2, double delta, bit width reduction, bitshuffle, positive delta, and the
// filters of later versions: checksums (MD5, SHA-256), delta, XOR, float scaling, and the dictionaries and runs of
// strings (Decoder.Strings). WebP is refused by name.
//
// Kernels (files kernel_*.go) are plain loops over memory whose bounds their callers have checked.
package filter

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/cast"
	"github.com/chaski-eo/chaski/internal/expand"
)

// ID names a filter. The values are the format's.
type ID uint8

// Filters. Those up to AES256GCM are the filters of format 3. A compressor of theirs has the same
// number as a compressor and as a filter.
const (
	None          ID = 0
	Gzip          ID = 1
	Zstd          ID = 2
	LZ4           ID = 3
	RLE           ID = 4
	Bzip2         ID = 5
	DoubleDelta   ID = 6
	BitWidth      ID = 7
	BitShuffle    ID = 8
	ByteShuffle   ID = 9
	PositiveDelta ID = 10
	AES256GCM     ID = 11
	MD5           ID = 12
	SHA256        ID = 13
	Dictionary    ID = 14
	ScaleFloat    ID = 15
	XOR           ID = 16
	Deprecated    ID = 17
	WebP          ID = 18
	Delta         ID = 19
	numFilters       = 20
)

// filterKind is how a filter is read.
type filterKind struct {
	name   string
	config int // bytes of its configuration, but for the type of values that later versions add to deltas
	// compressor is the number that a compressor has in its configuration, 0 for other filters.
	compressor byte
	// expand fills dst from one compressed part, for compressors. The capacity of dst past its length may be
	// overwritten.
	expand func(d *Decoder, dst, src []byte, e Elem) error
	// undo undoes another filter. The result goes to dst if that is not nil. final is the decoded size of the chunk.
	undo func(d *Decoder, f step, dst, meta, data []byte, final int) (m, out []byte, err error)
}

var kinds = [numFilters]filterKind{
	None: {name: "none"},
	Gzip: {name: "gzip", config: 5, compressor: 1,
		expand: func(d *Decoder, dst, src []byte, _ Elem) error { return d.streams.Zlib(dst, src) }},
	Zstd: {name: "zstd", config: 5, compressor: 2,
		expand: func(d *Decoder, dst, src []byte, _ Elem) error { return d.streams.Zstd(dst, src) }},
	LZ4: {name: "lz4", config: 5, compressor: 3,
		expand: func(_ *Decoder, dst, src []byte, _ Elem) error { return expand.LZ4(dst, src) }},
	RLE: {name: "rle", config: 5, compressor: 4, expand: expandRLE},
	Bzip2: {name: "bzip2", config: 5, compressor: 5,
		expand: func(d *Decoder, dst, src []byte, _ Elem) error { return d.streams.Bzip2(dst, src) }},
	DoubleDelta:   {name: "double delta", config: 5, compressor: 6, expand: expandDoubleDelta},
	BitWidth:      {name: "bit width reduction", config: 4, undo: (*Decoder).widen},
	BitShuffle:    {name: "bitshuffle", undo: (*Decoder).unshuffle},
	ByteShuffle:   {name: "byteshuffle", undo: (*Decoder).unshuffle},
	PositiveDelta: {name: "positive delta", config: 4, undo: (*Decoder).undelta},
	AES256GCM:     {name: "aes-256-gcm", undo: (*Decoder).decrypt},
	MD5:           {name: "md5", undo: (*Decoder).check},
	SHA256:        {name: "sha256", undo: (*Decoder).check},
	Dictionary:    {name: "dictionary", config: 5, compressor: 7}, // see Decoder.Strings
	ScaleFloat:    {name: "float scale", config: 24, undo: (*Decoder).unscale},
	XOR:           {name: "xor", undo: (*Decoder).unxor},
	Deprecated:    {name: "deprecated"},
	WebP:          {name: "webp"},
	Delta:         {name: "delta", config: 5, compressor: 8, expand: expandDelta},
}

// String returns the filter's name in lower case.
func (f ID) String() string {
	if f >= numFilters {
		return "unknown"
	}
	return kinds[f].name
}

// delta reports whether the filter may see its values as another type (Filter.As).
func (f ID) delta() bool { return f == DoubleDelta || f == Delta }

// Filter is one filter of a pipeline.
type Filter struct {
	ID     ID
	Level  int32  // of compressors; -1 means the compressor's default
	Window uint32 // of bit width reduction and positive delta: largest window, in bytes
	// As is the type that delta and double delta take the values for; its Size is 0 if they have their own.
	As Elem
	// Scale, Offset and Width describe float scaling: an integer of Width bytes times Scale plus Offset is the value.
	Scale, Offset float64
	Width         int
}

// Pipeline is a list of filters, in the order in which a writer applies them.
type Pipeline struct {
	MaxChunk uint32 // largest size of a chunk in bytes, rounded down to whole cells
	Filters  []Filter
}

// Kind is the kind of a datatype, as filters distinguish them.
type Kind uint8

// Kinds of values.
const (
	Signed   Kind = iota // 8 to 64 bit integers
	Unsigned             // 8 to 64 bit integers
	Float
	Char // strings and bytes: double delta treats them as integers of one byte, other filters leave them alone
	Time // int64 numbers, which only double delta treats as integers
)

// Elem describes the values of a tile.
type Elem struct {
	Kind Kind
	Size int // bytes of a value: 1, 2, 4 or 8
	Cell int // bytes of a cell: values in a cell times Size; RLE repeats cells
	// Alt is another cell size that RLE data may have, or 0. Coordinates are stored dimension by dimension. libtiledb
	// nevertheless repeats Cell bytes of them, while other writers may repeat one coordinate.
	Alt int
}

// integer reports whether bit width reduction and positive delta apply to the values.
func (e Elem) integer() bool { return e.Kind <= Unsigned }

// acts reports whether the filter changes tiles of e.
func (f Filter) acts(e Elem) bool {
	switch f.ID {
	case None:
		return false
	case BitWidth:
		return e.integer() && e.Size > 1
	case PositiveDelta:
		return e.integer()
	}
	return true
}

func corrupt(part string, format string, args ...any) error {
	return fault.New(fault.Corrupt, part, format, args...)
}

// configSize returns the size of a filter's configuration in a format version, in bytes.
func (f ID) configSize(version uint32) int {
	if f == Delta && version >= sinceDeltaType || f == DoubleDelta && version >= sinceDoubleDeltaType {
		return kinds[f].config + 1
	}
	return kinds[f].config
}

// Format versions from which the configurations of delta and double delta name the type of values.
const (
	sinceDeltaType       = 19
	sinceDoubleDeltaType = 20
)

// formatVersion is the first format version that is read. Its last filter is AES256GCM.
const formatVersion = 3

// ParseVersion reads a pipeline of a format version from the front of b and returns its length in bytes. Offsets of
// errors count from the front of b. as returns the Elem of the datatype with a number, with Size 0 for the type "any",
// which means that the type does not change. It reports false for a number without a datatype.
func ParseVersion(b []byte, version uint32, as func(datatype uint8) (Elem, bool)) (Pipeline, int, error) {
	bad := func(off int, format string, args ...any) (Pipeline, int, error) {
		return Pipeline{}, 0, fault.At(fault.Corrupt, "filter pipeline", int64(off), format, args...)
	}
	if len(b) < 8 {
		return bad(0, "%d bytes left, 8 needed", len(b))
	}
	pipeline := Pipeline{MaxChunk: binary.LittleEndian.Uint32(b)}
	filters, off := binary.LittleEndian.Uint32(b[4:]), 8
	if uint64(filters)*5 > uint64(len(b)-off) {
		return bad(4, "%d filters in %d bytes", filters, len(b)-off)
	}
	for range filters {
		if len(b)-off < 5 {
			return bad(off, "ends inside a filter")
		}
		id, size := ID(b[off]), binary.LittleEndian.Uint32(b[off+1:])
		if id >= numFilters || id > AES256GCM && version <= formatVersion {
			return Pipeline{}, 0, fault.At(fault.Unsupported, "filter pipeline", int64(off),
				"filter %d is unknown", id)
		}
		if id == WebP || id == Deprecated {
			return Pipeline{}, 0, fault.At(fault.Unsupported, "filter pipeline", int64(off), "filter %v", id)
		}
		want := id.configSize(version)
		if int64(size) != int64(want) || len(b)-off-5 < want {
			return bad(off+1, "%d bytes of configuration for %v, %d expected", size, id, want)
		}
		filter := Filter{ID: id}
		if what := filter.configure(b[off+5:off+5+want], as); what != "" {
			return bad(off+5, "%v %s", id, what)
		}
		pipeline.Filters = append(pipeline.Filters, filter)
		off += 5 + want
	}
	return pipeline, off, nil
}

// configure reads the configuration of a filter. It returns the reason why it is wrong, or "".
func (f *Filter) configure(c []byte, as func(datatype uint8) (Elem, bool)) string {
	switch {
	case kinds[f.ID].compressor > 0:
		if c[0] != kinds[f.ID].compressor {
			return fmt.Sprintf("names compressor %d", c[0])
		}
		f.Level = int32(binary.LittleEndian.Uint32(c[1:]))
		if len(c) > 5 {
			elem, ok := as(c[5])
			if !ok || elem.Kind == Float {
				return fmt.Sprintf("takes values for datatype %d", c[5])
			}
			f.As = elem
		}
	case f.ID == BitWidth || f.ID == PositiveDelta:
		f.Window = binary.LittleEndian.Uint32(c)
	case f.ID == ScaleFloat:
		f.Scale, f.Offset = math.Float64frombits(cast.Uint(c, 8)), math.Float64frombits(cast.Uint(c[8:], 8))
		switch width := cast.Uint(c[16:], 8); width {
		case 1, 2, 4, 8:
			f.Width = int(width)
		default:
			return fmt.Sprintf("has integers of %d bytes", width)
		}
	}
	return ""
}

// after returns the type of the filter's output for values of e, for the filters that a writer applies after it.
func (f Filter) after(e Elem) Elem {
	switch {
	case f.ID == ScaleFloat:
		return Elem{Kind: Signed, Size: f.Width, Cell: e.Cell}
	case f.ID == XOR:
		return Elem{Kind: Signed, Size: e.Size, Cell: e.Cell}
	case f.ID.delta() && f.As.Size > 0:
		return Elem{Kind: f.As.Kind, Size: f.As.Size, Cell: e.Cell}
	}
	return e
}

// With returns the pipeline with one more filter at its end.
func (p Pipeline) With(f Filter) Pipeline {
	longer := Pipeline{MaxChunk: p.MaxChunk, Filters: make([]Filter, 0, len(p.Filters)+1)}
	longer.Filters = append(append(longer.Filters, p.Filters...), f)
	return longer
}

// Has reports whether the pipeline has a filter.
func (p Pipeline) Has(id ID) bool {
	return slices.ContainsFunc(p.Filters, func(f Filter) bool { return f.ID == id })
}

// maxData limits the bytes that a chunk of n decoded bytes may have between two filters, and
// maxMeta their metadata. Run lengths of single bytes take three bytes for each cell, and deltas in
// windows of one value five bytes of metadata for each value. The limit is tighter for chunks far
// larger than writers make, because a small file must not expand to many times the requested tile.
func maxData(n int) int64 { return min(4*int64(n)+64<<10, int64(n)+largeChunk) }
func maxMeta(n int) int64 { return min(16*int64(n)+64<<10, max(int64(n), largeChunk)) }

// largeChunk is about a thousand times TileDB's default chunk.
const largeChunk = 64 << 20

// u32 reads a number from the front of b.
func u32(b *[]byte) (uint32, bool) {
	if len(*b) < 4 {
		return 0, false
	}
	number := binary.LittleEndian.Uint32(*b)
	*b = (*b)[4:]
	return number, true
}

// take cuts n bytes from the front of b.
func take(b *[]byte, n uint32) ([]byte, bool) {
	if uint64(n) > uint64(len(*b)) {
		return nil, false
	}
	head := (*b)[:n:n]
	*b = (*b)[n:]
	return head, true
}
