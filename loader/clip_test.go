package loader

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/loader/spec"
	"github.com/chaski-eo/chaski/shuffle"
	"github.com/chaski-eo/chaski/shuffle/steps"
	"github.com/chaski-eo/chaski/store/catalog"
	"github.com/chaski-eo/chaski/tools/testkit/race"
)

// almostBytes returns chips of uint16 whose samples fit uint8, but for a few in some of them. Some chips have a nodata
// value that does not fit, some a mask.
func almostBytes(r *rand.Rand) *fakeTable {
	tab := &fakeTable{rows: 24, kinds: []catalog.Kind{catalog.Raster}}
	for row := range tab.rows {
		nodata := r.IntN(2) == 0
		a, _ := newFakeAsset(r, 2, 20, 24, 8, nodata, false)
		for i := range a.pix {
			if a.pix[i] != fakeNoData {
				a.pix[i] = 8 + a.pix[i]%248
			}
		}
		for range r.IntN(3) {
			a.pix[r.IntN(len(a.pix))] = uint16(256 + r.IntN(65280))
		}
		o := a.store()
		if r.IntN(2) == 0 {
			o = a.addMask(r, o, 8, 8, row%2 == 0)
		}
		tab.add(0, row, a, o)
	}
	return tab
}

// TestBytesOfWiderSamples promises that no sample becomes another number in a tensor of uint8 without Clip: a row with
// one that does not fit is bad, unless the sample is outside the window, or is filled.
func TestBytesOfWiderSamples(t *testing.T) {
	race.SkipCovered(t)
	ctx := context.Background()
	for seed := range uint64(40) {
		r := rand.New(rand.NewPCG(seed, 5))
		tab := almostBytes(r)
		f := Field{Name: "image", DType: "uint8", Pad: true,
			Layout: []string{"n b y x", "n x y b", "n (b y) x"}[r.IntN(3)]}
		if r.IntN(2) == 0 {
			f.Fill = fillOf(3)
		}
		if r.IntN(2) == 0 {
			f.Validity = "ok"
		}
		sp := Spec{Fields: []Field{f}, BatchSize: int(tab.rows), BadSamples: spec.BadSkip,
			Sampler: Sampler{Kind: spec.RandomWindow, Height: 9, Width: 26}}
		tk := steps.StepTicket(0, 0, int(tab.rows), 0, 1)
		got := wait(t, openFake(t, sp, tab, 3).Start(ctx, tk, false))
		sp.Fields[0].Clip = true
		clipped := wait(t, openFake(t, sp, tab, 3).Start(ctx, tk, false))
		bad := 0
		for k, row := range clipped.Samples {
			a := tab.assets[[2]int64{0, row}]
			box := shuffle.Window(shuffle.Crop{Position: clipped.Positions[k], Height: a.h, Width: a.w, H: 9, W: 26,
				AlignY: 1, AlignX: 1})
			fits := true
			for y := box.Y; y < min(a.h, box.Y+9); y++ {
				for x := box.X; x < min(a.w, box.X+26); x++ {
					for b := range a.b {
						filled := (f.Fill != nil || f.Validity != "") && !a.valid(b, y, x)
						fits = fits && (filled || a.at(b, y, x) < 256)
					}
				}
			}
			if got.Valid[k] != fits {
				t.Fatalf("seed %d, fill %v, validity %q: row %d is valid: %v; all samples fit: %v", seed, f.Fill != nil,
					f.Validity, k, got.Valid[k], fits)
			}
			if !fits {
				bad++
				continue
			}
			per := 2 * 9 * 26
			for i, tensor := range got.Tensors {
				if string(tensor.Data[k*per:][:per]) != string(clipped.Tensors[i].Data[k*per:][:per]) {
					t.Fatalf("seed %d: %s of row %d differs with Clip", seed, tensor.Name, k)
				}
			}
		}
		if bad != len(got.Bad) || len(clipped.Bad) > 0 {
			t.Fatalf("seed %d: %d and %d bad samples, want %d and 0", seed, len(got.Bad), len(clipped.Bad), bad)
		}
		for _, b := range got.Bad {
			if !errors.Is(b.Err, fault.Unsupported) {
				t.Fatalf("a bad sample has the error %v", b.Err)
			}
		}
		got.Release()
		clipped.Release()
	}
}

// TestBytesOfResampledSamples promises the same of values between samples.
func TestBytesOfResampledSamples(t *testing.T) {
	for _, method := range []string{spec.Nearest, spec.Bilinear} {
		for _, peak := range []uint16{200, 60000} {
			tab := &fakeTable{rows: 1, kinds: []catalog.Kind{catalog.Raster}}
			a, _ := newFakeAsset(rand.New(rand.NewPCG(1, 1)), 1, 20, 24, 8, false, false)
			for i := range a.pix {
				a.pix[i] = peak
			}
			tab.add(0, 0, a, a.store())
			e := openFake(t, Spec{BatchSize: 1, BadSamples: spec.BadSkip,
				Fields: []Field{{Name: "image", DType: "uint8", Resample: method}},
				Sampler: Sampler{Kind: spec.ResizedWindow, Height: 7, Width: 7,
					ResizedWindows: spec.ResizedWindows{ScaleMin: 1, ScaleMax: 2}}}, tab, 1)
			b := wait(t, e.Start(context.Background(), steps.StepTicket(0, 0, 1, 0, 1), false))
			if b.Valid[0] != (peak < 256) {
				t.Errorf("%s of %d: the row is valid: %v, %v", method, peak, b.Valid[0], fmt.Sprint(b.Bad))
			}
			b.Release()
		}
	}
}
