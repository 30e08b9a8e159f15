package shuffle

import (
	"testing"
)

// TestMeasureInOrder: of a dataset whose rows have four samples each, in order, the measures are those that one counts
// by hand.
func TestMeasureInOrder(t *testing.T) {
	pl, err := NewPlan(Spec{Source: Source{Dataset: &Dataset{Items: 10,
		Sampler: Sampler{Kind: RandomWindow{}, PerItem: 4, H: 2, W: 2}}}})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		first, count int64
		batch        int
		rows, same   float64
	}{
		{0, 40, 4, 1, 30. / 39},       // each batch is one row; 9 of 39 neighbours are of other rows
		{0, 40, 8, 2, 30. / 39},       // two rows
		{0, 40, 6, 13. / 7, 30. / 39}, // two rows in each of six batches, and one in the last
		{2, 8, 5, 2, 5. / 7},          // rows 0, 0, 1, 1, 1 and 1, 2, 2
		{38, 9, 4, 1, 1},              // cut to the two samples that are left
		{0, 1, 1, 1, 0},               // a single one has no neighbour
		{39, 1, 7, 1, 0},
	} {
		q := pl.Measure(0, c.first, c.count, c.batch)
		if q.RowsABatch != c.rows || q.SameRow != c.same || q.Repeats != 0 || q.Displacement != 0 {
			t.Errorf(
				"%d from %d in batches of %d: got %v rows a batch, %v of the same row, %d repeats, displacement %v; "+
					"want %v and %v, 0, 0",
				c.count, c.first, c.batch, q.RowsABatch, q.SameRow, q.Repeats, q.Displacement, c.rows, c.same)
		}
	}
}

// TestRunsPanicOutside: a sample that is not there is a mistake of the caller, not a sample of another item.
func TestRunsPanicOutside(t *testing.T) {
	equal, err := EqualRuns(3, 2)
	if err != nil {
		t.Fatal(err)
	}
	listed, err := NewRuns(3, func(i int64) int64 { return i + 1 })
	if err != nil {
		t.Fatal(err)
	}
	for _, runs := range []Runs{equal, listed} {
		for _, i := range []int64{-1, runs.Len(), runs.Len() + 7} {
			func() {
				defer func() {
					if recover() == nil {
						t.Errorf("sample %d of %d: no panic", i, runs.Len())
					}
				}()
				runs.At(i)
			}()
		}
	}
}

// TestGroundCells: one cell is enough for windows on the ground, and none is an error.
func TestGroundCells(t *testing.T) {
	for runs, want := range map[int]bool{0: false, 1: true} {
		g := Ground{Side: 8, Cell: 4, Scene: func(Place) int64 { return 0 }, Runs: []CellRun{{0, 0, 0, 1}}[:runs]}
		_, err := NewPlan(Spec{Source: Source{Dataset: &Dataset{Items: 1, Sampler: Sampler{Kind: &g}}}})
		if (err == nil) != want {
			t.Errorf("%d cells: got %v; want success %v", runs, err, want)
		}
	}
}
