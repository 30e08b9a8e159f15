package survey_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/loader"
	"github.com/chaski-eo/chaski/loader/survey"
	"github.com/chaski-eo/chaski/tiff/tog"
	"github.com/chaski-eo/chaski/tools/testkit/folder"
	"github.com/chaski-eo/chaski/tools/testkit/testfile"
)

// TestStacksOfDTypes: classes of a stack of two bands and one are counted in the part that its first band is of,
// whatever the dtypes of its files are, which differ from part to part and from row to row.
func TestStacksOfDTypes(t *testing.T) {
	const rows, side, class = 4, 16, 255
	dir, table := t.TempDir(), "a,b\n"
	rnd := rand.New(rand.NewPCG(24, 25))
	counts := map[string][rows]uint32{}
	for row := range rows {
		for k, column := range []string{"a", "b"} {
			dtype := chunk.Uint8
			if (row>>k)&1 == 1 {
				dtype = chunk.Int32
			}
			var samples []byte
			for band := range 2 - k {
				name := fmt.Sprint(column, band)
				count := counts[name]
				for range side * side {
					k := rnd.IntN(4)
					v := []uint32{0, 1, 2, class}[k]
					if v == class {
						count[row]++
					}
					if dtype == chunk.Uint8 {
						samples = append(samples, byte(v))
						continue
					} else if v != class { // it is not the class, however it is made one of 8 bits
						v = []uint32{256, 256 + class, 1 << 24}[k]
					}
					samples = binary.LittleEndian.AppendUint32(samples, v)
				}
				counts[name] = count
			}
			writeRaster(t, filepath.Join(dir, fmt.Sprint(column, row, ".tif")),
				tog.Options{Shape: [3]int{2 - k, side, side}, DType: dtype}, samples)
		}
		table += fmt.Sprintf("a%d.tif,b%[1]d.tif\n", row)
	}
	source := filepath.Join(dir, "t.csv")
	testfile.Write(t, source, []byte(table))
	for _, bands := range [][]int{nil, {0}, {1}, {2}, {2, 0}, {1, 2}} {
		column := []string{"a0", "a1", "b0"}[append(bands, 0)[0]]
		s := loader.Spec{Source: source, BatchSize: 1,
			Fields: []loader.Field{{Name: "image", Columns: []string{"a", "b"}, Bands: bands}}}
		var b bytes.Buffer
		err := survey.Weights(t.Context(), &b, s, loader.Options{},
			survey.WeightOptions{Classes: []float64{class}}, nil, nil)
		if err != nil {
			t.Error(bands, err)
			continue
		}
		for row, want := range counts[column] {
			if got := binary.LittleEndian.Uint32(b.Bytes()[b.Len()-4*(rows-row):]); got != want {
				t.Errorf("bands %v, row %d: %d pixels, want %d", bands, row, got, want)
			}
		}
	}
}

// TestClassesOfStacks: classes of a stack are compared as the raster of its first band stores them.
func TestClassesOfStacks(t *testing.T) {
	dir := t.TempDir()
	var samples []byte
	for i := range 256 { // which are all the same as float32
		samples = binary.LittleEndian.AppendUint32(samples, 1<<24+uint32(i&1))
	}
	writeRaster(t, filepath.Join(dir, "a.tif"), tog.Options{Shape: [3]int{1, 16, 16}, DType: chunk.Int32}, samples)
	testfile.Write(t, filepath.Join(dir, "b.tif"), folder.TIFF(16, 16, 0)) // of bytes
	source := filepath.Join(dir, "t.csv")
	testfile.Write(t, source, []byte("a,b\na.tif,b.tif\n"))
	s := loader.Spec{Source: source,
		Fields: []loader.Field{{Name: "image", Columns: []string{"b", "a"}, Bands: []int{1}}}}
	var b bytes.Buffer
	count := survey.WeightOptions{Classes: []float64{1 << 24}}
	err := survey.Weights(t.Context(), &b, s, loader.Options{}, count, nil, nil)
	if err != nil || binary.LittleEndian.Uint32(b.Bytes()[b.Len()-4:]) != 128 {
		t.Errorf("%v: %d pixels", err, b.Bytes())
	}
}
