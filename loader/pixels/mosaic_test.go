package pixels

import (
	"bytes"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/internal/cast"
	"github.com/chaski-eo/chaski/internal/crs/warp"
	"github.com/chaski-eo/chaski/loader/spec"
	"github.com/chaski-eo/chaski/store/catalog"
)

// TestGather: samples of each size are those that picks name, and 0 where they name none.
func TestGather(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, size := range []int{1, 2, 4, 8, 16} {
		in, out := cast.Aligned(100*size), cast.Aligned(60*size)
		for i := range in {
			in[i] = byte(r.Uint32())
		}
		for i := range out {
			out[i] = 9
		}
		s := &Resampler{picks: make([]uint32, 60)}
		var want []byte
		for i := range s.picks {
			if s.picks[i] = uint32(r.IntN(101)); i == len(s.picks)-1 { // behind it lies no memory
				s.picks[i] = 0
			}
			if pos := int(s.picks[i]); pos == 0 {
				want = append(want, make([]byte, size)...)
			} else {
				want = append(want, in[(pos-1)*size:pos*size]...)
			}
		}
		if s.gather(out, in, size); !bytes.Equal(out, want) {
			t.Errorf("size %d: got %v, want %v", size, out, want)
		}
	}
}

// TestMerge: a missing sample comes from the next scene; one missing in both keeps what is stored, if that is not 0.
func TestMerge(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for _, share := range []int{1, 2, 9} { // one sample in so many is missing
		const n = 300
		bytesOf := func() []byte { // runs of a value, among them of 0
			out := make([]byte, 2*n)
			for i := range out {
				out[i] = byte(r.IntN(3))
			}
			return out
		}
		seen := func() []byte {
			out := make([]byte, n)
			for i := range out {
				out[i] = byte(min(r.IntN(share+1), 1))
			}
			return out
		}
		out, valid, next, nextValid := bytesOf(), seen(), bytesOf(), seen()
		wantOut, wantValid, want := bytes.Clone(out), bytes.Clone(valid), 0
		for i := range n {
			sample := wantOut[2*i : 2*i+2]
			if valid[i] == 0 && (nextValid[i] == 1 || sample[0] == 0 && sample[1] == 0) {
				copy(sample, next[2*i:])
				wantValid[i] = nextValid[i]
				want += int(nextValid[i])
			}
		}
		got := merge(out, valid, next, nextValid, 2)
		if got != want || !bytes.Equal(out, wantOut) || !bytes.Equal(valid, wantValid) {
			t.Errorf("one in %d is missing: got %d samples, want %d", share, got, want)
		}
	}
}

// TestScenesThatAreCopied: pixels of a scene go straight into the batch if they are all pixels of the window, if no
// other scene can have those that are missing, if the mask that they have is read, and if float32 has all numbers of
// the dtype. Physical values are never copied.
func TestScenesThatAreCopied(t *testing.T) {
	fill, nodata := spec.Float(3), 7.0
	exact := map[chunk.DType]bool{chunk.Uint8: true, chunk.Int16: true, chunk.Float32: true, chunk.Int32: false,
		chunk.Float64: false}
	for dtype, exact := range exact {
		for bits := range 1 << 7 {
			has := func(bit int) bool { return bits>>bit&1 == 1 }
			field := spec.Field{Name: "x", DType: "native", Layout: spec.DefaultLayout, Resample: spec.Nearest}
			blends, last, physical := has(0), has(1), has(2)
			if blends {
				field.DType, field.Resample = "float32", spec.Bilinear
			}
			if field.Physical = new(physical && blends); has(3) {
				field.Fill = &fill
			}
			if has(4) {
				field.Validity = "v"
			}
			x := small(dtype, 0)
			if has(5) {
				x.NoData = &nodata
			}
			if has(6) {
				x.Mask = small(chunk.Uint8, 0)
			}
			f, err := NewRaster(field, 0, x)
			if err != nil || f.Blends != blends {
				t.Fatal(err, f.Blends)
			}
			f.OnGround()
			f.SetSize(2, 3)
			// NaN is a missing pixel if there is a fill or a validity tensor, and no mask.
			whole := !has(5) && !has(6) && (dtype != chunk.Float32 && dtype != chunk.Float64 || !has(3) && !has(4))
			marks := blends || has(3) || has(4)
			want := !field.IsPhysical() && (whole || last) && (!has(6) || marks) && (exact || !blends)
			boxes := []chunk.Box{{Y1: 2, X1: 3}, {Y0: 1, Y1: 2, X1: 3}, {Y1: 2, X0: 1, X1: 3},
				{Y1: 1, X1: 3}, {Y1: 2, X1: 2}, {Y0: 1, X0: 1, Y1: 3, X1: 4}}
			for _, in := range boxes {
				want := want && in.Y1-in.Y0 == 2 && in.X1-in.X0 == 3
				if f.copies(x, in, last) != want {
					t.Errorf("%+v of %v, nodata %v, mask %v, the last scene %v: %+v is copied: %v", field, dtype,
						has(5), has(6), last, in, !want)
				}
			}
		}
	}
}

// TestScenesOnGround: a window on the grid of a scene has its pixels, some rows and columns further. A scene without a
// place, or with a CRS that is not known, has no pixels for it.
func TestScenesOnGround(t *testing.T) {
	grid := func(y, x float64) *[6]float64 { return &[6]float64{500000 + 10*x, 10, 0, 5000000 - 10*y, 0, -10} }
	window := warp.Raster{CRS: sameCRS, Transform: *grid(3, 2), Height: 4, Width: 5}
	scene := catalog.Asset{URI: "a.tif", Index: &chunk.Index{Height: 20, Width: 30}}
	scene.Place = catalog.NewPlace(32631, grid(0, 0), 20, 30)
	m, err := OnGround(window, &scene)
	if err != nil {
		t.Fatal(err)
	}
	height, width := m.Raster()
	if y, x, ok := m.Shift(); !ok || y != 3 || x != 2 || height != 20 || width != 30 {
		t.Errorf("pixels %d, %d of %d by %d, on its grid %t", y, x, height, width, ok)
	}
	for _, place := range []*catalog.Place{nil, catalog.NewPlace(999999, grid(0, 0), 20, 30)} {
		scene.Place = place
		if _, err := OnGround(window, &scene); fault.KindOf(err) != fault.Unsupported ||
			!strings.HasPrefix(err.Error(), "a.tif: ") {
			t.Errorf("a scene at %v: %v", place, err)
		}
	}
	part := &Raster{casts: casts{raw: &Converters{}}}
	f := &Raster{casts: casts{raw: &Converters{}}, Parts: []*Raster{nil, part}}
	if f.OnGround(); !f.raw.Nodata || !part.raw.Nodata {
		t.Error("nodata does not count")
	}
}
