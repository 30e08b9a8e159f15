package pixels

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/internal/crs/warp"
	"github.com/chaski-eo/chaski/internal/num"
	"github.com/chaski-eo/chaski/loader/spec"
	"github.com/chaski-eo/chaski/shuffle"
	"github.com/chaski-eo/chaski/store/catalog"
)

// TestPartsOfAStack: the bands of a stack are the bands of its parts, one part after the other. A part has the tensor's
// bands that lie in it, and a part without a picked band is not compiled. A field of native dtype needs parts
// of one dtype.
func TestPartsOfAStack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		type placed struct{ part, band int }
		var bands []placed // of the stack
		a := catalog.Asset{URI: "stack"}
		for k := range rapid.IntRange(1, 4).Draw(t, "parts") {
			x := small(rapid.SampledFrom([]chunk.DType{chunk.Uint8, chunk.Uint8, chunk.Int16}).Draw(t, "dtype"), 0)
			x.Bands = rapid.IntRange(1, 3).Draw(t, "bands")
			x.Alpha = x.Bands > 1 && rapid.Bool().Draw(t, "alpha")
			a.Parts = append(a.Parts, catalog.Asset{URI: string(rune('a' + k)), Index: x})
			for band := range x.DataBands() {
				bands = append(bands, placed{k, band})
			}
		}
		stack := *a.Parts[0].Index
		stack.Bands, stack.Alpha = len(bands), false
		a.Index = &stack
		field := spec.Field{Name: "x", DType: rapid.SampledFrom([]string{"native", "float32", "uint8"}).Draw(t, "to"),
			Layout: spec.DefaultLayout}
		picked := num.Range[int](0, len(bands))
		if rapid.Bool().Draw(t, "picks") {
			picked = rapid.SliceOfN(rapid.IntRange(0, len(bands)-1), 1, 5).Draw(t, "picked")
			field.Bands = picked
		}
		for i := range rapid.SampledFrom([]int{0, 1, len(picked)}).Draw(t, "lists of nodata") {
			field.NoData = append(field.NoData, []spec.Float{spec.Float(10 + i)})
		}
		f, err := NewRaster(field, 0, a.Index)
		if err != nil {
			t.Fatal(err)
		}
		err = f.CompileParts(&a)
		for k := range a.Parts {
			if d := a.Parts[k].Index.DType; field.DType == "native" && d != a.Index.DType {
				if fault.KindOf(err) != fault.Unsupported || !strings.HasPrefix(err.Error(), a.Parts[k].URI+": ") {
					t.Fatalf("part %d is %v beside %v: %v", k, d, a.Index.DType, err)
				}
				return
			}
		}
		if err != nil || len(f.Parts) != len(a.Parts) {
			t.Fatalf("%d parts of %d: %v", len(f.Parts), len(a.Parts), err)
		}
		checked := field.DType == "uint8" && a.Index.DType != chunk.Uint8
		for _, b := range picked {
			checked = checked || field.DType == "uint8" && a.Parts[bands[b].part].Index.DType != chunk.Uint8
		}
		if f.Checked() != checked {
			t.Fatalf("values of parts that uint8 cannot hold: %v, want %v", f.Checked(), checked)
		}
		f.SetSize(5, 6)
		other := f.Sized(7, 8)
		for k, part := range f.Parts {
			var own, into []int
			for j, b := range picked {
				if bands[b].part == k {
					own, into = append(own, bands[b].band), append(into, j)
				}
			}
			if part == nil {
				if len(own) > 0 || other.Parts[k] != nil {
					t.Fatalf("part %d is not compiled, and has bands %v", k, own)
				}
				continue
			}
			if !slices.Equal(part.Picked, own) || !slices.Equal(part.into, into) || part.all != len(picked) ||
				part.Native != a.Parts[k].Index.DType || part.To != f.To {
				t.Fatalf("part %d has bands %v at %v of %d, want %v at %v of %d", k, part.Picked, part.into, part.all,
					own, into, len(picked))
			}
			for i, j := range into {
				var want [][]float64
				if n := len(field.NoData); n > 0 {
					want = [][]float64{{float64(10 + j%n)}}
				}
				if got := part.raw.Of(i, 1).Said; !reflect.DeepEqual(got, want) {
					t.Fatalf("nodata of band %d of part %d is %v, want %v", i, k, got, want)
				}
			}
			if part.H != 5 || part.W != 6 || other.Parts[k].H != 7 || other.Parts[k].W != 8 {
				t.Fatalf("part %d has the size of another field", k)
			}
			x := *a.Parts[k].Index
			if x.Bands += 1; part.Accepts(&catalog.Asset{Index: a.Parts[k].Index}) != nil ||
				fault.KindOf(part.Accepts(&catalog.Asset{Index: &x})) != fault.Unsupported {
				t.Fatalf("part %d: other assets have as many bands", k)
			}
		}
	})
}

// TestWindowsOfTurnedStacks: a window of another size than the tensor has the nearest pixels of a part on the grid of
// its stack, also where rows and columns lie aslant on the ground.
func TestWindowsOfTurnedStacks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const side = 30
		numbers := rapid.IntRange(-3, 3)
		grid := [6]float64{500000, float64(numbers.Draw(t, "a")), float64(numbers.Draw(t, "b")), 5000000,
			float64(numbers.Draw(t, "c")), float64(numbers.Draw(t, "d"))}
		if grid[1]*grid[5] == grid[2]*grid[4] {
			grid[1], grid[5], grid[2], grid[4] = 2, -1, 0, 0
		}
		l := Lay{stack: warp.Raster{CRS: sameCRS, Transform: grid, Height: side, Width: side}}
		l.part = l.stack
		// Sides of the window and of the tensor, by which no middle of a pixel lies between two pixels of the part.
		factors := rapid.SampledFrom([][2]int{{1, 1}, {3, 1}, {5, 1}, {1, 2}, {3, 2}})
		y, x := factors.Draw(t, "down"), factors.Draw(t, "right")
		h, w := 2*y[1], 2*x[1]
		win := shuffle.Box{Y: rapid.IntRange(0, side-10).Draw(t, "y"), X: rapid.IntRange(0, side-10).Draw(t, "x"),
			H: 2 * y[0], W: 2 * x[0]}
		m, err := l.Warp(win, h, w)
		if err != nil {
			t.Fatal(err)
		}
		places := make([]uint32, side*side)
		for i := range places {
			places[i] = uint32(i)
		}
		out, valid := make([]uint32, h*w), make([]byte, h*w)
		if err := warp.Pick(m, warp.Plane[uint32]{Box: warp.Box{Y1: side, X1: side}, Pix: places}, out,
			valid); err != nil {
			t.Fatal(err)
		}
		for i, got := range out {
			row, column := win.Y+(2*(i/w)+1)*win.H/(2*h), win.X+(2*(i%w)+1)*win.W/(2*w)
			if valid[i] == 0 || int(got) != row*side+column {
				t.Fatalf("%+v of a grid %v: pixel %d is pixel %d, want row %d, column %d", win, grid, i, got, row,
					column)
			}
		}
	})
}

// TestPartsOfTurnedStacks: a part on the grid of a stack lies there by whole pixels, also where rows and columns lie
// aslant on the ground. It has no place there if it is moved by the size of the stack.
func TestPartsOfTurnedStacks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const height, width = 6, 9
		numbers, moves := rapid.IntRange(-3, 3), rapid.IntRange(-10, 10)
		grid := [6]float64{500000, float64(numbers.Draw(t, "a")), float64(numbers.Draw(t, "b")), 5000000,
			float64(numbers.Draw(t, "c")), float64(numbers.Draw(t, "d"))}
		if grid[1]*grid[5] == grid[2]*grid[4] {
			grid[1], grid[5], grid[2], grid[4] = 1, 1, 2, 0
		}
		y, x := moves.Draw(t, "down"), moves.Draw(t, "right")
		moved := grid
		moved[0] += float64(x)*grid[1] + float64(y)*grid[2]
		moved[3] += float64(x)*grid[4] + float64(y)*grid[5]
		index := &chunk.Index{Height: height, Width: width}
		a := catalog.Asset{URI: "a", Index: index, Place: catalog.NewPlace(32631, &grid, height, width)}
		a.Parts = []catalog.Asset{{URI: "b", Index: index, Place: catalog.NewPlace(32631, &moved, height, width)}}
		l, err := (&Raster{}).NewLay(&a, 0)
		apart := y <= -height || y >= height || x <= -width || x >= width
		if (fault.KindOf(err) == fault.Misplaced) != apart || !apart && err != nil {
			t.Fatalf("a part %d rows down and %d columns right: %v", y, x, err)
		}
		if !apart && (!l.Same || l.Y != -y || l.X != -x) {
			t.Fatalf("on the grid %v: %+v, want %d rows down and %d columns right", grid, l, y, x)
		}
	})
}

// TestPartsWithoutAPlace: a part whose place is not known, or does not count, covers the whole stack: a pixel of the
// stack has the pixel of the part that lies under its middle.
func TestPartsWithoutAPlace(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		// A side of the stack and of the part, by which no middle of a pixel lies between two pixels of the part.
		side := func(name string) (stack, part int) {
			n := rapid.IntRange(1, 4).Draw(t, name)
			times := rapid.SampledFrom([][2]int{{1, 1}, {1, 3}, {1, 5}, {2, 1}, {3, 1}}).Draw(t, name+" times")
			return n * times[0], n * times[1]
		}
		height, partHeight := side("height")
		width, partWidth := side("width")
		a := catalog.Asset{URI: "a", Index: &chunk.Index{Height: height, Width: width}}
		part := catalog.Asset{URI: "b", Index: &chunk.Index{Height: partHeight, Width: partWidth}}
		f := &Raster{}
		if rapid.Bool().Draw(t, "far away") {
			f.Ground = spec.IgnoreGround
			a.Place = catalog.NewPlace(32631, &[6]float64{500000, 10, 0, 5000000, 0, -10}, height, width)
			part.Place = catalog.NewPlace(32601, &[6]float64{500000, 20, 0, 2000000, 0, -20}, partHeight, partWidth)
		}
		a.Parts = []catalog.Asset{part}
		l, err := f.NewLay(&a, 0)
		if err != nil {
			t.Fatal(err)
		}
		if same := height == partHeight && width == partWidth; l.Whole() != same {
			t.Fatalf("it has the grid of the stack: %t, want %t", l.Whole(), same)
		}
		m, err := l.Warp(shuffle.Box{H: height, W: width}, height, width)
		if err != nil {
			t.Fatal(err)
		}
		places := make([]uint32, partHeight*partWidth)
		out, valid := make([]uint32, height*width), make([]byte, height*width)
		for i := range places {
			places[i] = uint32(i)
		}
		if err := warp.Pick(m, warp.Plane[uint32]{Box: warp.Box{Y1: partHeight, X1: partWidth}, Pix: places}, out,
			valid); err != nil {
			t.Fatal(err)
		}
		for i, got := range out {
			y, x := (2*(i/width)+1)*partHeight/(2*height), (2*(i%width)+1)*partWidth/(2*width)
			if valid[i] == 0 || int(got) != y*partWidth+x {
				t.Fatalf("pixel %d is pixel %d of the part, want row %d, column %d", i, got, y, x)
			}
		}
	})
}
