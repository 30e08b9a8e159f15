package raster_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/loader/raster"
	"github.com/chaski-eo/chaski/tools/testkit/corpus"
)

// TestCorners: a window of each file gives what reads of these windows one by one give, of files of one size or
// several.
func TestCorners(t *testing.T) {
	dir := filepath.Join(corpus.Testdata(t), "raster", "rumi-3")
	paths := []string{"unit-b-y-x-0.rumi", "unit-b-y-x-2.rumi", "unit-b-y-x-1.rumi"}
	for i := range paths {
		paths[i] = filepath.Join(dir, paths[i])
	}
	corners := [][2]int{{11, 3}, {0, 0}, {5, 11}}
	o := raster.ReadOptions{
		Corners: corners, Threads: 3,
		Y: raster.Selection{Slice: true, Stop: 9}, X: raster.Selection{Slice: true, Stop: 10},
	}
	for _, n := range []string{"", "2,0,0", "1:3"} {
		var err error
		if o.N, err = raster.ParseSelection(n); err != nil {
			t.Fatal(err)
		}
		got, err := raster.Read(t.Context(), paths, o)
		if err != nil {
			t.Fatal(err)
		}
		picks, err := o.N.Indices("n", len(paths))
		if err != nil {
			t.Fatal(err)
		}
		var want []byte
		for _, i := range picks {
			y, x := corners[i][0], corners[i][1]
			one, err := raster.Read(t.Context(), paths[i:i+1], raster.ReadOptions{
				Y: raster.Selection{Slice: true, Start: y, Stop: y + 9},
				X: raster.Selection{Slice: true, Start: x, Stop: x + 10},
			})
			if err != nil {
				t.Fatal(err)
			}
			want = append(want, one.Data...)
		}
		if string(got.Data) != string(want) || fmt.Sprint(got.Shape) != fmt.Sprintf("[%d 2 9 10]", len(picks)) {
			t.Errorf("n %q: other samples, shape %v", n, got.Shape)
		}
	}
	o.N = raster.Selection{}
	for what, wrong := range map[string]raster.ReadOptions{
		"2 windows":  {Corners: corners[:2], Y: o.Y, X: o.X},
		"their size": {Corners: corners, Y: o.Y},
		"axis y":     {Corners: [][2]int{{0, 0}, {0, 0}, {12, 0}}, Y: o.Y, X: o.X},
		"axis x":     {Corners: [][2]int{{0, -1}, {0, 0}, {0, 0}}, Y: o.Y, X: o.X},
	} {
		if _, err := raster.Read(t.Context(), paths, wrong); err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("%s: %v", what, err)
		}
	}
	other := append(paths[:2:2], filepath.Join(dir, "unit-y-x-0.rumi"))
	if _, err := raster.Read(t.Context(), other, o); err == nil {
		t.Error("a file with other bands stacks")
	}
}
