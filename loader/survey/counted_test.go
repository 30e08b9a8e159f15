package survey_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/loader"
	"github.com/chaski-eo/chaski/loader/survey"
	"github.com/chaski-eo/chaski/tiff/tog"
)

// noise is a raster of two bands of small numbers, of which 0 is missing.
type noise struct {
	height, width int
	pixels        []byte
}

// writeNoise writes rasters of several sizes.
func writeNoise(t *testing.T, dir string) (all []noise) {
	t.Helper()
	rnd := rand.New(rand.NewPCG(8, 9))
	for i, size := range [][2]int{{40, 33}, {16, 16}, {61, 20}} {
		n := noise{height: size[0], width: size[1], pixels: make([]byte, 2*size[0]*size[1])}
		for k := range n.pixels {
			n.pixels[k] = byte(rnd.IntN(5))
		}
		var b bytes.Buffer
		o := tog.Options{Shape: [3]int{2, n.height, n.width}, DType: chunk.Uint8, Tile: 16, NoData: "0"}
		if err := tog.Write(&b, n.pixels, o); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprint(i, ".tif")), b.Bytes(), 0o666); err != nil {
			t.Fatal(err)
		}
		all = append(all, n)
	}
	return all
}

// TestWeightsAreCounts: cells have as many pixels as a slow count finds: valid in a band or, of classes, in the first.
func TestWeightsAreCounts(t *testing.T) {
	dir := t.TempDir()
	all := writeNoise(t, dir)
	for _, classes := range [][]float64{nil, {3}, {1, 4}, {2, 2}} {
		for _, cell := range []int{1, 7, 16, 100} {
			var b bytes.Buffer
			err := survey.Weights(t.Context(), &b, loader.Spec{Source: dir, BatchSize: 1}, loader.Options{},
				survey.WeightOptions{Classes: classes, Cell: cell}, nil, nil)
			if err != nil {
				t.Fatal(classes, cell, err)
			}
			var want []byte
			for _, n := range all {
				want = binary.LittleEndian.AppendUint32(want, uint32(n.height))
				want = binary.LittleEndian.AppendUint32(want, uint32(n.width))
			}
			for _, n := range all {
				for top := 0; top < n.height; top += cell {
					for left := 0; left < n.width; left += cell {
						count := uint32(0)
						for y := top; y < min(top+cell, n.height); y++ {
							for x := left; x < min(left+cell, n.width); x++ {
								first, second := n.pixels[y*n.width+x], n.pixels[(n.height+y)*n.width+x]
								// A class that is nodata has no valid pixel.
								of := first != 0 && slices.Contains(classes, float64(first))
								if of || classes == nil && first|second != 0 {
									count++
								}
							}
						}
						want = binary.LittleEndian.AppendUint32(want, count)
					}
				}
			}
			head := 12 + binary.LittleEndian.Uint32(b.Bytes()[8:])
			if got := b.Bytes()[head:]; !bytes.Equal(got, want) {
				t.Errorf("classes %v in cells of %d: %v, want %v", classes, cell, got, want)
			}
		}
	}
}

// TestClassesWithoutPixels: a class that no valid pixel has is not found.
func TestClassesWithoutPixels(t *testing.T) {
	dir := t.TempDir()
	writeNoise(t, dir)
	for _, classes := range [][]float64{{0, 2}, {9}, {300}, {0.5}} {
		err := survey.Weights(t.Context(), io.Discard, loader.Spec{Source: dir, BatchSize: 1}, loader.Options{},
			survey.WeightOptions{Classes: classes}, nil, nil)
		if err == nil || classes[0] < 10 && classes[0] != 0.5 && fault.KindOf(err) != fault.NotFound {
			t.Errorf("classes %v: %v", classes, err)
		}
	}
}

// TestStatsAreCounts: means, extremes and missing pixels are those of a slow pass, in whole files and in strips; parts
// of the samples merge to them. A file that cannot be read is left out, if the spec says so.
func TestStatsAreCounts(t *testing.T) {
	dir := t.TempDir()
	all := writeNoise(t, dir)
	for _, bad := range []bool{false, true} {
		s := loader.Spec{Source: dir, BatchSize: 1}
		if bad {
			if err := os.WriteFile(filepath.Join(dir, "x.tif"), []byte("II*\x00broken"), 0o666); err != nil {
				t.Fatal(err)
			}
			if _, err := survey.Stats(t.Context(), s, loader.Options{}, nil); fault.KindOf(err) != fault.Corrupt {
				t.Fatal(err)
			}
			s.BadSamples = "skip"
		}
		for _, limit := range []int{0, 1 << 10} {
			report, err := survey.Stats(t.Context(), s, loader.Options{MaxChunkBytes: limit}, nil)
			if err != nil {
				t.Fatal(limit, err)
			}
			if report.Samples != 3 || report.Skipped != map[bool]int64{true: 1}[bad] {
				t.Errorf("%d samples, %d skipped", report.Samples, report.Skipped)
			}
			for b, band := range report.Fields["image"].Bands {
				sum, valid, missing := 0, 0, uint64(0)
				for _, n := range all {
					for _, v := range n.pixels[b*n.height*n.width:][:n.height*n.width] {
						if sum += int(v); v == 0 {
							missing++
						} else {
							valid++
						}
					}
				}
				if *band.Mean != float64(sum)/float64(valid) || band.Count != uint64(valid) || band.NoData != missing {
					t.Errorf("band %d: %+v, want %d of %d, %d missing", b, band, sum, valid, missing)
				}
			}
		}
	}
}
