package ccitt

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/chaski-eo/chaski/fault"
)

// Codes of runs of up to 15 pixels (ITU-T T.4, table 2).
var (
	whiteRuns = [...]string{"00110101", "000111", "0111", "1000", "1011", "1100", "1110", "1111", "10011", "10100",
		"00111", "01000", "001000", "000011", "110100", "110101"}
	blackRuns = [...]string{"0000110111", "010", "11", "10", "011", "0011", "0010", "00011", "000101", "000100",
		"0000100", "0000101", "0000111", "00000100", "00000111", "000011000"}
	// verticals are the codes of a change at -3 to 3 pixels from the one above (ITU-T T.6, table 1).
	verticals = [...]string{"0000010", "000010", "010", "1", "011", "000011", "0000011"}
)

// change returns the first pixel after x whose colour differs from the one before it; with a colour, only changes to
// the other colour count. The pixel before a row is white.
func change(row []byte, x int, from byte, any bool) int {
	for x++; x < len(row); x++ {
		before := byte(0)
		if x > 0 {
			before = row[x-1]
		}
		if row[x] != before && (any || before == from) {
			return x
		}
	}
	return len(row)
}

// group4 codes rows of at most 15 pixels as section 2.2 of ITU-T T.6 says, one step after the other.
func group4(rows [][]byte) string {
	code, above := "", make([]byte, len(rows[0]))
	for _, row := range rows {
		for a0, colour := -1, byte(0); a0 < len(row); {
			a1, b1 := change(row, a0, colour, false), change(above, a0, colour, false)
			b2 := change(above, b1, 0, true)
			switch d := a1 - b1; {
			case b2 < a1:
				code += "0001"
				a0 = b2
			case d >= -3 && d <= 3:
				code += verticals[d+3]
				a0, colour = a1, 1-colour
			default:
				a2 := change(row, a1, 1-colour, false)
				first, second := whiteRuns, blackRuns
				if colour == 1 {
					first, second = second, first
				}
				code += "001" + first[a1-max(a0, 0)] + second[a2-a1]
				a0 = a2
			}
		}
		above = row
	}
	return code + "000000000001000000000001"
}

// packed returns bits as bytes, the first bit in the most significant place.
func packed(bits string) []byte {
	out := make([]byte, (len(bits)+7)/8)
	for i, b := range bits {
		out[i/8] |= byte(b-'0') << (7 - i%8)
	}
	return out
}

// TestGroup4: random rows come back, whatever codes they need, and cut streams are corrupt or short of rows.
func TestGroup4(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var decoder Decoder
	for range 2000 {
		width, height := 1+r.IntN(15), 1+r.IntN(6)
		rows, want := make([][]byte, height), make([]byte, 0, 2*height)
		likely := r.IntN(4)
		for y := range rows {
			rows[y] = make([]byte, width)
			for x := range rows[y] {
				if rows[y][x] = byte(r.IntN(2)); y > 0 && r.IntN(4) < likely {
					rows[y][x] = rows[y-1][x]
				}
			}
			bits := ""
			for _, v := range rows[y] {
				bits += string('0' + v)
			}
			want = append(want, packed(bits)...)
		}
		src, dst := packed(group4(rows)), make([]byte, len(want))
		if err := decoder.Decode(dst, src, Group4, width, height, height); err != nil || !bytes.Equal(dst, want) {
			t.Fatalf("%v: %x, want %x, %v", rows, dst, want, err)
		}
		cut := src[:r.IntN(max(len(src)-3, 1))]
		err := decoder.Decode(dst, cut, Group4, width, height, height)
		if err != nil && !errors.Is(err, fault.Corrupt) {
			t.Fatalf("cut to %d bytes: %v", len(cut), err)
		}
	}
}

// TestHuffman: rows of modified Huffman begin at bytes, white first.
func TestHuffman(t *testing.T) {
	rows := packed(whiteRuns[3] + blackRuns[5])                            // 3 white, 5 black
	rows = append(rows, packed(whiteRuns[0]+blackRuns[8])...)              // 8 black
	rows = append(rows, packed(whiteRuns[1]+blackRuns[1]+whiteRuns[6])...) // 1 white, 1 black, 6 white
	dst, decoder := make([]byte, 3), Decoder{}
	if err := decoder.Decode(dst, rows, Huffman, 8, 3, 3); err != nil || !bytes.Equal(dst, []byte{0x1f, 0xff, 0x40}) {
		t.Errorf("%x, %v", dst, err)
	}
	if err := decoder.Decode(dst, rows[:1], Huffman, 8, 3, 3); !errors.Is(err, fault.Corrupt) {
		t.Errorf("a cut stream: %v", err)
	}
}
