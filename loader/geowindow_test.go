package loader_test

import (
	"encoding/binary"
	"math"
	"path/filepath"
	"testing"

	"github.com/chaski-eo/chaski/loader"
	"github.com/chaski-eo/chaski/loader/spec"
	"github.com/chaski-eo/chaski/shuffle"
)

// TestGeoWindow: windows of two scenes side by side have at each place the value that the scene has there, wherever
// the window lies, and none of them has a pixel outside.
func TestGeoWindow(t *testing.T) {
	dir := t.TempDir()
	const n = 64
	for i := range 2 {
		pix := make([]byte, n*n)
		for k := range pix {
			pix[k] = byte(1 + (k/n+k%n+i*n)%250) // row + column from the corner of the first scene
		}
		writeRaster(t, filepath.Join(dir, []string{"a.tif", "b.tif"}[i]), pix, n, 32630,
			[6]float64{500000 + float64(i*n*10), 10, 0, 4.6e6, 0, -10})
	}
	s := loader.Spec{Source: dir, Fields: []loader.Field{{Name: "image", DType: "native", Validity: "ok"}},
		BatchSize: 16, Shuffle: true, Seed: 3, Geo: true,
		Sampler: loader.Sampler{Kind: spec.GroundWindow,
			Ground: spec.Ground{SizeM: 160, Resolution: 10, PerEpoch: 64}}}
	e, err := loader.Open(t.Context(), s, loader.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	crossing := 0
	for step := range e.Steps() {
		b, err := e.Start(t.Context(), shuffle.StepTicket(0, step, 16, 0, 1), false).Wait(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		image, ok, at := b.Tensor("image"), b.Tensor("ok"), b.Tensor("geo.transform")
		for k := range b.Rows {
			f := floatsOf(at)[6*k:]
			x0, y0 := int(f[0]-500000)/10, int(4.6e6-f[3])/10
			if x0 < 0 || y0 < 0 || x0+16 > 2*n || y0+16 > n {
				t.Fatalf("row %d begins at %d, %d", k, y0, x0)
			}
			if x0 < n && x0+16 > n {
				crossing++
			}
			for i := range 256 {
				if want := byte(1 + (y0+i/16+x0+i%16)%250); image.Data[256*k+i] != want || ok.Data[256*k+i] != 1 {
					t.Fatalf("row %d at %d, %d: pixel %d is %d (%d), want %d", k, y0, x0, i, image.Data[256*k+i],
						ok.Data[256*k+i], want)
				}
			}
		}
		b.Release()
	}
	if crossing < 5 {
		t.Errorf("%d windows lie in both scenes", crossing)
	}
}

// floatsOf returns the numbers of a tensor of float64.
func floatsOf(t *loader.Tensor) []float64 {
	out := make([]float64, len(t.Data)/8)
	for i := range out {
		out[i] = math.Float64frombits(binary.LittleEndian.Uint64(t.Data[8*i:]))
	}
	return out
}
