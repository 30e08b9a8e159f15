package ccitt

import (
	"github.com/chaski-eo/chaski/fault"
)

// Scheme is how the rows of a stream are coded.
type Scheme uint8

// Schemes. Catalogs store the values: they must not change.
const (
	Huffman    Scheme = 2 // modified Huffman: rows begin at bytes, and there are no marks between them
	Group3     Scheme = 3 // every row in one dimension
	Group4     Scheme = 4 // every row refers to the row above
	Group3TwoD Scheme = 5 // a bit behind the mark of a row says whether it refers to the row above
)

// eolBits is the length of the mark at the end of a row: 11 zeros and a one.
const eolBits = 12

// Decoder decodes streams one after another. It keeps its memory, and is not safe for concurrent use.
type Decoder struct {
	in     bitReader
	width  int
	marked bool // rows of Group 3 begin with a mark
	// above and row hold where the colour changes in the row above and in this one, from the left: the first
	// change is to black. A change may equal the one before it, and none lies behind width.
	above, row []int32
}

func corrupt(row int, format string, args ...any) error {
	return fault.New(fault.Corrupt, "ccitt", fault.NoOffset, "row %d: "+format, append([]any{row}, args...)...)
}

// Decode fills the first rows rows of dst, each of (width+7)/8 bytes, from src. least of them must be there;
// the others become white if src ends before them.
func (d *Decoder) Decode(dst, src []byte, s Scheme, width, rows, least int) error {
	if s < Huffman || s > Group3TwoD || width < 1 || width > 1<<31-1 {
		return fault.New(fault.Corrupt, "ccitt", fault.NoOffset, "scheme %d, rows of %d pixels", s, width)
	}
	d.in, d.width, d.above = bitReader{src: src}, width, d.above[:0]
	defer func() { d.in.src = nil }()
	if s == Group3 || s == Group3TwoD {
		d.marked = d.in.atMark()
	}
	size := (width + 7) / 8
	for y := range rows {
		line := dst[y*size:][:size]
		clear(line)
		twoD, ended, err := d.begin(s, y)
		switch {
		case err != nil:
			return err
		case ended && y >= least:
			clear(dst[y*size : rows*size])
			return nil
		case ended:
			return corrupt(y, "the stream ends, %d rows are needed", least)
		}
		if err := d.decodeRow(twoD, y); err != nil {
			return err
		}
		paint(line, d.row, width)
		d.above, d.row = d.row, d.above
	}
	return nil
}

// begin passes over what stands before a row. twoD reports whether the row refers to the one above, ended
// whether the data end here.
func (d *Decoder) begin(s Scheme, y int) (twoD, ended bool, err error) {
	in := &d.in
	switch s {
	case Huffman:
		in.align()
	case Group4:
		return true, in.ended() || in.peek(eolBits) == 1, nil
	default:
		if d.marked {
			if !in.skipMark() {
				if in.onlyZeros() {
					return false, true, nil
				}
				return false, false, corrupt(y, "the mark before it is missing")
			}
			if s == Group3TwoD {
				twoD = in.peek(1) == 0
				in.drop(1)
			}
			if in.peek(eolBits) == 1 { // the marks at the end of a page
				return false, true, nil
			}
		} else if s == Group3TwoD {
			return false, false, corrupt(y, "the mark before it is missing")
		}
	}
	return twoD, in.ended(), nil
}

// decodeRow reads the changes of a row.
func (d *Decoder) decodeRow(twoD bool, y int) (err error) {
	d.row = d.row[:0]
	if twoD {
		err = d.decodeTwoD(y)
	} else {
		for pixel := 0; pixel < d.width && err == nil; {
			pixel, err = d.run(pixel, y)
		}
	}
	if err == nil && d.in.past() {
		err = corrupt(y, "the stream ends in it")
	}
	return err
}

// run reads one run from pixel a on, whose colour follows from the number of changes. It returns the pixel
// behind the run.
func (d *Decoder) run(pixel, y int) (int, error) {
	table := white
	if len(d.row)&1 == 1 {
		table = black
	}
	for {
		code := table[d.in.peek(runBits)]
		if code.bits == 0 {
			return 0, corrupt(y, "an invalid code after %d pixels", pixel)
		}
		d.in.drop(int(code.bits))
		if pixel += int(code.value); pixel > d.width {
			return 0, corrupt(y, "runs of more than the %d pixels of a row", d.width)
		}
		if code.value < 64 {
			d.row = append(d.row, int32(pixel))
			return pixel, nil
		}
		if d.in.past() {
			return 0, corrupt(y, "the stream ends in it")
		}
	}
}

// decodeTwoD reads the changes of a row that refers to the row above. The names of pixels are T.4's: a0 is the
// one that is decoded next, b1 the first change above behind a0 to the colour that a0 has not, b2 the next one.
func (d *Decoder) decodeTwoD(y int) error {
	a0, next := 0, 0 // next is the place of b1 among the changes above
	for first := true; a0 < d.width; first = false {
		mode := modes[d.in.peek(modeBits)]
		if mode.bits == 0 {
			return corrupt(y, "an invalid code after %d pixels", a0)
		}
		d.in.drop(int(mode.bits))
		next = d.nearest(next, a0, first)
		b1 := d.change(next)
		switch mode.value {
		case modePass:
			// The colour does not change below b2.
			if a0 = d.change(next + 1); a0 >= d.width {
				d.row = append(d.row, int32(d.width))
			}
		case modeHorizontal:
			var err error
			for range 2 {
				if a0, err = d.run(a0, y); err != nil {
					return err
				}
			}
		case modeExtension:
			return fault.New(fault.Unsupported, "ccitt", fault.NoOffset, "row %d: the uncompressed mode, or another "+
				"extension", y)
		default:
			a1 := b1 + int(mode.value) - modeVertical
			if changes := len(d.row); a1 < a0 || a1 > d.width || changes > 0 && a1 == int(d.row[changes-1]) {
				return corrupt(y, "a change of colour at pixel %d, after %d pixels", a1, a0)
			}
			a0 = a1
			d.row = append(d.row, int32(a0))
		}
		if d.in.past() {
			return corrupt(y, "the stream ends in it")
		}
	}
	return nil
}

// change returns where change k above lies, or the width behind the last change.
func (d *Decoder) change(k int) int {
	if k >= len(d.above) {
		return d.width
	}
	return int(d.above[k])
}

// nearest returns the place of b1 among the changes above. k is the place of the one before. Only the first
// pixel of a row may have b1 at itself, because a0 stands before the row then.
func (d *Decoder) nearest(k, a0 int, first bool) int {
	// A change above is to black if its place is even, as in the row itself.
	if k&1 != len(d.row)&1 {
		k++
	}
	// The search needs to go back too, because a0 moves left of b1 where a change lies left of the one above.
	for k >= 2 && d.change(k-2) > a0 {
		k -= 2
	}
	for k < len(d.above) && (d.change(k) < a0 || d.change(k) == a0 && !first) {
		k += 2
	}
	return k
}

// paint sets the black pixels of a white row. A run of black begins at every change of an even place.
func paint(line []byte, changes []int32, width int) {
	for i := 0; i < len(changes); i += 2 {
		start, end := int(changes[i]), width
		if i+1 < len(changes) {
			end = int(changes[i+1])
		}
		blacken(line, start, end)
	}
}

// blacken sets bits from up to end.
func blacken(line []byte, from, end int) {
	if from >= end {
		return
	}
	first, last := from>>3, (end-1)>>3
	head, tail := byte(0xff)>>(from&7), byte(0xff)<<(7-(end-1)&7)
	if first == last {
		line[first] |= head & tail
		return
	}
	line[first] |= head
	for i := first + 1; i < last; i++ {
		line[i] = 0xff
	}
	line[last] |= tail
}
