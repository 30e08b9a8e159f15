package rumi

import (
	"fmt"
	"strings"

	"github.com/chaski-eo/chaski/format/chunk"
)

// Unit is a frame unit: the content of one frame, with the axes from the slowest to the fastest. Generation 1 has
// UnitTile, generation 2 UnitTile and UnitPlanes.
type Unit uint8

// Frame units, with their numbers in the tag. UnitPlanes and UnitPixels hold the axis that has more than
// one element, of bands and steps of time.
const (
	UnitTile     Unit = iota // h w; frames of all steps of a band follow each other
	UnitPlanes               // b h w, or t h w
	UnitPixels               // h w b, or h w t
	UnitBTHW                 // b t h w
	UnitTBHW                 // t b h w
	UnitBHWT                 // b h w t
	UnitTHWB                 // t h w b
	UnitHWBT                 // h w b t
	UnitHWTB                 // h w t b
	UnitTileTime             // h w; frames of all bands of a step follow each other
	numUnits
)

var unitAxes = [numUnits]string{"h w", "b h w", "h w b", "b t h w", "t b h w", "b h w t", "t h w b", "h w b t",
	"h w t b", "h w"}

// Axes returns the axes of a frame: of an image with those bands and steps of time.
func (u Unit) Axes(bands, times int) string {
	switch {
	case u >= numUnits:
		return "invalid"
	case bands == 1 && times > 1 && u == UnitPlanes:
		return "t h w"
	case bands == 1 && times > 1 && u == UnitPixels:
		return "h w t"
	}
	return unitAxes[u]
}

// isPosition reports whether a frame holds all bands and steps of time of a grid position.
func (u Unit) isPosition() bool { return u != UnitTile && u != UnitTileTime }

// fits reports whether a file of generation 3 may have the unit.
func (u Unit) fits(bands, times int) bool {
	switch {
	case u == UnitTile:
		return true
	case u == UnitPlanes || u == UnitPixels:
		return (bands > 1) != (times > 1)
	}
	return u < numUnits && bands > 1 && times > 1
}

// apply sets the content of a chunk of x, whose bands and steps are already set. The unit must fit.
func (u Unit) apply(x *chunk.Index) {
	if !u.isPosition() {
		return
	}
	x.ChunkB = x.Bands
	x.Inner = [...]chunk.Inner{UnitPlanes: chunk.BYX, UnitPixels: chunk.YXB, UnitBTHW: chunk.BTYX, UnitTBHW: chunk.BYX,
		UnitBHWT: chunk.BYXT, UnitTHWB: chunk.TYXB, UnitHWBT: chunk.YXBT, UnitHWTB: chunk.YXB}[u]
}

// frame returns the number in the file of chunk i of x.
func (u Unit) frame(x *chunk.Index, i int) int {
	if u != UnitTile || x.Times == 0 {
		return i
	}
	bands, plane := x.StepBands(), i%x.Bands
	return i - plane + plane%bands*x.Times + plane/bands
}

// chunk returns the number in x of frame i of the file.
func (u Unit) chunk(x *chunk.Index, i int) int {
	if u != UnitTile || x.Times == 0 {
		return i
	}
	frame := i % x.Bands
	return i - frame + frame%x.Times*x.StepBands() + frame/x.Times
}

// fileOrder returns the ranges of x in the order of the file.
func (u Unit) fileOrder(x *chunk.Index) []chunk.Range {
	if u != UnitTile || x.Times == 0 {
		return x.Ranges
	}
	out := make([]chunk.Range, len(x.Ranges))
	for i, frame := range x.Ranges {
		out[u.frame(x, i)] = frame
	}
	return out
}

// indexOrder brings the ranges of x from the order of the file into the order of the index.
func (u Unit) indexOrder(x *chunk.Index) {
	if u != UnitTile || x.Times == 0 {
		return
	}
	ranges := x.Ranges
	x.Ranges = make([]chunk.Range, len(ranges))
	for i := range x.Ranges {
		x.Ranges[i] = ranges[u.frame(x, i)]
	}
}

// ParseUnit returns the unit with a name, for an image with those bands and steps of time: "tile" (all steps of a
// band follow each other), "step" (all bands of a step do), "cell" (one frame holds all), or the axes of a frame,
// such as "h w b". Axes of length one do not count.
func ParseUnit(name string, bands, times int) (Unit, error) {
	axes := name
	switch name {
	case "tile":
		return UnitTile, nil
	case "step":
		if bands > 1 && times > 1 {
			return UnitTileTime, nil
		}
		return UnitTile, nil
	case "cell":
		axes = "t b h w"
	}
	var left []string
	seen := ""
	for a := range strings.FieldsSeq(axes) {
		if len(a) != 1 || !strings.Contains("bthw", a) || strings.Contains(seen, a) {
			return 0, fmt.Errorf("unit is %q: it must be tile, step, cell, or axes of a frame such as \"h w b\"", name)
		}
		seen += a
		if a == "b" && bands == 1 || a == "t" && times == 1 {
			continue
		}
		left = append(left, a)
	}
	for u := range numUnits {
		if u.fits(bands, times) && u.Axes(bands, times) == strings.Join(left, " ") {
			return u, nil
		}
	}
	return 0, fmt.Errorf("unit is %q: no file has such frames of %d bands and %d steps of time", name, bands, times)
}
