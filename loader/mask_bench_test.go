package loader

import (
	"context"
	"math/rand/v2"
	"testing"

	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/loader/spec"
	"github.com/chaski-eo/chaski/shuffle/steps"
	"github.com/chaski-eo/chaski/store/catalog"
)

// BenchmarkMask reads raw chips of (6, 256, 256) uint16 as float32 without a mask, with the mask of
// a disk, and with a random mask, the worst case.
func BenchmarkMask(b *testing.B) {
	for _, kind := range []string{"none", "disk", "noise"} {
		b.Run(kind, func(b *testing.B) {
			r := rand.New(rand.NewPCG(1, 1))
			tab := &fakeTable{rows: 1, kinds: []catalog.Kind{catalog.Raster}}
			a, o := newFakeAsset(r, 6, 256, 256, 256, false, false)
			if kind != "none" {
				m := &chunk.Index{
					Bands: 1, Height: 256, Width: 256, ChunkB: 1, ChunkH: 256,
					ChunkW: 256, DType: chunk.Uint8, Predictor: chunk.NoPredictor,
					Ranges: []chunk.Range{{Off: int64(len(o)), Len: 256 * 256}},
				}
				for i := range 256 * 256 {
					y, x, v := i/256-128, i%256-128, byte(r.UintN(2))
					if kind == "disk" {
						v = 0
						if y*y+x*x < 120*120 {
							v = 1
						}
					}
					o = append(o, v)
				}
				a.index.Mask = m
			}
			tab.add(0, 0, a, o)
			e := openFake(b, Spec{
				Fields: []Field{
					{
						Name: "image", DType: "float32",
						Normalize: &spec.Normalize{Scale: []float64{1}, Offset: []float64{0}},
					},
				},
				BatchSize: 1,
			}, tab, 1)
			b.SetBytes(6 * 256 * 256 * 2)
			b.ReportAllocs()
			for b.Loop() {
				wait(b, e.Start(context.Background(), steps.StepTicket(0, 0, 1, 0, 1), false)).Release()
			}
		})
	}
}
