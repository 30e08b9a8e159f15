package pixels

import (
	"bytes"
	"compress/zlib"
	"context"
	"encoding/binary"
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/chaski-eo/chaski/einops"
	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/loader/resources"
	"github.com/chaski-eo/chaski/loader/spec"
	"github.com/chaski-eo/chaski/shuffle"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store/catalog"
	_ "github.com/chaski-eo/chaski/tiff" // decodes DEFLATE
	"github.com/chaski-eo/chaski/tools/testkit/folder"
	_ "github.com/chaski-eo/chaski/tools/testkit/seed" // random cases are the same in every run
)

// image is a small raster with all of its samples, which a slow reader takes one by one.
type image struct {
	asset   catalog.Asset
	file    []byte
	beside  []byte    // the file of the mask, if that is another one
	samples []float64 // by band, row and column, alpha among the bands
	mask    []byte    // by band, row and column; one band counts for all; nil: no mask
	numbers int       // samples are from 0 to numbers-1, times unit
	unit    int       // of uint16 so large that low bytes do not tell samples apart
}

// Open opens the image and its mask.
func (m *image) Open(ctx context.Context, uri string) (source.Reader, error) {
	if uri == "mask" {
		return folder.OneFile(m.beside).Open(ctx, uri)
	}
	return folder.OneFile(m.file).Open(ctx, uri)
}

// at returns a sample, and whether it is there.
func (m *image) at(b, y, x int) (value float64, valid bool) {
	index := m.asset.Index
	if y < 0 || y >= index.Height || x < 0 || x >= index.Width {
		return 0, false
	}
	pixel, plane := y*index.Width+x, index.Height*index.Width
	value, valid = m.samples[b*plane+pixel], true
	switch {
	case index.Mask != nil:
		valid = m.mask[b%index.Mask.Bands*plane+pixel] != 0
	case index.NoData != nil:
		valid = value != *index.NoData
	case index.Alpha:
		valid = m.samples[(index.Bands-1)*plane+pixel] != 0
	}
	return value, valid
}

// drawGrid draws the chunks of an index that has bands, height, width and dtype.
func drawGrid(t *rapid.T, x *chunk.Index, name string) {
	x.ChunkB, x.Predictor = 1, chunk.NoPredictor
	if rapid.Bool().Draw(t, name+" bands together") {
		x.ChunkB = x.Bands
		if rapid.Bool().Draw(t, name+" bands in groups") && x.Times == 0 {
			x.ChunkB = (x.Bands + 1) / 2
		}
		orders := []chunk.Inner{chunk.BYX, chunk.YXB}
		if x.Times > 0 && x.Times < x.Bands {
			orders = append(orders, chunk.BTYX, chunk.YXBT, chunk.BYXT, chunk.TYXB)
		}
		if x.Bands > 1 {
			x.Inner = rapid.SampledFrom(orders).Draw(t, name+" order")
		}
	}
	x.ChunkH, x.ChunkW = rapid.IntRange(1, 7).Draw(t, name+" rows"), rapid.IntRange(1, 7).Draw(t, name+" columns")
	x.CutEdge, x.CutRight = rapid.Bool().Draw(t, name+" cut edge"), rapid.Bool().Draw(t, name+" cut right")
	if rapid.Bool().Draw(t, name+" compressed") {
		x.Codec = chunk.Deflate
	}
}

// deflater is made once, since that takes longer than a test.
var deflater = zlib.NewWriter(nil)

// encode appends the chunks of an index to a file. sample returns a sample of the image, sparse whether a chunk is left
// out.
func encode(t *rapid.T, file []byte, x *chunk.Index, sample func(b, y, x int) float64, sparse func(i int) bool) []byte {
	for i := range x.Across() * x.Down() * x.Groups() {
		file = append(file, 0xee) // between chunks
		if sparse(i) {
			x.Ranges = append(x.Ranges, chunk.Range{})
			continue
		}
		box := x.Box(i)
		bands, height, width := x.DecodedShape(i)
		raw := make([]byte, x.DecodedBytes(i))
		for b := range bands {
			for row := range height {
				for column := range width {
					value := float64(1) // past the edge of the image
					if box.B0+b < x.Bands && box.Y0+row < x.Height && box.X0+column < x.Width {
						value = sample(box.B0+b, box.Y0+row, box.X0+column)
					}
					put(raw, x.DType, placeIn(x, [3]int{bands, height, width}, [3]int{b, row, column}), value)
				}
			}
		}
		if x.Codec == chunk.Deflate {
			var out bytes.Buffer
			deflater.Reset(&out)
			_, err := deflater.Write(raw)
			if err = errors.Join(err, deflater.Close()); err != nil {
				t.Fatal(err)
			}
			raw = out.Bytes()
		}
		x.Ranges = append(x.Ranges, chunk.Range{Off: int64(len(file)), Len: int64(len(raw))})
		file = append(file, raw...)
	}
	return file
}

// placeIn returns the place of a sample in a chunk of so many planes, rows and columns, by the names of its axes.
func placeIn(x *chunk.Index, shape, at [3]int) (pos int) {
	lengths := map[string]int{"b": shape[0], "y": shape[1], "x": shape[2]}
	places := map[string]int{"b": at[0], "y": at[1], "x": at[2]}
	if axes := x.Inner.String(); strings.Contains(axes, "t") {
		lengths["t"], lengths["b"] = x.Times, x.StepBands()
		places["t"], places["b"] = at[0]/x.StepBands(), at[0]%x.StepBands()
	}
	for axis := range strings.FieldsSeq(x.Inner.String()) {
		pos = pos*lengths[axis] + places[axis]
	}
	return pos
}

// put writes a number as sample pos.
func put(out []byte, d chunk.DType, pos int, value float64) {
	switch d {
	case chunk.Uint8:
		out[pos] = byte(value)
	case chunk.Uint16:
		binary.LittleEndian.PutUint16(out[2*pos:], uint16(value))
	case chunk.Int32:
		binary.LittleEndian.PutUint32(out[4*pos:], uint32(int32(value)))
	case chunk.Float32:
		binary.LittleEndian.PutUint32(out[4*pos:], math.Float32bits(float32(value)))
	}
}

// number reads sample pos.
func number(data []byte, d chunk.DType, pos int) float64 {
	switch d {
	case chunk.Uint8:
		return float64(data[pos])
	case chunk.Uint16:
		return float64(binary.LittleEndian.Uint16(data[2*pos:]))
	case chunk.Int32:
		return float64(int32(binary.LittleEndian.Uint32(data[4*pos:])))
	}
	return float64(math.Float32frombits(binary.LittleEndian.Uint32(data[4*pos:])))
}

// dyadics are numbers whose products and sums with samples are exact.
var dyadics = rapid.SampledFrom([]float64{0.5, 1, 2, -1, 4, -0.25})

// dtypes are the dtypes of images.
var dtypes = rapid.SampledFrom([]chunk.DType{chunk.Uint8, chunk.Uint16, chunk.Int32, chunk.Float32})

// drawImage draws an image of some dtype, with or without nodata, mask or alpha.
func drawImage(t *rapid.T, dtype chunk.DType) *image { return drawSteps(t, dtype, 0) }

// drawSteps draws an image with steps of time, or without time if there are 0.
func drawSteps(t *rapid.T, dtype chunk.DType, times int) *image {
	x := &chunk.Index{
		Bands: rapid.IntRange(1, 4).Draw(t, "bands") * max(times, 1), Height: rapid.IntRange(1, 14).Draw(t, "height"),
		Width: rapid.IntRange(1, 14).Draw(t, "width"), DType: dtype, Times: times,
	}
	m := &image{asset: catalog.Asset{URI: "f", Index: x}, numbers: rapid.IntRange(2, 200).Draw(t, "numbers"), unit: 1}
	if dtype == chunk.Uint16 {
		m.unit = 128
	}
	source, random := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "samples"), 0)), make([]byte, 997)
	for i := range random {
		random[i] = byte(source.Uint32())
	}
	drawGrid(t, x, "image")
	switch missing := rapid.IntRange(0, 4).Draw(t, "missing"); {
	case missing == 1 || missing == 2:
		value := float64(rapid.IntRange(0, 2).Draw(t, "nodata") * m.unit)
		x.NoData = &value
	case missing == 3 && times == 0:
		x.Mask = &chunk.Index{Bands: rapid.SampledFrom([]int{1, x.Bands}).Draw(t, "mask bands"), Height: x.Height,
			Width: x.Width, DType: chunk.Uint8}
		drawGrid(t, x.Mask, "mask")
	}
	together := x.ChunkB == 1 || x.ChunkB == x.Bands // with alpha, as in a TIFF
	x.Alpha = times == 0 && x.Bands > 1 && together && x.DType.Size() < 4 && rapid.Bool().Draw(t, "alpha")
	plane := x.Height * x.Width
	m.samples = make([]float64, x.Bands*plane)
	for i := range m.samples {
		m.samples[i] = float64(int(random[i%len(random)]) % m.numbers * m.unit)
		if x.Alpha && i >= (x.Bands-1)*plane { // of 16 bits also where one byte is 0
			m.samples[i] = [...]float64{0, 1, 0, 255, math.Ldexp(1, 8*x.DType.Size()-1)}[int(random[i%len(random)])%5]
		}
	}
	if rapid.Bool().Draw(t, "has units") {
		for range x.StepBands() {
			x.Physical = append(x.Physical, chunk.Linear{Scale: dyadics.Draw(t, "file's scale"),
				Offset: dyadics.Draw(t, "file's offset")})
		}
		x.Physical = chunk.Linears(x.Physical)
	}
	holes := rapid.Uint64().Draw(t, "sparse") & rapid.Uint64().Draw(t, "sparse, too")
	m.file = encode(t, nil, x, func(b, y, c int) float64 {
		return m.samples[b*plane+y*x.Width+c]
	}, func(i int) bool { return holes>>(i%64)&1 == 1 })
	for i, place := range x.Ranges {
		if place.Len > 0 {
			continue
		}
		box, value := x.Box(i), float64(0)
		if x.NoData != nil {
			value = *x.NoData
		}
		for b := box.B0; b < box.B1; b++ {
			for y := box.Y0; y < box.Y1; y++ {
				for c := box.X0; c < box.X1; c++ {
					m.samples[b*plane+y*x.Width+c] = value
				}
			}
		}
	}
	if mask := x.Mask; mask != nil {
		m.mask = make([]byte, mask.Bands*plane)
		for i := range m.mask {
			m.mask[i] = [...]byte{0, 0, 1, 255}[random[(i+400)%len(random)]%4]
			if random[(i/x.Width+200)%len(random)]%3 == 0 { // a whole row
				m.mask[i] = 0
			}
		}
		file := &m.file
		if rapid.Bool().Draw(t, "mask beside") {
			file, m.asset.MaskFile = &m.beside, &catalog.Asset{URI: "mask", Index: mask}
		}
		*file = encode(t, *file, mask, func(b, y, c int) float64 {
			return float64(m.mask[b*plane+y*x.Width+c])
		}, func(int) bool { return false })
	}
	return m
}

// memoryArray is an array that has its samples in memory.
type memoryArray struct{ m *image }

func (a memoryArray) Open() chunk.BlockReader { return a }

func (a memoryArray) ReadBox(_ context.Context, dst []byte, number int64, b chunk.Box) error {
	x, pos := a.m.asset.Index, 0
	for band := b.B0; band < b.B1; band++ {
		for y := b.Y0; y < b.Y1; y++ {
			for column := b.X0; column < b.X1; column++ {
				put(dst, x.DType, pos, a.m.samples[(band*x.Height+y)*x.Width+column])
				pos++
			}
		}
	}
	if number != 7 || pos*x.DType.Size() != len(dst) {
		return fault.New(fault.Corrupt, "array", "image %d, %d bytes for %+v", number, len(dst), b)
	}
	return nil
}

// asArray makes the image one of an array, and returns its index.
func (m *image) asArray() *chunk.Index {
	x := *m.asset.Index
	x.Ranges, x.Inner, x.Codec, x.CutEdge, x.CutRight = nil, chunk.BYX, chunk.Raw, true, true
	m.asset.Index = x.WithBlocks(chunk.Blocks{Array: memoryArray{m}, Image: 7})
	return m.asset.Index
}

// checkPieces compares the memory that a reader holds for pieces with what was said before.
func checkPieces(t *rapid.T, r *Reader, x *chunk.Index) {
	pieces := x.InPieces(r.maxChunk)
	if pieces == nil || x.ChunkFits(r.maxChunk) || r.parts == nil {
		return
	}
	buffers := int64(r.parts.Size()) + int64(pieces.MaxDecodedBytes()) + chunk.Spare
	said := pieceBytes(x, pieces) - buffers
	if said < 60<<10 || said > 100<<10 || said != x.Codec.StreamBytes(maxWindow) { // 32 KiB and tables
		t.Fatalf("%d bytes for the decoder", said)
	}
	zstd := *x
	zstd.Codec = chunk.Zstd
	if said := pieceBytes(&zstd, pieces) - buffers - maxWindow; said < 1500<<10 || said > 4<<20 {
		t.Fatalf("%d bytes for the decoder of zstd", said)
	}
	if n := r.HeldBytes(); n < MaxRun {
		t.Fatalf("%d bytes are kept", n)
	}
}

// turned returns where a transform puts pixel (y, x) of a window.
func turned(turn shuffle.Element, win shuffle.Box, y, x int) (int, int) {
	if turn&shuffle.FlipX != 0 {
		x = win.W - 1 - x
	}
	if turn&shuffle.FlipY != 0 {
		y = win.H - 1 - y
	}
	if turn&shuffle.Transpose != 0 {
		y, x = x, y
	}
	return y, x
}

// drawField draws a field of images with an index, without a size, that is resampled in some way.
func drawField(t *rapid.T, x *chunk.Index, way string) (*Raster, error) {
	field := spec.Field{Name: "x", DType: rapid.SampledFrom([]string{"native", "float32"}).Draw(t, "to"), Resample: way}
	if rapid.Bool().Draw(t, "picks") {
		field.Bands = rapid.SliceOfN(rapid.IntRange(0, x.StepBands()-1), 1, 5).Draw(t, "picked")
	}
	if rapid.Bool().Draw(t, "fills") {
		fill := spec.Float(rapid.IntRange(0, 9).Draw(t, "fill"))
		field.Fill = &fill
	}
	field.Layout = rapid.SampledFrom([]string{"n b y x", "n y x b", "(n y) x b"}).Draw(t, "layout")
	if x.Times > 0 {
		field.Layout = rapid.SampledFrom([]string{"n t b y x", "n y x (b t)"}).Draw(t, "layout of steps")
		if rapid.Bool().Draw(t, "picks steps") {
			field.Times = rapid.SliceOfN(rapid.IntRange(0, x.Times-1), 1, 4).Draw(t, "steps")
		}
	}
	field.Validity = "valid"
	if field.DType == "float32" {
		bands := len(field.Bands)
		if bands == 0 {
			bands = x.DataBands()
		}
		field.Physical = new(rapid.Bool().Draw(t, "physical"))
		if rapid.Bool().Draw(t, "normalizes") {
			n := rapid.SampledFrom([]int{1, bands}).Draw(t, "numbers of bands")
			normalize := &spec.Normalize{Scale: rapid.SliceOfN(dyadics, n, n).Draw(t, "scale"),
				Offset: rapid.SliceOfN(dyadics, n, n).Draw(t, "offset")}
			if rapid.Bool().Draw(t, "clips") {
				normalize.Clip = &[2]spec.Float{-20, 30}
			}
			field.Normalize = normalize
		}
	}
	return NewRaster(field, 0, x)
}

// physical returns the physical value of a sample of a plane of an image, if the field asks for it.
func physical(f *Raster, x *chunk.Index, plane int, value float64) float64 {
	if !f.IsPhysical() || len(x.Physical) == 0 {
		return value
	}
	linear := x.Physical[min(plane%x.StepBands(), len(x.Physical)-1)]
	return value*linear.Scale + linear.Offset
}

// normalized returns the element of plane j of the tensor that has a valid value.
func normalized(f *Raster, j int, value float64) float64 {
	n := f.Normalize
	if n == nil {
		return value
	}
	band := min(j%(len(f.Picked)/max(f.TimeSteps, 1)), len(n.Scale)-1)
	value = value*n.Scale[band] + n.Offset[band]
	if n.Clip != nil {
		value = min(max(value, float64(n.Clip[0])), float64(n.Clip[1]))
	}
	return float64(float32(value))
}

// filled returns the element of a missing pixel by the spec of the field.
func filled(f *Raster) float64 {
	if f.Fill == nil {
		return 0
	}
	return float64(*f.Fill)
}

// tensor is the second of two rows of a tensor.
type tensor struct {
	row  *Row
	plan *einops.Plan
}

// drawBands draws the bands of an asset that a field takes, which may have other numbers than in the first asset.
func drawBands(t *rapid.T, f *Raster, x *chunk.Index) *PickedBands {
	if !rapid.Bool().Draw(t, "other numbers") {
		return f.PlanesOf(nil, x)
	}
	n := len(f.bandList)
	return f.PlanesOf(rapid.SliceOfN(rapid.IntRange(0, x.StepBands()-1), n, n).Draw(t, "numbers"), x)
}

// newTensor returns a row for windows, all bytes of which are dirty. bands are the bands of the asset; nil: the
// field's.
func newTensor(t *rapid.T, x *chunk.Index, f *Raster, bands *PickedBands, win shuffle.Box,
	turn shuffle.Element) *tensor {
	row := &Row{Field: f, Bands: bands, N: 1, Win: win, Transform: turn}
	plan, err := f.LayoutPattern.Plan(f.Axes(2), nil)
	if err != nil {
		t.Fatal(err)
	}
	if row.Cv, err = f.Final.Get(x, row.picked()); err != nil {
		t.Fatal(err)
	}
	row.Plan, row.Dst = plan, einops.Target{Data: bytes.Repeat([]byte{0x5a}, plan.Len()*f.To.Size()),
		Mask: bytes.Repeat([]byte{0x5a}, plan.Len())}
	return &tensor{row, plan}
}

// check compares the row with want, which returns an element and whether it is there, and looks that the other row is
// untouched. Without a fill the value of a missing pixel is not compared.
func (s *tensor) check(t *rapid.T, want func(j, y, x int) (float64, bool)) {
	f, row := s.row.Field, s.row
	if n := bytes.Count(row.Dst.Mask, []byte{0x5a}); n != s.plan.Len()/2 {
		t.Fatalf("%d elements of %d are untouched", n, s.plan.Len())
	}
	for j := range f.Picked {
		for y := range f.H {
			for x := range f.W {
				pos := s.plan.Offset("n", 1) + s.plan.Offset("y", y) + s.plan.Offset("x", x)
				if bands := len(f.Picked) / max(f.TimeSteps, 1); f.TimeAxis {
					pos += s.plan.Offset("t", j/bands) + s.plan.Offset("b", j%bands)
				} else {
					pos += s.plan.Offset("b", j)
				}
				value, valid := want(j, y, x)
				got, gotValid := number(row.Dst.Data, f.To, pos), row.Dst.Mask[pos]
				if gotValid > 1 || valid != (gotValid == 1) || got != value {
					t.Fatalf("band %d, row %d, column %d: %v, %v; want %v, %v", j, y, x, got, gotValid, value, valid)
				}
			}
		}
	}
}

// TestWindowsAgainstSlow: a window of any bands has the pixels of the image that are there, transformed, and the fill
// value elsewhere, whether chunks are shared, decoded whole or in pieces.
func TestWindowsAgainstSlow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := drawSteps(t, dtypes.Draw(t, "dtype"), rapid.SampledFrom([]int{0, 0, 2, 3}).Draw(t, "times"))
		x := m.asset.Index
		if x.Mask == nil && rapid.IntRange(0, 3).Draw(t, "array") == 0 {
			x = m.asArray()
		}
		f, err := drawField(t, x, "")
		if err != nil {
			t.Fatal(err)
		}
		win := shuffle.Box{
			Y: rapid.IntRange(-5, x.Height+2).Draw(t, "y"), X: rapid.IntRange(-5, x.Width+2).Draw(t, "x"),
			H: rapid.IntRange(1, 16).Draw(t, "h"), W: rapid.IntRange(1, 16).Draw(t, "w"),
		}
		turn := shuffle.Element(rapid.IntRange(0, 7).Draw(t, "turn"))
		f.SetSize(win.H, win.W)
		if turn&shuffle.Transpose != 0 {
			f.SetSize(win.W, win.H)
		}
		largest := x.MaxDecodedBytes()
		if x.Codec == chunk.Deflate && x.InPieces(largest/2) != nil && rapid.Bool().Draw(t, "pieces") {
			largest /= 2
		}
		if x.Mask != nil {
			largest = max(largest, x.Mask.MaxDecodedBytes())
		}
		r := NewReader(resources.Options{Opener: m, MaxChunkBytes: largest}.WithDefaults())
		if rapid.Bool().Draw(t, "share") {
			r.Share.Tiles = NewTileCache(int64(rapid.IntRange(0, 10*largest).Draw(t, "memory of tiles")))
		}
		in, bands := Inside(win, x.Height, x.Width), drawBands(t, f, x)
		for range 2 { // the second time chunks are there, or the reader's memory is dirty
			s := newTensor(t, x, f, bands, win, turn)
			s.row.Pad(in)
			if in.Y0 < in.Y1 && in.X0 < in.X1 {
				err := r.Read(t.Context(), m.asset, in, bands.Picked, s.row, s.row.Masked(f.Final, in))
				if err != nil {
					t.Fatal(err)
				}
			}
			checkPieces(t, r, x)
			want := map[[3]int]float64{}
			there := map[[3]int]bool{}
			for j, b := range bands.Picked {
				for y := range win.H {
					for c := range win.W {
						value, valid := m.at(b, win.Y+y, win.X+c)
						outside := win.Y+y < 0 || win.X+c < 0 || win.Y+y >= x.Height || win.X+c >= x.Width
						if !valid && (outside || f.Final.Base.FillNoData) {
							value = filled(f)
						} else {
							value = normalized(f, j, physical(f, x, b, value))
						}
						ty, tx := turned(turn, win, y, c)
						want[[3]int{j, ty, tx}], there[[3]int{j, ty, tx}] = value, valid
					}
				}
			}
			s.check(t, func(j, y, x int) (float64, bool) { return want[[3]int{j, y, x}], there[[3]int{j, y, x}] })
		}
	})
}
