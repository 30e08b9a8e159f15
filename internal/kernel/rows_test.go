package kernel

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/chaski-eo/chaski/tools/testkit/guard"
)

// rowsCase draws a conversion and an area of it. src has what the area needs and no more.
func rowsCase(r *rand.Rand) (rows Rows, area RowArea, masked bool, samples, elements int) {
	rows.From = []Num{U8, U16, I16, F32}[r.IntN(4)]
	rows.To = []Num{F32, F16, BF16}[r.IntN(3)]
	rows.Clip, rows.Lo, rows.Hi = r.IntN(4) == 0, -1, 100
	rows.FillNoData, rows.Fill, rows.Past = r.IntN(2) == 0, -3, r.IntN(2) == 0
	area.Rows, area.Width = 1+r.IntN(5), 1+r.IntN(80)
	area.Bands, area.Step = 1, 1
	if r.IntN(3) > 0 {
		area.Bands = 1 + r.IntN(Lanes)
		area.Step = area.Bands + r.IntN(4)
	}
	gap := r.IntN(2) * r.IntN(5)
	area.Pitch = area.Step*area.Width + gap
	samples = area.Pitch*(area.Rows-1) + area.Step*(area.Width-1) + area.Bands
	if r.IntN(3) == 0 { // from the bottom up
		area.First, area.Pitch = area.Pitch*(area.Rows-1), -area.Pitch
	}
	area.DstPitch = area.Width + r.IntN(2)*r.IntN(40)
	if r.IntN(2) == 0 {
		area.DstPitch = (area.DstPitch + 15) &^ 15
	}
	plane := area.DstPitch*area.Rows + r.IntN(2)*r.IntN(40)
	if r.IntN(2) == 0 {
		plane = (plane + 15) &^ 15
	}
	first := r.IntN(20)
	for k := range area.Dst {
		area.Dst[k] = first + k*plane
	}
	elements = area.Dst[area.Bands-1] + area.DstPitch*(area.Rows-1) + area.Width
	for k := range rows.Band {
		band := &rows.Band[k]
		band.A, band.C = r.Float32()*2, r.Float32()*10-5
		if r.IntN(3) == 0 {
			band.A, band.C = 1, float32(math.Copysign(0, -1))
		}
		for range r.IntN(3) - r.IntN(2) {
			value := float64(r.IntN(6))
			if rows.From == F32 && r.IntN(2) == 0 {
				value = math.NaN()
			}
			match, _ := MatchValue(rows.From, value)
			if list := append(band.Missing, match); RowsMatch(list) {
				band.Missing = list
			}
		}
	}
	return rows, area, r.IntN(2) == 0, samples, elements
}

// fillSamples fills b with numbers of type t, many of them small, and NaN among floats.
func fillSamples(r *rand.Rand, b []byte, t Num) {
	for i := 0; i < len(b); i += t.Size() {
		putNumber(b[i:], t.Size(), uint64(r.IntN(6)))
		if r.IntN(3) == 0 {
			putNumber(b[i:], t.Size(), r.Uint64())
		}
		if t == F32 && r.IntN(3) > 0 {
			le.PutUint32(b[i:], math.Float32bits([]float32{0, 1, 2, 3.5, 1e6, -7, float32(math.Copysign(0, -1)),
				float32(math.NaN()), float32(math.Inf(1)), 5e-40}[r.IntN(10)]))
		}
	}
}

// checkRows compares a random conversion of samples that the source draws with the loop over single numbers. It
// reports whether assembly did it.
func checkRows(t *testing.T, r *rand.Rand, from, to, masks *guard.Room) (fast bool) {
	rows, area, masked, samples, elements := rowsCase(r)
	size := elements * rows.To.Size()
	back := r.IntN(2) == 0
	src := from.At(back, samples*rows.From.Size())
	fillSamples(r, src, rows.From)
	dst, want := to.At(back, size), bytes.Repeat([]byte{0xee}, size)
	copy(dst, want)
	var mask, wantMask []byte
	if masked {
		mask, wantMask = masks.At(back, elements), bytes.Repeat([]byte{0xdd}, elements)
		copy(mask, wantMask)
	}
	wantBad := rows.convert(want, wantMask, src, area)
	bad := rows.Convert(dst, mask, src, area)
	StreamEnd()
	what := fmt.Sprintf("from %d to %d, %+v, mask %v, nodata of %d and %d", rows.From, rows.To, area, masked, bad,
		wantBad)
	if bad != wantBad || !bytes.Equal(mask, wantMask) {
		t.Fatalf("%s: counts or masks differ:\n%v\n%v", what, mask, wantMask)
	}
	for k := 0; k < size; k += rows.To.Size() {
		got, wanted := number(dst[k:], rows.To.Size()), number(want[k:], rows.To.Size())
		if got != wanted {
			t.Fatalf("%s: element %d is %x, want %x", what, k/rows.To.Size(), got, wanted)
		}
	}
	return RowsFast(rows.From, rows.To, area.Step, area.Width)
}

// rowsRoom holds what rowsCase draws.
const rowsRoom = 1 << 15

// TestRowsAgainstTheTwin: loops in assembly give the bits of the loop over single numbers, for all types, bands,
// widths, distances and alignments, with nodata, limits and masks and without. They touch nothing else: pages that
// fault lie before or behind the samples, and elements between the rows stay as they are.
func TestRowsAgainstTheTwin(t *testing.T) {
	guard.Faults(t)
	from, to, masks := guard.New(t, rowsRoom), guard.New(t, rowsRoom), guard.New(t, rowsRoom)
	r := rng()
	fast := 0
	for range 4000 {
		if checkRows(t, r, from, to, masks) {
			fast++
		}
	}
	if RowsFast(U8, F32, 2, 8) && fast < 1000 {
		t.Errorf("%d of 4000 cases were for assembly", fast)
	}
}

// FuzzRows is the same with other seeds.
func FuzzRows(f *testing.F) {
	f.Add(uint64(1), uint64(2))
	f.Fuzz(func(t *testing.T, first, second uint64) {
		guard.Faults(t)
		from, to, masks := guard.New(t, rowsRoom), guard.New(t, rowsRoom), guard.New(t, rowsRoom)
		checkRows(t, rand.New(rand.NewPCG(first, second)), from, to, masks)
	})
}

// TestRowsMatch: two numbers beside NaN are a list of nodata that Rows takes.
func TestRowsMatch(t *testing.T) {
	of := func(values ...float64) (list []Match) {
		for _, value := range values {
			match, _ := MatchValue(F32, value)
			list = append(list, match)
		}
		return list
	}
	for _, list := range [][]Match{nil, of(1), of(1, 2), of(1, 2, 1, math.NaN()), of(0)} {
		if !RowsMatch(list) {
			t.Errorf("%+v is not taken", list)
		}
	}
	for _, list := range [][]Match{of(1, 2, 3), of(0, 1)} { // there are two zeros
		if RowsMatch(list) {
			t.Errorf("%+v is taken", list)
		}
	}
}
