package containers

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/chaski-eo/chaski/format/tables"
)

// TestDescentAgainstNames: a path leads to the first level on which some sample has a row whose ids from level 1 down,
// joined by "/", are the path; each sample to its first such row there. Ids of old formats may contain "/".
func TestDescentAgainstNames(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		id := rapid.SampledFrom([]string{"a", "b", "a/b", ""})
		walk := descent{path: rapid.SampledFrom([]string{"a", "a/b", "a/b/a"}).Draw(t, "path")}
		// Each row of level 0 is a sample or none, and has the path "".
		walk.sample = rapid.SliceOfN(rapid.Int32Range(-1, 0), 1, 4).Draw(t, "samples")
		for i, sample := range walk.sample {
			if sample >= 0 {
				walk.sample[i], walk.rows = int32(len(walk.rows)), append(walk.rows, -1)
			}
		}
		walk.rest = make([]int32, len(walk.sample))
		names, samples := make([]string, len(walk.sample)), slices.Clone(walk.sample)
		wantLevel, want, further := 0, slices.Clone(walk.rows), true
		for level := 1; level <= 3; level++ {
			ids := rapid.SliceOfN(id, 1, 9).Draw(t, "ids")
			parents, below, tops := make([]int32, len(ids)), make([]string, len(ids)), make([]int32, len(ids))
			for row, id := range ids {
				parents[row] = rapid.Int32Range(0, int32(len(names)-1)).Draw(t, "parent")
				tops[row] = samples[parents[row]]
				if below[row] = names[parents[row]] + "/" + id; id == "" {
					tops[row] = -1 // no id: nothing lies on its path
				}
				if tops[row] < 0 || below[row] != "/"+walk.path || wantLevel > 0 && wantLevel < level {
					continue
				}
				if wantLevel = level; want[tops[row]] < 0 {
					want[tops[row]] = int32(row)
				}
			}
			names, samples = below, tops
			if further { // else nothing below can be on the path
				further = walk.down(level, tables.NewStrings(ids, nil), parents)
			}
		}
		if walk.level != wantLevel || !slices.Equal(walk.rows, want) {
			t.Fatalf("level %d, rows %v; want %d, %v", walk.level, walk.rows, wantLevel, want)
		}
	})
}
