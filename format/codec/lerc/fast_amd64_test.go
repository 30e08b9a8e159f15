//go:build !purego && !twins

package lerc

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// TestWide: vectors write what the loops of one sample write, for all widths and for offsets, scales and limits that
// damaged blobs may have, and leave the reader at the same place.
func TestWide(t *testing.T) {
	if !hasAVX2 {
		t.Skip("no AVX2")
	}
	rnd := rand.New(rand.NewPCG(1, 2))
	scales := []float64{0, 1, 3, 0.02, 1 << 20, -1, math.Inf(1), math.NaN()}
	limits := []float64{0, -5, 65535, 1e6, -1e9, 0.5, math.Inf(1), math.NaN()}
	offsets := []float64{0, 7, -40000, 1.25, 1 << 30, -1 << 31, math.NaN(), math.Copysign(0, -1)}
	vectors := 0
	for range 20000 {
		side := 8 << rnd.IntN(2)
		width, w := rnd.IntN(32), side*(1+rnd.IntN(2))
		kind := []Type{Int16, Uint16, Float32}[rnd.IntN(3)]
		count := side * side
		src := []byte{byte(1<<6 | width), byte(count), byte(count >> 8)}
		if count < 256 {
			src = []byte{byte(2<<6 | width), byte(count)}
		}
		for range (count*width+7)/8 + rnd.IntN(40) {
			src = append(src, byte(rnd.Uint32()))
		}
		pick := func(from []float64) float64 { return from[rnd.IntN(len(from))] }
		offset, scale, highest := pick(offsets), pick(scales), pick(limits)
		r := rect{0, side, w - side, w}
		run := func(vector bool) (out []byte, left int) {
			hasAVX2 = vector
			defer func() { hasAVX2 = true }()
			out = make([]byte, sizes[kind]*w*side)
			d := &Decoder{b: src, out: out, size: sizes[kind], maxs: []float64{highest}}
			d.s, d.h = Shape{w, side, 1, kind, false}, blobHeader{version: 4, maxError: scale / 2}
			d.view()
			if vector && d.wide(r, offset) {
				vectors++
			} else {
				d.stuffed(count)
				d.place(r, 0, offset, false, blockStuffed)
			}
			return out, len(d.b)
		}
		want, wantLeft := run(false)
		got, left := run(true)
		if !bytes.Equal(got, want) || left != wantLeft {
			t.Fatal(fmt.Sprintf("type %d, width %d, %v + n × %v up to %v:", kind, width, offset, scale, highest),
				got, want, left, wantLeft)
		}
	}
	if vectors < 1000 {
		t.Errorf("%d blocks by vectors", vectors)
	}
}
