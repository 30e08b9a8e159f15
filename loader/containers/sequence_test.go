package containers

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/store"
	_ "github.com/chaski-eo/chaski/tools/testkit/seed"
)

// TestSequenceAgainstLists: a step has the file of its number, or is padding in samples that have some file, but not
// that one.
func TestSequenceAgainstLists(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		files := rapid.SliceOfN(rapid.SliceOfN(rapid.IntRange(0, 99), 0, 4), 1, 5).Draw(t, "files")
		most := 0
		for _, rows := range files {
			most = max(most, len(rows))
		}
		times := rapid.SliceOfN(rapid.IntRange(0, 5), 0, 6).Draw(t, "times")
		made, err := newSequence("seq", &store.Sequence{Level: 1, Most: most, Rows: files}, times)
		if late := len(times) > 0 && slices.Max(times) >= most; late || err != nil {
			if !late || fault.KindOf(err) != fault.NotFound {
				t.Fatalf("%v of %v: %v", times, files, err)
			}
			return
		}
		picks := times
		for k := 0; len(times) == 0 && k < most; k++ {
			picks = append(picks, k)
		}
		if !slices.Equal(made.picks, picks) {
			t.Fatalf("steps %v, want %v", made.picks, picks)
		}
		for sample, rows := range files {
			for k := range most + 1 {
				want := int32(-1)
				if k < len(rows) {
					want = int32(rows[k])
				}
				if got := made.row(int32(sample), k); got != want {
					t.Fatalf("file %d of sample %d: row %d, want %d", k, sample, got, want)
				}
			}
			for step, k := range picks {
				if want := len(rows) > 0 && k >= len(rows); made.padding(step, int32(sample)) != want {
					t.Fatalf("step %d of sample %d: padding is %v", step, sample, !want)
				}
			}
		}
	})
	if none, err := newSequence("seq", &store.Sequence{Rows: [][]int{{}, {}}}, nil); err != nil || none.picks != nil {
		t.Errorf("a sequence without files: %+v, %v", none, err)
	}
	for _, n := range []int{maxFiles, maxFiles + 1} {
		_, err := newSequence("seq", &store.Sequence{Most: n, Rows: [][]int{make([]int, n)}}, nil)
		if (fault.KindOf(err) == fault.Limit) != (n > maxFiles) {
			t.Errorf("%d files: %v", n, err)
		}
	}
}
