package draw

import (
	"encoding/binary"
	"image"
	"image/color"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/chaski-eo/chaski/format/chunk"
)

// TestStretch: a ramp of 0 … 100 has its percentiles at its values, so v becomes 255·(v-2)/96,
// clipped to 0 … 255.
func TestStretch(t *testing.T) {
	data := make([]byte, 101)
	for i := range data {
		data[i] = byte(i)
	}
	img, err := Render(Raster{DType: chunk.Uint8, Bands: 1, Height: 1, Width: 101, Data: data}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for v := range 101 {
		want := uint8(math.Round(255 * min(max(float64(v-2)/96, 0), 1)))
		if got := img.NRGBAAt(v, 0); got != (color.NRGBA{want, want, want, 255}) {
			t.Errorf("value %d is %v, want grey %d", v, got, want)
		}
	}
}

// TestBandsAreRedGreenBlue: the brightest pixel of each band has that band's colour only.
func TestBandsAreRedGreenBlue(t *testing.T) {
	const n = 4 * 25
	data := make([]byte, 3*n*2)
	for b := range 3 {
		for i := range n {
			v := uint16(100)
			if i/25 == b {
				v = 3000
			}
			binary.LittleEndian.PutUint16(data[(b*n+i)*2:], v)
		}
	}
	r := Raster{DType: chunk.Uint16, Bands: 3, Height: 4, Width: 25, Data: data}
	for _, bands := range [][]int{nil, {2, 0, 1}} {
		img, err := Render(r, Options{Bands: bands})
		if err != nil {
			t.Fatal(err)
		}
		if bands == nil {
			bands = []int{0, 1, 2}
		}
		for row := range 3 {
			want := color.NRGBA{A: 255}
			*[]*uint8{&want.R, &want.G, &want.B}[indexOf(bands, row)] = 255
			if got := img.NRGBAAt(3, row); got != want {
				t.Errorf("bands %v row %d is %v, want %v", bands, row, got, want)
			}
		}
	}
}

func indexOf(s []int, v int) int {
	for i, x := range s {
		if x == v {
			return i
		}
	}
	return -1
}

func TestMasksHaveOneColourAValue(t *testing.T) {
	data := []byte{0, 1, 2, 3, 3, 2, 1, 0}
	r := Raster{DType: chunk.Uint8, Bands: 1, Height: 2, Width: 4, Data: data}
	img, err := Render(r, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 4 {
		if a, b := img.NRGBAAt(i, 0), img.NRGBAAt(3-i, 1); a != b || a != Category(int64(i)) {
			t.Errorf("value %d is %v and %v", i, a, b)
		}
	}
	seen := map[color.NRGBA]bool{}
	for v := range int64(len(palette)) {
		seen[Category(v)] = true
	}
	if len(seen) != len(palette) || Category(-3).A != 255 {
		t.Errorf("%d colours for %d categories", len(seen), len(palette))
	}
	grey, err := Render(r, Options{Palette: Never})
	if err != nil {
		t.Fatal(err)
	}
	if c := grey.NRGBAAt(1, 0); c.R != c.G || c.G != c.B {
		t.Errorf("without a palette value 1 is %v", c)
	}
}

func TestNoDataIsTransparent(t *testing.T) {
	data := make([]byte, 0, 16)
	for _, v := range []float32{1, float32(math.NaN()), -9999, 2} {
		data = binary.LittleEndian.AppendUint32(data, math.Float32bits(v))
	}
	none := -9999.0
	img, err := Render(Raster{
		DType: chunk.Float32, Bands: 1, Height: 1, Width: 4, Data: data, NoData: &none,
	}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	masked, err := Render(Raster{
		DType: chunk.Float32, Bands: 1, Height: 1, Width: 4, Data: data, Valid: []byte{1, 1, 0, 1},
	}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for x, alpha := range []uint8{255, 0, 0, 255} {
		if a, b := img.NRGBAAt(x, 0).A, masked.NRGBAAt(x, 0).A; a != alpha || b != alpha {
			t.Errorf("pixel %d has alpha %d and, masked, %d, want %d", x, a, b, alpha)
		}
	}
}

// TestEveryTypeIsRead: the values 0 and 1 become black and white in every type.
func TestEveryTypeIsRead(t *testing.T) {
	for d := chunk.Uint8; d <= chunk.BFloat16; d++ {
		img, err := Render(Raster{
			DType: d, Bands: 1, Height: 1, Width: 2, Data: append(make([]byte, d.Size()), ones(d)...),
		}, Options{Palette: Never})
		if err != nil {
			t.Fatal(err)
		}
		if a, b := img.NRGBAAt(0, 0).R, img.NRGBAAt(1, 0).R; a != 0 || b != 255 {
			t.Errorf("%s: 0 and 1 are %d and %d", d, a, b)
		}
	}
}

// ones is the little-endian sample 1 (1+0i).
func ones(d chunk.DType) []byte {
	b := make([]byte, d.Size())
	switch d {
	case chunk.Float16, chunk.ComplexFloat16:
		binary.LittleEndian.PutUint16(b, 0x3C00)
	case chunk.BFloat16:
		binary.LittleEndian.PutUint16(b, 0x3F80)
	case chunk.Float32, chunk.Complex64:
		binary.LittleEndian.PutUint32(b, math.Float32bits(1))
	case chunk.Float64, chunk.Complex128:
		binary.LittleEndian.PutUint64(b, math.Float64bits(1))
	default:
		b[0] = 1
	}
	return b
}

func TestPicturesKeepWithinMaxSide(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 50 {
		h, w, side := 1+r.IntN(300), 1+r.IntN(300), 1+r.IntN(100)
		img, err := Render(Raster{
			DType: chunk.Uint8, Bands: 1, Height: h, Width: w, Data: make([]byte, h*w),
		}, Options{MaxSide: side})
		if err != nil {
			t.Fatal(err)
		}
		if b := img.Bounds(); b.Dx() > side || b.Dy() > side || b.Dx() < 1 || b.Dy() < 1 {
			t.Fatalf("%d by %d within %d gave %v", h, w, side, b)
		}
	}
}

func TestRenderRefuses(t *testing.T) {
	r := Raster{DType: chunk.Uint8, Bands: 2, Height: 3, Width: 3, Data: make([]byte, 18)}
	for _, band := range []int{-1, 2} {
		if _, err := Render(r, Options{Bands: []int{band}}); err == nil {
			t.Errorf("band %d of 2: no error", band)
		}
	}
}

func TestSheet(t *testing.T) {
	r := Raster{DType: chunk.Uint8, Bands: 1, Height: 2, Width: 3, Data: []byte{1, 1, 1, 1, 1, 1}}
	one, err := Render(r, Options{Palette: Always})
	if err != nil {
		t.Fatal(err)
	}
	s := Sheet([]*image.NRGBA{one, one, one}, 2)
	if s.Rect.Dx() != 10 || s.Rect.Dy() != 8 {
		t.Fatalf("sheet of %v", s.Rect)
	}
	for y := range 8 {
		for x := range 10 {
			inside := (x < 3 || x > 6) && (y < 2 || y > 5) && !(x > 6 && y > 5)
			if got := s.NRGBAAt(x, y) == Category(1); got != inside {
				t.Errorf("(%d, %d) is %v", x, y, s.NRGBAAt(x, y))
			}
		}
	}
}
