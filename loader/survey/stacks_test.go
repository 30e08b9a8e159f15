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
	"github.com/chaski-eo/chaski/tools/testkit/testfile"
)

// TestStacksOfDTypes: classes of a stack are counted in the part that its first band is of, whatever the dtypes of its
// files are, which differ from part to part and from row to row.
func TestStacksOfDTypes(t *testing.T) {
	const rows, side = 4, 16
	dir, table := t.TempDir(), "a,b\n"
	rnd := rand.New(rand.NewPCG(24, 25))
	counts := map[string][rows]uint32{}
	for row := range rows {
		for k, column := range []string{"a", "b"} {
			samples := make([]byte, side*side)
			count := counts[column]
			for i := range samples {
				if samples[i] = byte(rnd.IntN(4)); samples[i] == 3 {
					count[row]++
				}
			}
			counts[column] = count
			dtype := chunk.Uint8
			if (row>>k)&1 == 1 {
				dtype = chunk.Uint16
			}
			writeRaster(t, filepath.Join(dir, fmt.Sprint(column, row, ".tif")),
				tog.Options{Shape: [3]int{1, side, side}, DType: dtype}, samples)
		}
		table += fmt.Sprintf("a%d.tif,b%[1]d.tif\n", row)
	}
	source := filepath.Join(dir, "t.csv")
	testfile.Write(t, source, []byte(table))
	for _, bands := range [][]int{nil, {0}, {1}, {1, 0}} {
		column := "a"
		if bands != nil && bands[0] == 1 {
			column = "b"
		}
		s := loader.Spec{Source: source, BatchSize: 1,
			Fields: []loader.Field{{Name: "image", Columns: []string{"a", "b"}, Bands: bands}}}
		var b bytes.Buffer
		err := survey.Weights(t.Context(), &b, s, loader.Options{},
			survey.WeightOptions{Classes: []float64{3}}, nil, nil)
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
