package survey_test

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/loader"
	"github.com/chaski-eo/chaski/loader/spec"
	"github.com/chaski-eo/chaski/loader/survey"
	"github.com/chaski-eo/chaski/source/openers"
	"github.com/chaski-eo/chaski/tiff"
	"github.com/chaski-eo/chaski/tiff/tog"
)

// TestPairs: pairs are counted by what was made wrong with them, and the first ones are listed, whichever worker is
// faster. Fields whose place is to be ignored are left out.
func TestPairs(t *testing.T) {
	dir := t.TempDir()
	rnd := rand.New(rand.NewPCG(12, 13))
	write := func(row int, field string, shift float64, placed bool, height int) {
		o := tog.Options{Shape: [3]int{1, height, 32}, DType: chunk.Uint8}
		if placed {
			o.Geo = tiff.Geo{EPSG: 32630, Transform: [6]float64{5e5 + shift, 10, 0, 4.6e6, 0, -10}, HasTransform: true}
		}
		writeRaster(t, filepath.Join(dir, field, fmt.Sprintf("%02d.tif", row)), o, make([]byte, height*32))
	}
	const rows = 40
	want := survey.PairReport{Samples: rows, Pairs: 2 * rows}
	var faults []string
	for row := range rows {
		write(row, "image", 0, true, 32)
		for _, field := range []string{"a", "b"} {
			kind, height := rnd.IntN(5), 32
			if kind == 4 {
				height = 67 // over 64 rows of 32 have no grid in common
			}
			write(row, field, map[int]float64{1: 640}[kind], kind != 2 && kind != 4, height)
			says := fmt.Sprint(row, field)
			switch kind {
			case 1:
				want.Misplaced++
				faults = append(faults, says+" 640 m")
			case 2:
				want.Unplaced++
			case 4:
				want.Unplaced++
				want.Misplaced++
				faults = append(faults, says+" 67 by 32")
			case 3:
				want.Unreadable++
				faults = append(faults, says+" past the end")
				if err := os.Truncate(filepath.Join(dir, field, fmt.Sprintf("%02d.tif", row)), 20); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	s := loader.Spec{Source: dir, BatchSize: 1}
	for _, name := range []string{"image", "a", "b"} {
		s.Fields = append(s.Fields, loader.Field{Name: name, Pattern: name + "/{id}.tif"})
	}
	for _, most := range []int{0, 3} {
		got, err := survey.Pairs(t.Context(), s, loader.Options{Workers: 4}, survey.PairOptions{MaxFaults: most})
		if err != nil {
			t.Fatal(err)
		}
		listed := faults
		if most > 0 {
			listed = faults[:most]
		}
		if got.Samples != want.Samples || got.Pairs != want.Pairs || got.Misplaced != want.Misplaced ||
			got.Unplaced != want.Unplaced || got.Unreadable != want.Unreadable ||
			!slices.EqualFunc(got.Faults, listed, func(f survey.PairFault, want string) bool {
				pair, says, _ := strings.Cut(want, " ")
				return pair == fmt.Sprint(f.Row, f.Field) && strings.Contains(f.Error, says)
			}) {
			t.Errorf("at most %d faults: %+v, want %+v with %q", most, got, want, listed)
		}
		if err := got.Err(); err == nil || fault.Line(err) != got.Faults[0].Error {
			t.Errorf("the first fault is %v", err)
		}
	}
	down := loader.Options{Opener: &openers.Mux{Files: failing{&openers.Files{}, "a/05.tif"}}}
	if got, err := survey.Pairs(t.Context(), s, down, survey.PairOptions{}); !errors.Is(err, errNetwork) {
		t.Errorf("of a file that cannot be reached: %+v, %v", got, err)
	}
	s.Fields[1].Ground = spec.IgnoreGround
	if got, err := survey.Pairs(t.Context(), s, loader.Options{}, survey.PairOptions{}); err != nil ||
		got.Pairs != rows {
		t.Errorf("of the third field alone: %+v, %v", got, err)
	}
	s.Fields = s.Fields[:2]
	if _, err := survey.Pairs(t.Context(), s, loader.Options{}, survey.PairOptions{}); err == nil {
		t.Error("one field alone is no pair")
	}
	if err := (&survey.PairReport{}).Err(); err != nil {
		t.Error(err)
	}
	s.Fields[1].Ground = ""
	for row := range rows {
		if err := os.Truncate(filepath.Join(dir, "image", fmt.Sprintf("%02d.tif", row)), 20); err != nil {
			t.Fatal(err)
		}
	}
	r, err := survey.Pairs(t.Context(), s, loader.Options{}, survey.PairOptions{})
	if fault.KindOf(err) != fault.Corrupt {
		t.Errorf("of no raster that can be read: %+v, %v", r, err)
	}
	// Weights are of rasters that lie on those of the first field.
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	for row := range 2 {
		write(row, "image", 0, true, 32)
		write(row, "a", float64(640*row), true, 32)
	}
	err = survey.Weights(t.Context(), io.Discard, s, loader.Options{}, survey.WeightOptions{Field: "a"}, nil, nil)
	if fault.KindOf(err) != fault.Misplaced {
		t.Errorf("weights of misplaced rasters: %v", err)
	}
}
