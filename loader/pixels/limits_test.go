package pixels

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/chaski-eo/chaski/einops"
	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/internal/crs/warp"
	"github.com/chaski-eo/chaski/loader/resources"
	"github.com/chaski-eo/chaski/loader/spec"
	"github.com/chaski-eo/chaski/shuffle"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store/catalog"
	"github.com/chaski-eo/chaski/tools/testkit/folder"
)

// bandArray is an array of images of one band, of one byte a pixel.
type bandArray struct {
	width   int
	samples []byte
	reads   *int
}

func (a *bandArray) Open() chunk.BlockReader { return a }

func (a *bandArray) ReadBox(_ context.Context, dst []byte, _ int64, b chunk.Box) error {
	*a.reads++
	var box []byte
	for y := b.Y0; y < b.Y1; y++ {
		box = append(box, a.samples[y*a.width:][b.X0:b.X1]...)
	}
	if copy(dst, box) != len(box) || len(dst) != len(box) {
		return fault.New(fault.Corrupt, "array", "%d bytes for %+v", len(dst), b)
	}
	return nil
}

// TestRowsOfAnArray: of the chunks of an array a reader reads only the rows in the window's box, and puts them where
// the whole chunk has them.
func TestRowsOfAnArray(t *testing.T) {
	const height, width = 11, 5
	array := &bandArray{width, make([]byte, height*width), new(int)}
	for i := range array.samples {
		array.samples[i] = byte(i + 1)
	}
	x := (&chunk.Index{Bands: 1, Height: height, Width: width, ChunkB: 1, ChunkH: 4, ChunkW: 3, DType: chunk.Uint8,
		Predictor: chunk.NoPredictor, CutEdge: true, CutRight: true}).WithBlocks(chunk.Blocks{Array: array})
	for top := range height {
		for bottom := top + 1; bottom <= height; bottom++ {
			r := NewReader(resources.Options{}.WithDefaults())
			sink := &samplesSink{x, make([]byte, height*width)}
			box := chunk.Box{B1: 1, Y0: top, Y1: bottom, X1: width}
			err := r.Read(t.Context(), catalog.Asset{URI: "a", Index: x}, box, nil, sink, nil)
			if err != nil || string(sink.out[top*width:bottom*width]) != string(array.samples[top*width:bottom*width]) {
				t.Fatalf("rows %d to %d: %v, %v", top, bottom-1, sink.out, err)
			}
		}
	}
}

// TestWindowsOfAnEndedContext: a window whose context has ended reads nothing, whether its chunks are decoded whole or
// in pieces, or are read of an array.
func TestWindowsOfAnEndedContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	plain := &chunk.Index{Bands: 1, Height: 4, Width: 3, ChunkB: 1, ChunkH: 4, ChunkW: 3, DType: chunk.Uint8,
		Predictor: chunk.NoPredictor, Ranges: []chunk.Range{{Len: 12}}}
	deflate, array := *plain, *plain
	deflate.Codec, array.Ranges = chunk.Deflate, nil
	blocks := &bandArray{3, make([]byte, 12), new(int)}
	for name, x := range map[string]*chunk.Index{"a chunk": plain, "pieces": &deflate,
		"an array": array.WithBlocks(chunk.Blocks{Array: blocks})} {
		file := meeting{source.Memory(make([]byte, 12)), new(sync.Mutex), new(int), new(int)}
		r := NewReader(resources.Options{Opener: file, MaxChunkBytes: 12}.WithDefaults())
		if name == "pieces" {
			r.maxChunk = 3
		}
		err := r.Read(ctx, catalog.Asset{URI: "a", Index: x}, chunk.Box{B1: 1, Y1: 4, X1: 3}, nil, Nowhere{}, nil)
		if !errors.Is(err, context.Canceled) || *file.most > 0 || *blocks.reads > 0 {
			t.Errorf("%s: %v; %d reads, of the array %d", name, err, *file.most, *blocks.reads)
		}
	}
}

// TestAssetsThatAreNotRead: a stack is no asset of its own, and a raster with a palette does not fit a field that
// blends pixels because other rasters have none.
func TestAssetsThatAreNotRead(t *testing.T) {
	r := NewReader(resources.Options{}.WithDefaults())
	x := &chunk.Index{Bands: 1, Height: 4, Width: 4, ChunkB: 1, ChunkH: 4, ChunkW: 4, DType: chunk.Uint8}
	stack := catalog.Asset{URI: "a.tif", Index: x, Parts: []catalog.Asset{{URI: "b.tif", Index: x}}}
	if err := r.Read(t.Context(), stack, chunk.Box{}, nil, nil, nil); fault.KindOf(err) != fault.Unsupported ||
		!strings.HasPrefix(err.Error(), "a.tif: ") {
		t.Errorf("a stack: %v", err)
	}
	f, err := NewRaster(spec.Field{Name: "image", DType: "float32", Layout: spec.DefaultLayout}, 0, x)
	if err != nil {
		t.Fatal(err)
	}
	f.SetSize(2, 2)
	classes := *x
	classes.Classes = true
	err = r.Resampled(t.Context(), catalog.Asset{URI: "a.tif", Index: &classes}, shuffle.Box{H: 4, W: 4},
		&Row{Field: f}, 1<<20)
	if fault.KindOf(err) != fault.Unsupported || !strings.HasPrefix(err.Error(), "a.tif: palette: ") {
		t.Errorf("a palette: %v", err)
	}
}

// TestAutomaticDTypes: pixels are float32 by default, but the numbers of classes stay as they are unless the field
// computes with them.
func TestAutomaticDTypes(t *testing.T) {
	one := spec.Normalize{Scale: []float64{2}, Offset: []float64{0}}
	for _, classes := range []bool{false, true} {
		x := small(chunk.Uint16, 0)
		x.Bands, x.Classes = 1, classes
		for name, field := range map[string]spec.Field{
			"": {}, "normalize": {Normalize: &one}, "physical": {Physical: new(true)},
		} {
			field.DType, field.Layout = spec.Auto, spec.DefaultLayout
			want, dtype := chunk.Float32, "float32"
			if classes && name == "" {
				want, dtype = chunk.Uint16, "native"
			}
			f, err := NewRaster(field, 0, x)
			if err != nil || f.To != want || f.DType != dtype {
				t.Errorf("classes %t, %s: %+v, %v; want %v", classes, name, f, err, want)
			}
		}
	}
}

// TestNodataOfAField: lists of nodata count in place of the value that a file declares, and lists without a number mean
// that no pixel is missing.
func TestNodataOfAField(t *testing.T) {
	value := 3.0
	plain, declared := small(chunk.Uint8, 0), small(chunk.Uint8, 0)
	declared.NoData = &value
	for _, c := range []struct {
		lists  [][]float64
		x      *chunk.Index
		nodata bool // counts
		want   bool
	}{
		{nil, plain, true, false}, {nil, declared, true, true}, {nil, declared, false, false},
		{[][]float64{{}, {7}}, plain, true, true}, {[][]float64{{}, {7}}, plain, false, false},
		{[][]float64{{}, {}}, declared, true, false},
	} {
		converters := &Converters{Nodata: c.nodata, Said: c.lists}
		if got := converters.Miss(c.x); got != c.want {
			t.Errorf("lists %v, declared %t, nodata %t: pixels may be missing: %t", c.lists, c.x == declared, c.nodata,
				got)
		}
	}
}

// TestNodataByBits: nodata may be the bits of a sample, which not all float64 have. Samples of those bits are missing.
func TestNodataByBits(t *testing.T) {
	const most = math.MaxUint64
	x := &chunk.Index{Bands: 1, Height: 1, Width: 2, ChunkB: 1, ChunkH: 1, ChunkW: 2, DType: chunk.Uint64,
		Predictor: chunk.NoPredictor, Ranges: []chunk.Range{{Len: 16}}}
	content := binary.LittleEndian.AppendUint64(nil, most)
	content = binary.LittleEndian.AppendUint64(content, most-1)
	r := NewReader(resources.Options{Opener: folder.OneFile(content)}.WithDefaults())
	c := &Converters{Base: einops.Convert{From: x.DType, To: x.DType}, Nodata: true}
	a := catalog.Asset{URI: "a", Index: x}
	for _, bits := range []uint64{most - 1, most, most - 2, most - 1} { // the converters keep casts apart
		x.NoDataBits = &bits
		if err := r.Planes(t.Context(), a, []int{0}, shuffle.Box{H: 1, W: 2}, c, 8); err != nil {
			t.Fatal(err)
		}
		for i, valid := range r.Resample.InValid {
			if there := bits != most-uint64(i); there != (valid == 1) || !c.Miss(x) {
				t.Errorf("nodata %x, sample %d: there %v", bits, i, valid)
			}
		}
	}
}

// TestScenesCopiedByOtherNumbers: a scene that has the bands of the field under other numbers is copied as one that is
// resampled: band j of the tensor is band bands[j] of the scene.
func TestScenesCopiedByOtherNumbers(t *testing.T) {
	x := &chunk.Index{Bands: 3, Height: 4, Width: 4, ChunkB: 1, ChunkH: 4, ChunkW: 4, DType: chunk.Uint8,
		Predictor: chunk.NoPredictor, Ranges: []chunk.Range{{Len: 16}, {Off: 16, Len: 16}, {Off: 32, Len: 16}}}
	content := bytes.Repeat([]byte{1}, 48)
	copy(content[16:], bytes.Repeat([]byte{2}, 16))
	copy(content[32:], bytes.Repeat([]byte{3}, 16))
	grid := [6]float64{500000, 10, 0, 5000000, 0, -10}
	scene := catalog.Asset{URI: "a.tif", Index: x, Place: catalog.NewPlace(32631, &grid, 4, 4)}
	f, err := NewRaster(spec.Field{DType: "native", Layout: spec.DefaultLayout, Bands: []int{0, 2}}, 0, x)
	if err != nil {
		t.Fatal(err)
	}
	f.SetSize(2, 2)
	mapping, err := OnGround(warp.Raster{CRS: sameCRS, Transform: grid, Height: 2, Width: 2}, &scene)
	if err != nil {
		t.Fatal(err)
	}
	plan, err := f.LayoutPattern.Plan(f.Axes(1), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, bands := range [][]int{{0, 2}, {2, 0}, {1, 1}, {2, 1}} {
		row := &Row{Field: f, Plan: plan, Dst: einops.Target{Data: make([]byte, plan.Len())}}
		r := NewReader(resources.Options{Opener: folder.OneFile(content)}.WithDefaults())
		mosaic := r.Mosaic(row, spec.MosaicFirst)
		if err := mosaic.Add(t.Context(), f, scene, bands, mapping, true, 1<<20); err != nil || !mosaic.done {
			t.Fatal(err, mosaic.done)
		}
		mosaic.End()
		for i, sample := range row.Dst.Data {
			if int(sample) != bands[i/4]+1 {
				t.Errorf("bands %v, element %d: %d", bands, i, sample)
			}
		}
	}
}

// TestMemoryOfMosaics: a mosaic holds all samples of a window and one plane of the next scene, with their validity. A
// mean has a sum of 8 bytes and a count of 4 for each sample, a median 4 bytes for each sample of each scene.
func TestMemoryOfMosaics(t *testing.T) {
	const bands, height, width, scenes = 3, 5, 7, 6
	x := small(chunk.Uint8, 0)
	rules := map[string]int64{spec.MosaicFirst: 0, spec.MosaicMean: 8 + 4, spec.MosaicMedian: 4 * scenes}
	for rule, each := range rules {
		f, err := NewRaster(spec.Field{DType: "float32", Layout: spec.DefaultLayout}, 0, x)
		if err != nil {
			t.Fatal(err)
		}
		f.SetSize(height, width)
		want := (each*bands + (4+1)*(bands+1)) * height * width
		if got := f.MosaicBytes(chunk.Box{}, 1<<20, rule, scenes); got != want {
			t.Errorf("%s without pixels of a scene: %d, want %d", rule, got, want)
		}
		in := chunk.Box{Y1: 2, X1: 9}
		want += bands * (4 + 1) * (2*9 + height*width)
		if got := f.MosaicBytes(in, 1<<20, rule, scenes); got != want {
			t.Errorf("%s of 2 by 9 pixels: %d, want %d", rule, got, want)
		}
	}
}

// TestMemoryOfReaders: arrays, and images whose stored bytes fill a run, have the bound of a run.
func TestMemoryOfReaders(t *testing.T) {
	x := &chunk.Index{Bands: 1, Height: 2, Width: 2, ChunkB: 1, ChunkH: 1, ChunkW: 2, DType: chunk.Uint8,
		Codec: chunk.Zstd}
	const decoded = 2 + chunk.Spare
	for first, want := range map[int64]int64{0: ReaderBytes + 1 + decoded, 9: ReaderBytes + 10 + decoded,
		MaxRun - 2: ReaderBytes + MaxRun - 1 + decoded, MaxRun - 1: MaxRun, 2 * MaxRun: MaxRun} {
		x.Ranges = []chunk.Range{{Len: first}, {Off: first, Len: 1}}
		if got := HeldFor(x, nil); got != want {
			t.Errorf("%d bytes of the first chunk: %d, want %d", first, got, want)
		}
	}
	if got := HeldFor(x.WithBlocks(chunk.Blocks{}), nil); got != MaxRun {
		t.Errorf("an array: %d", got)
	}
}

// TestFaultsOfMasks: a fault has the part of the mask before its own, and other errors stay as they are.
func TestFaultsOfMasks(t *testing.T) {
	other := errors.New("x")
	if InMask(nil) != nil || InMask(other) != other {
		t.Error("another error is a fault of the mask")
	}
	err := InMask(fault.At(fault.Corrupt, "chunk 3", 5, "cut"))
	if fault.KindOf(err) != fault.Corrupt || !strings.HasPrefix(err.Error(), "mask chunk 3 at 5: ") {
		t.Error(err)
	}
}

// TestRastersElsewhere: rasters of a sample lie on the same ground, unless the field ignores the ground.
func TestRastersElsewhere(t *testing.T) {
	at := func(x float64) *catalog.Asset {
		return &catalog.Asset{URI: "a", Index: small(chunk.Uint8, 0),
			Place: catalog.NewPlace(32631, &[6]float64{x, 10, 0, 5000000, 0, -10}, 4, 4)}
	}
	for ground, kinds := range map[string][2]fault.Kind{"": {0, fault.Misplaced}, spec.IgnoreGround: {0, 0}} {
		f := &Raster{Field: spec.Field{Ground: ground}}
		got := [2]fault.Kind{fault.KindOf(f.SameGround(at(500000), at(500000))),
			fault.KindOf(f.SameGround(at(500000), at(600000)))}
		if !slices.Equal(got[:], kinds[:]) {
			t.Errorf("ground %q: %v, want %v", ground, got, kinds)
		}
	}
}

// TestMedianOverTheLimit: a scene is refused if the samples of all scenes of a median are over the limit.
func TestMedianOverTheLimit(t *testing.T) {
	x := &chunk.Index{Bands: 1, Height: 4, Width: 4, ChunkB: 1, ChunkH: 4, ChunkW: 4, DType: chunk.Uint8}
	f, err := NewRaster(spec.Field{Name: "image", DType: "float32", Layout: spec.DefaultLayout}, 0, x)
	if err != nil {
		t.Fatal(err)
	}
	f.SetSize(4, 4)
	grid := [6]float64{500000, 10, 0, 5000000, 0, -10}
	scene := catalog.Asset{URI: "a.tif", Index: x, Place: catalog.NewPlace(32631, &grid, 4, 4)}
	mapping, err := OnGround(warp.Raster{CRS: sameCRS, Transform: grid, Height: 4, Width: 4}, &scene)
	if err != nil {
		t.Fatal(err)
	}
	mosaic := NewReader(resources.Options{}.WithDefaults()).Mosaic(&Row{Field: f}, spec.MosaicMedian)
	err = mosaic.Add(t.Context(), f, scene, []int{0}, mapping, true, 4*16-1)
	if fault.KindOf(err) != fault.Limit || !strings.Contains(err.Error(), "of 1 scenes") {
		t.Error(err)
	}
}
