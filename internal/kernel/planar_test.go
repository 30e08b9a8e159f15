package kernel

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/chaski-eo/chaski/tools/testkit/guard"
)

// TestPlanar: rows of residuals become the elements that Rows makes of the samples, which are predicted here one by
// one, and nothing outside of them is touched.
func TestPlanar(t *testing.T) {
	guard.Faults(t)
	from, to, line := guard.New(t, 1<<16), guard.New(t, 1<<17), guard.New(t, 1<<12)
	for seed := range uint64(2000) {
		r := rand.New(rand.NewPCG(5, seed))
		planar := Planar{From: []Num{U16, I16}[r.IntN(2)], To: F32, A: r.Float32(), C: r.Float32() - 5}
		if r.IntN(3) == 0 {
			planar.To = planar.From
		}
		rows, n := 1+r.IntN(6), 1+r.IntN(150)
		if r.IntN(2) == 0 {
			n = (n + 31) &^ 31
		}
		width := n * planar.To.Size()
		pitch := width + r.IntN(2)*64*r.IntN(3) + r.IntN(2)*r.IntN(9)
		all := pitch*(rows-1) + width
		samples, mapped := make([]byte, 2*n*(rows+1)), make([]byte, 2*n*rows)
		for i := range samples {
			samples[i] = byte(r.Uint32())
		}
		sample := func(row, x int) uint16 {
			if x < 0 {
				return 0
			}
			return le.Uint16(samples[2*(row*n+x):])
		}
		for row := range rows {
			for x := range n {
				over := int16(sample(row+1, x) - sample(row, x) - sample(row+1, x-1) + sample(row, x-1))
				le.PutUint16(mapped[2*(row*n+x):], uint16(over<<1^over>>15))
			}
		}
		back, first, down := r.IntN(2) == 0, 0, pitch
		if r.IntN(3) == 0 {
			first, down = pitch*(rows-1), -pitch
		}
		want, dst := make([]byte, all), to.At(back, all)
		for i := range want {
			want[i] = byte(i)
		}
		copy(dst, want)
		for row := range rows {
			place := want[first+row*down:][:width]
			source := samples[2*n*(row+1):][:2*n]
			if planar.To == planar.From {
				copy(place, source)
				continue
			}
			convert := Rows{From: planar.From, To: F32}
			convert.Band[0].A, convert.Band[0].C = planar.A, planar.C
			convert.convert(place, nil, source, RowArea{Bands: 1, Rows: 1, Width: n, Step: 1})
		}
		above := line.Put(back, samples[:2*n])
		if cut := r.IntN(rows); cut > 0 { // in two calls
			planar.Convert(dst, first, down, above, from.Put(back, mapped[:2*n*cut]), cut)
			mapped, first, rows = mapped[2*n*cut:], first+cut*down, rows-cut
		}
		planar.Convert(dst, first, down, above, from.Put(back, mapped), rows)
		StreamEnd()
		what := fmt.Sprintf("seed %d: %d rows of %d, %d to %d, pitch %d", seed, rows, n, planar.From, planar.To, down)
		if !bytes.Equal(dst, want) {
			t.Fatal(what, "differ")
		}
		if !bytes.Equal(above, samples[len(samples)-2*n:]) {
			t.Fatal(what, "leave another row above")
		}
	}
}
