package zarr

import (
	"math/rand/v2"
	"os"
	"testing"

	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/format/chunk/runs"
	"github.com/chaski-eo/chaski/source/openers"
)

// BenchmarkWindows reads random windows of 256 by 256 pixels in all bands of the array (b, y, x) that CHASKI_ZARR_BENCH
// names, chunk by chunk as the loader does.
func BenchmarkWindows(b *testing.B) {
	path := os.Getenv("CHASKI_ZARR_BENCH")
	if path == "" {
		b.Skip("CHASKI_ZARR_BENCH names no array")
	}
	var files openers.Files
	defer files.Close()
	n, err := Open(b.Context(), &files, path, Options{})
	if err != nil {
		b.Fatal(err)
	}
	m, err := single(n.Array.Images(""))
	if err != nil {
		b.Fatal(err)
	}
	x, r := m.Index(0), m.Open()
	rnd := rand.New(rand.NewPCG(1, 2))
	dst := make([]byte, x.MaxDecodedBytes())
	var plan runs.Plan
	b.SetBytes(int64(x.Bands * 256 * 256 * x.DType.Size()))
	for b.Loop() {
		y0, x0 := rnd.IntN(x.Height-255), rnd.IntN(x.Width-255)
		box := chunk.Box{B1: x.Bands, Y0: y0, Y1: y0 + 256, X0: x0, X1: x0 + 256}
		plan.Reset(x, box, nil)
		var boxes []chunk.Box
		for _, i := range plan.Chunks {
			part := x.Box(i)
			part.Y0, part.Y1 = max(part.Y0, box.Y0), min(part.Y1, box.Y1)
			boxes = append(boxes, part)
		}
		if err := r.(chunk.Prefetcher).Ahead(b.Context(), 0, boxes); err != nil {
			b.Fatal(err)
		}
		for _, part := range boxes {
			n := (part.Y1 - part.Y0) * (part.X1 - part.X0) * x.DType.Size()
			if err := r.ReadBox(b.Context(), dst[:n], 0, part); err != nil {
				b.Fatal(err)
			}
		}
	}
}
