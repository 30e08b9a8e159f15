package chunk

import (
	"slices"
	"strings"
	"testing"
)

// TestStridesAgainstTheNamesOfAxes: walking through a chunk in the order of the axes that Inner names, the last one
// fastest, sample after sample stands where the strides say.
func TestStridesAgainstTheNamesOfAxes(t *testing.T) {
	for inner := BYX; inner < numInner; inner++ {
		for _, form := range []struct{ steps, bands, chunkB int }{
			{1, 1, 1}, {1, 3, 3}, {1, 3, 1}, {4, 3, 12}, {4, 3, 1},
		} {
			if inner > YXB && (form.steps == 1 || form.chunkB == 1) {
				continue // such an index is not valid
			}
			x := &Index{Bands: form.steps * form.bands, ChunkB: form.chunkB, Height: 8, Width: 5, ChunkH: 4, ChunkW: 5,
				DType: Uint8, Inner: inner}
			if form.steps > 1 {
				x.Times = form.steps
			}
			lengths := map[string]int{"b": form.bands, "t": form.steps, "y": x.ChunkH, "x": x.ChunkW}
			if form.chunkB == 1 {
				lengths["b"], lengths["t"] = 1, 1
			}
			axes := strings.Fields(inner.String())
			if !slices.Contains(axes, "t") { // b stands for all planes, those of the first step first
				k := slices.Index(axes, "b")
				axes = slices.Insert(axes, k, "t")
			}
			strides := x.Strides(1)
			at := map[string]int{}
			for sample := range lengths["b"] * lengths["t"] * lengths["y"] * lengths["x"] {
				rest := sample
				for _, axis := range slices.Backward(axes) {
					at[axis] = rest % lengths[axis]
					rest /= lengths[axis]
				}
				plane := at["t"]*lengths["b"] + at["b"]
				if got := strides.Plane(plane) + at["y"]*strides.Y + at["x"]*strides.X; got != sample {
					t.Fatalf("%v, %+v: plane %d, row %d, column %d at %d, want %d: %+v", inner, form, plane, at["y"],
						at["x"], got, sample, strides)
				}
			}
			if strides.Bands != lengths["b"] && form.steps > 1 {
				t.Errorf("%v, %+v: %d bands of a step", inner, form, strides.Bands)
			}
		}
	}
}
