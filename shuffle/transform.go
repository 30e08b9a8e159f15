package shuffle

import (
	"fmt"
	"math/bits"

	"github.com/chaski-eo/chaski/internal/splitmix"
)

// Element is one of the eight symmetries of a square: bit 0 mirrors columns (x), bit 1 mirrors rows
// (y), and bit 2 swaps rows with columns, after the mirrors.
type Element uint8

// The elements. Rotations are as an image is seen, with y down.
const (
	Identity      Element = 0
	FlipX         Element = 1 // left and right change places
	FlipY         Element = 2 // top and bottom change places
	Rotate180     Element = 3
	Transpose     Element = 4 // about the main diagonal
	RotateLeft    Element = 5 // by 90 degrees, counter-clockwise
	RotateRight   Element = 6 // by 90 degrees, clockwise
	AntiTranspose Element = 7
)

// Elements is a set of elements, bit g for element g. The zero value means no transform at all.
type Elements uint8

// The sets in use. Flips keep the shape of a window that is not square.
const (
	FlipsX    Elements = 1<<Identity | 1<<FlipX
	FlipsY    Elements = 1<<Identity | 1<<FlipY
	Flips     Elements = FlipsX | FlipsY | 1<<Rotate180
	Rotations Elements = 1<<Identity | 1<<RotateLeft | 1<<Rotate180 | 1<<RotateRight
	D4        Elements = 255
)

// swaps are the elements that swap rows with columns: 4 to 7, which have bit 2.
const swaps Elements = 0xf0

// Swaps reports whether an element of the set swaps rows with columns.
func (s Elements) Swaps() bool { return s&swaps != 0 }

// At returns the element for position p of an epoch. All fields of a sample share it.
func (s Elements) At(seed, epoch uint64, p int64) Element {
	members := bits.OnesCount8(uint8(s))
	if members < 2 {
		// An empty set has 8 trailing zeros, and 8 & 7 is Identity.
		return Element(bits.TrailingZeros8(uint8(s)) & 7)
	}
	// Clearing the lowest bit k times leaves element number k lowest.
	for k := splitmix.Below(splitmix.Hash(seed, domainTransform, epoch, uint64(p)), members); k > 0; k-- {
		s &= s - 1
	}
	return Element(bits.TrailingZeros8(uint8(s)))
}

// Apply returns the new place of pixel (y, x) of a window of h by w pixels.
func (g Element) Apply(y, x, h, w int) (int, int) {
	if g&1 != 0 {
		x = w - 1 - x
	}
	if g&2 != 0 {
		y = h - 1 - y
	}
	if g&4 != 0 {
		y, x = x, y
	}
	return y, x
}

// String returns the name of the element.
func (g Element) String() string {
	names := [...]string{"identity", "flip x", "flip y", "rotate 180", "transpose", "rotate left",
		"rotate right", "anti-transpose"}
	if int(g) < len(names) {
		return names[g]
	}
	return fmt.Sprintf("element %d", uint8(g))
}
