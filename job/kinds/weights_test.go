package kinds

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/job"
	"github.com/chaski-eo/chaski/loader/rows"
	"github.com/chaski-eo/chaski/loader/survey"
)

// TestAnySplitIsOneWeights: any number of shards, in any order, some of them twice, gives the file of one pass, in
// which rows that cannot be read have no weight.
func TestAnySplitIsOneWeights(t *testing.T) {
	sp := dataset(t, 11)
	sp.Fields = sp.Fields[:1] // the rasters of both fields share no grid
	r := rand.New(rand.NewPCG(1, 2))
	for _, classes := range [][]float64{nil, {0, 300}} {
		var want bytes.Buffer
		c := survey.WeightOptions{Field: "image", Classes: classes, Cell: 16}
		if err := survey.Weights(t.Context(), &want, sp, options(), c, nil); err != nil {
			t.Fatal(err)
		}
		one, err := rows.ParseWeights(want.Bytes())
		if err != nil || one.Rows != 11 {
			t.Fatalf("%d rows, %v", one.Rows, err)
		}
		for _, shards := range []int{1, 3, 99} {
			j := plan(t, &Weights{Dataset: Dataset{Spec: sp}, Field: "image", Classes: classes, Cell: 16}, shards)
			anyOrder(t, r, j)
			got, _, err := merge(t, j, "")
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got, want.Bytes()) {
				t.Errorf("%d shards: %d bytes, want %d, and the same", shards, len(got), want.Len())
			}
			if s, err := j.Status(t.Context(), false); err != nil || s.Skipped != 2 {
				t.Errorf("status %+v, %v", s, err)
			}
		}
	}
}

// TestWeightsRefusals: what one pass refuses is refused before there is a job.
func TestWeightsRefusals(t *testing.T) {
	sp := dataset(t, 3)
	for _, k := range []*Weights{
		{Dataset: Dataset{Spec: sp}, Field: "nothing"}, {Dataset: Dataset{Spec: sp}, Field: "image", Cell: -1},
	} {
		if _, err := job.Plan(t.Context(), t.TempDir(), k, job.PlanOptions{}, options()); err == nil {
			t.Errorf("%+v is a job", k)
		}
	}
}

// weightsOf is a file of weights with one cell of each row's number of pixels.
func weightsOf(t testing.TB, h rows.WeightsHeader, counts ...rows.CellCounts) []byte {
	t.Helper()
	h.Version, h.Rows = 1, int64(len(counts))
	var b bytes.Buffer
	if err := rows.WriteWeights(&b, h, counts); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func mergeWeights(w io.Writer, parts ...[]byte) error {
	return rows.MergeWeights(w, func(yield func(rows.WeightsPart, error) bool) {
		for _, b := range parts {
			f := io.NewSectionReader(bytes.NewReader(b), 0, int64(len(b)))
			if !yield(rows.WeightsPart{Rows: 2, File: f}, nil) {
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
	row := rows.CellCounts{Height: 5, Width: 4, Cells: []uint32{1, 2}}
	good := weightsOf(t, h, row, rows.CellCounts{})
	var got bytes.Buffer
	if err := mergeWeights(&got, good, good); err != nil {
		t.Fatal(err)
	}
	if want := weightsOf(t, h, row, rows.CellCounts{}, row, rows.CellCounts{}); !bytes.Equal(got.Bytes(), want) {
		t.Errorf("%x, want %x", got.Bytes(), want)
	}
	large := bytes.Clone(good)
	at := 12 + binary.LittleEndian.Uint32(good[8:])
	copy(large[at:], strings.Repeat("\xff", 8))
	wide := weightsOf(t, h, rows.CellCounts{Height: 1 << 31}, rows.CellCounts{})
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

// FuzzWeightsPart: what is merged can be read, and anything else is refused with a kind.
func FuzzWeightsPart(f *testing.F) {
	h := rows.WeightsHeader{CellHeight: 4, CellWidth: 4, Field: "x"}
	good := weightsOf(f, h, rows.CellCounts{Height: 5, Width: 4, Cells: []uint32{1, 2}}, rows.CellCounts{})
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
