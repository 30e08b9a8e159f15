package chunk

import (
	"errors"
	"math"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/dtype"
)

// dtypes is one past the last type.
const dtypes = dtype.End

// tog returns an index laid out as GDAL's COG driver does: position by position, 8 bytes between.
func tog(bands, down, across, tile int) *Index {
	x := &Index{
		Bands: bands, Height: down*tile - 3, Width: across*tile - 5, ChunkB: 1, ChunkH: tile, ChunkW: tile,
		DType: Uint16, Codec: Zstd, Predictor: Horizontal, Ranges: make([]Range, bands*down*across),
	}
	rnd := rand.New(rand.NewPCG(1, 2))
	off := int64(1000)
	for i := range x.Ranges {
		x.Ranges[i] = Range{off, 1000 + rnd.Int64N(30000)}
		off += x.Ranges[i].Len + 8
	}
	return x
}

func TestValidate(t *testing.T) {
	const fileSize, maxChunk = 1 << 30, 1 << 20
	if err := tog(3, 4, 5, 64).Validate(fileSize, maxChunk); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		kind fault.Kind
		edit func(x *Index)
	}{
		"dtype":          {fault.Corrupt, func(x *Index) { x.DType = dtypes }},
		"codec":          {fault.Corrupt, func(x *Index) { x.Codec = numCodecs }},
		"no predictor":   {fault.Corrupt, func(x *Index) { x.Predictor = 0 }},
		"predictor":      {fault.Corrupt, func(x *Index) { x.Predictor = 4 }},
		"axis order":     {fault.Corrupt, func(x *Index) { x.Inner = 2 }},
		"no bands":       {fault.Corrupt, func(x *Index) { x.Bands = 0 }},
		"bands":          {fault.Corrupt, func(x *Index) { x.Bands = MaxBands + 1 }},
		"height":         {fault.Corrupt, func(x *Index) { x.Height = MaxSide + 1 }},
		"no height":      {fault.Corrupt, func(x *Index) { x.Height = 0 }},
		"wide":           {fault.Corrupt, func(x *Index) { x.Width = MaxSide + 1 }},
		"tall chunk":     {fault.Corrupt, func(x *Index) { x.ChunkH = MaxSide + 1 }},
		"wide chunk":     {fault.Corrupt, func(x *Index) { x.ChunkW = MaxSide + 1 }},
		"chunk width":    {fault.Corrupt, func(x *Index) { x.ChunkW = 0 }},
		"alpha":          {fault.Corrupt, func(x *Index) { x.DType, x.Alpha = Float32, true }},
		"low bits":       {fault.Corrupt, func(x *Index) { x.DType, x.LowBits = Uint8, true }},
		"width":          {fault.Corrupt, func(x *Index) { x.Width = -1 }},
		"chunk height":   {fault.Corrupt, func(x *Index) { x.ChunkH = 0 }},
		"chunk bands":    {fault.Corrupt, func(x *Index) { x.ChunkB = 2 }},
		"no chunk bands": {fault.Corrupt, func(x *Index) { x.ChunkB = 0 }},
		"large chunk":    {fault.Limit, func(x *Index) { x.ChunkH, x.ChunkW = MaxSide, MaxSide }},
		"a range less":   {fault.Corrupt, func(x *Index) { x.Ranges = x.Ranges[1:] }},
		"a range more":   {fault.Corrupt, func(x *Index) { x.Ranges = append(x.Ranges, Range{1, 1}) }},
		"huge grid": {
			fault.Corrupt,
			func(x *Index) { x.Height, x.Width, x.ChunkH, x.ChunkW = MaxSide, MaxSide, 1, 1 },
		},
		"negative offset":     {fault.Corrupt, func(x *Index) { x.Ranges[7].Off = -1 }},
		"negative length":     {fault.Corrupt, func(x *Index) { x.Ranges[7].Len = -1 }},
		"overflow":            {fault.Corrupt, func(x *Index) { x.Ranges[7] = Range{math.MaxInt64, math.MaxInt64} }},
		"past the end":        {fault.Corrupt, func(x *Index) { x.Ranges[7].Off = fileSize }},
		"stored far too much": {fault.Limit, func(x *Index) { x.Ranges[7].Len = 1 << 20 }},
	} {
		x := tog(3, 4, 5, 64)
		c.edit(x)
		if err := x.Validate(fileSize, maxChunk); !errors.Is(err, c.kind) {
			t.Errorf("%s: %v, want %v", name, err, c.kind)
		}
	}
}

// TestNamesOfNumbersThatDoNotExist: what a file may have in place of a codec, an axis order or a dtype has a name in
// errors.
func TestNamesOfNumbersThatDoNotExist(t *testing.T) {
	for name, last := range map[string]interface{ String() string }{
		"codec": numCodecs - 1, "axis order": numInner - 1, "dtype": dtypes - 1} {
		if last.String() == "invalid" {
			t.Errorf("the last %s has no name", name)
		}
	}
	for name, beyond := range map[string]interface{ String() string }{
		"codec": numCodecs, "axis order": numInner, "dtype": dtypes} {
		if beyond.String() != "invalid" {
			t.Errorf("a %s that does not exist is called %s", name, beyond)
		}
	}
}

// TestIndexWithBlocks: the copy of an index has the blocks and all the rest, and the index itself stays as it is.
func TestIndexWithBlocks(t *testing.T) {
	x := Index{Bands: 3, DType: Int16, Ranges: []Range{{Off: 5, Len: 7}}}
	blocks := Blocks{Image: 7, Order: [3]uint8{2, 0, 1}}
	got := x.WithBlocks(blocks)
	want := x
	want.Blocks = &Blocks{Image: 7, Order: [3]uint8{2, 0, 1}}
	if blocks.Image = 8; !reflect.DeepEqual(*got, want) || x.Blocks != nil {
		t.Errorf("%+v of %+v", got, x)
	}
}

// TestCodecsThatDoNotExist: no chunk of an unknown codec is decoded in pieces, and it is taken for a codec of samples.
func TestCodecsThatDoNotExist(t *testing.T) {
	for _, c := range []Codec{numCodecs, numCodecs + 1} {
		if c.Streams() || !c.Samples() {
			t.Errorf("codec %d streams: %t, of samples: %t", c, c.Streams(), c.Samples())
		}
	}
}
