package survey_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/loader/rows"
	"github.com/chaski-eo/chaski/loader/survey"
)

// weightsOf is a file of weights with one cell of each row's number of pixels.
func weightsOf(t testing.TB, h rows.WeightsHeader, counts ...survey.CellCounts) []byte {
	t.Helper()
	h.Version, h.Rows = 1, int64(len(counts))
	var b bytes.Buffer
	if err := survey.WriteWeights(&b, h, counts); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func mergeWeights(w io.Writer, parts ...[]byte) error {
	return survey.MergeWeights(w, func(yield func(survey.WeightsPart, error) bool) {
		for _, b := range parts {
			f := io.NewSectionReader(bytes.NewReader(b), 0, int64(len(b)))
			if !yield(survey.WeightsPart{Rows: 2, File: f}, nil) {
				return
			}
		}
	})
}

// TestHostileWeights: parts that are not files of weights, of other rows, or unlike the others, are refused.
func TestHostileWeights(t *testing.T) {
	h := rows.WeightsHeader{CellHeight: 4, CellWidth: 4, Field: "x", Samples: "a"}
	other := h
	other.Samples = "b"
	row := survey.CellCounts{Height: 5, Width: 4, Cells: []uint32{1, 2}}
	good := weightsOf(t, h, row, survey.CellCounts{})
	var got bytes.Buffer
	if err := mergeWeights(&got, good, good); err != nil {
		t.Fatal(err)
	}
	if want := weightsOf(t, h, row, survey.CellCounts{}, row, survey.CellCounts{}); !bytes.Equal(got.Bytes(), want) {
		t.Errorf("%x, want %x", got.Bytes(), want)
	}
	large := bytes.Clone(good)
	at := 12 + binary.LittleEndian.Uint32(good[8:])
	copy(large[at:], strings.Repeat("\xff", 8))
	wide := weightsOf(t, h, survey.CellCounts{Height: 1 << 31}, survey.CellCounts{})
	for name, parts := range map[string][][]byte{
		"wide": {wide}, "nothing": {}, "empty": {nil}, "no weights": {[]byte(strings.Repeat("x", 100))},
		"torn": {good[:len(good)-1]},
		"more": {append(bytes.Clone(good), 0, 0, 0, 0)}, "one row": {good, weightsOf(t, h, row)}, "large": {large},
		"others": {good, weightsOf(t, other, row, row)},
	} {
		if err := mergeWeights(io.Discard, parts...); fault.KindOf(err) != fault.Corrupt {
			t.Errorf("%s: %v, want corrupt", name, err)
		}
	}
}

// fileOf is a file of weights, from its description alone: for each row a height, a width and the cells.
func fileOf(head string, listed ...[]uint32) []byte {
	file := binary.LittleEndian.AppendUint32([]byte("CHSKWGT1"), uint32(len(head)))
	file = append(file, head...)
	for _, row := range listed {
		file = binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(file, row[0]), row[1])
	}
	for _, row := range listed {
		for _, cell := range row[2:] {
			file = binary.LittleEndian.AppendUint32(file, cell)
		}
	}
	return file
}

// brittle fails at write number left, counted from 0, and at no other.
type brittle struct{ left int }

var errFull = errors.New("full")

func (w *brittle) Write(b []byte) (int, error) {
	if w.left--; w.left == -1 {
		return 0, errFull
	}
	return len(b), nil
}

// TestMergedWeights: parts of any numbers of rows, also of none that was read, become the file that is described, and
// an error of the parts or of the writer is returned.
func TestMergedWeights(t *testing.T) {
	head := func(n int) string {
		return fmt.Sprintf(`{"version":1,"rows":%d,"cell_height":4,"cell_width":3,"field":"x",`+
			`"classes":[2,5],"samples":"s"}`, n)
	}
	listed := [][]uint32{{5, 4, 1, 2, 3, 4}, {0, 0}, {4, 3, 9}, {1, 1, 7}, {8, 6, 1, 0, 0, 12}, {0, 0}}
	merge := func(w io.Writer, more error, ends ...int) error {
		return survey.MergeWeights(w, func(yield func(survey.WeightsPart, error) bool) {
			begin := 0
			for _, end := range ends {
				part := fileOf(head(end-begin), listed[begin:end]...)
				file := io.NewSectionReader(bytes.NewReader(part), 0, int64(len(part)))
				if !yield(survey.WeightsPart{Rows: int64(end - begin), File: file}, nil) {
					return
				}
				begin = end
			}
			if more != nil {
				yield(survey.WeightsPart{}, more)
			}
		})
	}
	want := fileOf(head(len(listed)), listed...)
	for _, ends := range [][]int{{6}, {1, 6}, {2, 3, 6}, {1, 2, 3, 4, 5, 6}} {
		var got bytes.Buffer
		if err := merge(&got, nil, ends...); err != nil || !bytes.Equal(got.Bytes(), want) {
			t.Errorf("parts up to %v: %q, want %q; %v", ends, got.Bytes(), want, err)
		}
		if err := merge(io.Discard, errFull, ends...); !errors.Is(err, errFull) {
			t.Errorf("parts up to %v and an error: %v", ends, err)
		}
		for writes := range 3 {
			if err := merge(&brittle{writes}, nil, ends...); !errors.Is(err, errFull) {
				t.Errorf("parts up to %v, and write %d fails: %v", ends, writes, err)
			}
		}
	}
}

// TestLargeWeights: parts whose sizes and cells would be over 2 GiB together are refused before they are read.
func TestLargeWeights(t *testing.T) {
	good := fileOf(`{"version":1,"rows":2,"cell_height":4,"cell_width":4,"field":"x"}`, []uint32{5, 4, 1, 2},
		[]uint32{0, 0})
	first := survey.WeightsPart{Rows: 2, File: io.NewSectionReader(bytes.NewReader(good), 0, int64(len(good)))}
	const kept = 2*8 + 2*4 // bytes of the first part
	for name, c := range map[string]struct {
		parts []survey.WeightsPart
		size  int64
	}{
		"one":  {nil, 2<<30 + 1},
		"both": {[]survey.WeightsPart{first}, 2<<30 - kept + 1},
	} {
		large := survey.WeightsPart{Rows: 2, File: io.NewSectionReader(bytes.NewReader(nil), 0, c.size)}
		err := survey.MergeWeights(io.Discard, func(yield func(survey.WeightsPart, error) bool) {
			for _, part := range append(c.parts, large) {
				if !yield(part, nil) {
					return
				}
			}
		})
		if fault.KindOf(err) != fault.Limit {
			t.Errorf("%s: %v, want a limit", name, err)
		}
	}
	cut := survey.WeightsPart{Rows: 2, File: io.NewSectionReader(bytes.NewReader(good[:9]), 0, 20)}
	err := survey.MergeWeights(io.Discard, func(yield func(survey.WeightsPart, error) bool) { yield(cut, nil) })
	if !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("a file that was cut since: %v", err)
	}
}

// countedWrites is a writer that counts writes.
type countedWrites struct {
	bytes.Buffer
	writes int
}

func (w *countedWrites) Write(p []byte) (int, error) {
	w.writes++
	return w.Buffer.Write(p)
}

// TestWritesOfWeights: large rows are written one by one, small ones together. A header that JSON cannot hold is
// refused.
func TestWritesOfWeights(t *testing.T) {
	head := rows.WeightsHeader{Version: 1, Rows: 3, CellHeight: 1, CellWidth: 1, Field: "x"}
	var file countedWrites
	large := survey.CellCounts{Height: 1 << 8, Width: 1 << 8, Cells: make([]uint32, 1<<16)}
	if err := survey.WriteWeights(&file, head, slices.Repeat([]survey.CellCounts{large}, 3)); err != nil {
		t.Fatal(err)
	}
	if most := file.Len()>>16 + 2; file.writes > most || file.writes < 3 {
		t.Errorf("%d writes of %d bytes", file.writes, file.Len())
	}
	file, head.Rows = countedWrites{}, 1000
	small := slices.Repeat([]survey.CellCounts{{Height: 1, Width: 1, Cells: []uint32{1}}}, 1000)
	if survey.WriteWeights(&file, head, small) != nil || file.writes != 1 {
		t.Errorf("%d writes of 12 KB", file.writes)
	}
	if err := survey.WriteWeights(&brittle{0}, head, small); !errors.Is(err, errFull) {
		t.Errorf("a full disk: %v", err)
	}
	head.Classes = []float64{math.NaN()}
	if survey.WriteWeights(io.Discard, head, nil) == nil {
		t.Error("a header that JSON cannot hold was written")
	}
}

// FuzzWeightsPart: what is merged can be read, and anything else is refused with a kind.
func FuzzWeightsPart(f *testing.F) {
	h := rows.WeightsHeader{CellHeight: 4, CellWidth: 4, Field: "x"}
	good := weightsOf(f, h, survey.CellCounts{Height: 5, Width: 4, Cells: []uint32{1, 2}}, survey.CellCounts{})
	f.Add(good)
	f.Add(good[:20])
	f.Fuzz(func(t *testing.T, b []byte) {
		var out bytes.Buffer
		err := mergeWeights(&out, b, b)
		if err == nil {
			_, err = rows.ParseWeights(out.Bytes())
			if err != nil {
				err = fmt.Errorf("merged: %v", err)
			}
		}
		if err != nil && fault.KindOf(err) == 0 {
			t.Fatal(err)
		}
	})
}
