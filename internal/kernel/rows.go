package kernel

// Lanes is how many bands Rows converts at a time.
const Lanes = 4

// Rows converts rows of samples to rows of elements, of one band or of up to Lanes bands that lie side by side in every
// pixel: y = f32(f32(x*A) + C), limited to [Lo, Hi] and rounded to To, to nearest even. The zero value is not ready.
type Rows struct {
	From, To Num // see RowsFrom and RowsTo
	Clip     bool
	Lo, Hi   float32
	// FillNoData writes Fill for nodata, which is a number of To.
	FillNoData bool
	Fill       float32
	// Past writes float32 past the caches where whole lines are written. Call StreamEnd afterwards.
	Past bool
	Band [Lanes]RowBand

	args rowArgs
}

// RowBand is how the samples of a band become elements.
type RowBand struct {
	A, C    float32
	Missing []Match // nodata: see RowsMatch
}

// RowArea says which samples are converted. Distances are in samples or elements.
type RowArea struct {
	Bands, Rows, Width int
	First              int        // the first band's first sample
	Step, Pitch        int        // from a sample to the next one of its row, and to the one in the next row
	Dst                [Lanes]int // each band's first element
	DstPitch           int        // from an element to the one in the next row
}

// below returns the area without its first rows.
func (a RowArea) below(rows int) RowArea {
	a.Rows -= rows
	a.First += rows * a.Pitch
	for k := range a.Dst {
		a.Dst[k] += rows * a.DstPitch
	}
	return a
}

// behind returns the area without its first columns.
func (a RowArea) behind(columns int) RowArea {
	a.Width -= columns
	a.First += columns * a.Step
	for k := range a.Dst {
		a.Dst[k] += columns
	}
	return a
}

// rowArgs are what the loops in assembly read and write. Every number is there eight times, as in a vector.
type rowArgs struct {
	a, c          [Lanes][8]float32
	first, second [Lanes][8]uint32 // what is nodata, or for integers noSample
	nan, match    [Lanes][8]uint32 // of floats: ones if NaN is nodata, ones if anything is
	fill          [8]float32
	fills         [8]uint32 // ones: fill is written
	lo, hi        [8]float32
	lanes         [16]uint32   // ones: the number is counted and, by some loops, stored
	dst, mask     [Lanes]*byte // of each band
	src           *byte
	form          int // which loop
	bands         int
	rows, width   int
	// Distances of rows and samples, in bytes.
	dstPitch, maskPitch, srcPitch, step int
	maskStep                            int // 8, or 0 without a mask
	limits                              int // 1: lo and hi are limits
	bad                                 int // the result
	//lint:ignore U1000 the assembly writes it
	noMask [16]byte
	// Addresses of the current row, at the end of the one behind the last. They are not pointers, because the garbage
	// collector refuses pointers to memory behind an object.
	//lint:ignore U1000 of the assembly
	srcRow uintptr
	//lint:ignore U1000 of the assembly
	maskRow [Lanes]uintptr
	apart   bool
}

// noSample is what no integer of at most 16 bits becomes in 32.
const noSample = 1 << 31

// RowsFrom reports whether Rows converts numbers of type t.
func RowsFrom(t Num) bool { return t == U8 || t == U16 || t == I16 || t == F32 }

// RowsTo reports whether Rows converts to numbers of type t.
func RowsTo(t Num) bool { return t == F32 || t == F16 || t == BF16 }

// RowsMatch reports whether Rows takes a list of nodata: at most two numbers beside NaN.
func RowsMatch(list []Match) bool {
	_, _, _, ok := twoOf(list)
	return ok
}

// twoOf returns the numbers of a list of matches, the second one equal to the first if there is no other.
func twoOf(list []Match) (pair [2]uint64, n int, nan, ok bool) {
	for _, m := range list {
		if m.NaN {
			nan = true
			continue
		}
		for _, bits := range [...]uint64{m.A, m.B} {
			switch {
			case n > 0 && bits == pair[0] || n > 1 && bits == pair[1]:
			case n == 2:
				return pair, n, nan, false
			case n == 0:
				pair, n = [2]uint64{bits, bits}, 1
			default:
				pair[1], n = bits, 2
			}
		}
	}
	return pair, n, nan, true
}

// Convert converts the samples of src to elements of dst. Where mask is not nil, it writes 0 for nodata and 1 for other
// samples. It returns how many samples are nodata. src, dst and mask hold all that the area has.
func (r *Rows) Convert(dst, mask, src []byte, area RowArea) (bad int) {
	if RowsFast(r.From, r.To, area.Step, area.Width) && area.Rows > 0 && area.Bands > 0 {
		return r.convertSIMD(dst, mask, src, area)
	}
	return r.convert(dst, mask, src, area)
}

// convert is Convert number by number.
func (r *Rows) convert(dst, mask, src []byte, area RowArea) (bad int) {
	fromSize, toSize := r.From.Size(), r.To.Size()
	for k := range area.Bands {
		band := &r.Band[k]
		for row := range area.Rows {
			sample := area.First + k + row*area.Pitch
			element := area.Dst[k] + row*area.DstPitch
			for range area.Width {
				valid := r.number(dst[element*toSize:], src[sample*fromSize:], band)
				if mask != nil {
					mask[element] = valid
				}
				bad += 1 - int(valid)
				sample += area.Step
				element++
			}
		}
	}
	return bad
}

// number converts a number, and returns 0 if it is nodata and else 1.
func (r *Rows) number(dst, src []byte, band *RowBand) (valid byte) {
	var number [1]float32
	LoadAffine(number[:], src, r.From, 1, band.A, band.C)
	if r.Clip {
		clip(number[:], r.Lo, r.Hi)
	}
	valid = 1
	for i := range band.Missing {
		var one [1]byte
		if Valid(one[:], src, r.From.Size(), 1, &band.Missing[i]); one[0] == 0 {
			valid = 0
		}
	}
	if valid == 0 && r.FillNoData {
		number[0] = r.Fill
	}
	Store(dst, number[:], r.To, 1)
	return valid
}
