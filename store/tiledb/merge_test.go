package tiledb

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/durable"
)

// several makes a dense array of three fragments, that lie over each other, of some times.
func several(t *testing.T, path string, times [3]uint64) *Array {
	t.Helper()
	ctx := context.Background()
	at := Int32.CoordOf
	s := &Schema{Dense: true, Capacity: 4, DimType: Int32, Coords: DefaultFilters(), Offsets: DefaultFilters(),
		Dims: []Dim{{Name: "y", Domain: Interval{at(0), at(19)}, Extent: 4},
			{Name: "x", Domain: Interval{at(0), at(9)}, Extent: 5}},
		Attrs: []Attr{{Name: "a", Type: Uint8, Values: 1, Pipeline: DefaultFilters()},
			{Name: "v", Type: Char, Values: VarLen, Pipeline: DefaultFilters()}}}
	if err := Create(path, s, nil); err != nil {
		t.Fatal(err)
	}
	files := localFiles(t)
	a, err := Open(ctx, files, path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for k, time := range times {
		box := Box{{at(int64(3 * k)), at(int64(3*k + 9))}, {at(int64(k)), at(7)}}
		var values [2]Values
		walkBox(box, func([]Coord) {
			values[0].Data = append(values[0].Data, byte(k))
			values[1].Offsets = append(values[1].Offsets, uint64(len(values[1].Data)))
			values[1].Data = append(values[1].Data, "abc"[:k+1]...)
		})
		if err := a.writeDense(ctx, box, values[:], time, time); err != nil {
			t.Fatal(err)
		}
	}
	a, err = Open(ctx, files, path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// names returns the names of all files and folders in an array.
func names(t *testing.T, path string) (list []string) {
	t.Helper()
	err := filepath.WalkDir(path, func(name string, _ fs.DirEntry, err error) error {
		list = append(list, name)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// TestMergeKeepsOrRemoves: the merged array shows what it showed; as it was before only where the fragments were kept.
func TestMergeKeepsOrRemoves(t *testing.T) {
	ctx := context.Background()
	for _, remove := range []bool{true, false} {
		path := filepath.Join(t.TempDir(), "a")
		a := several(t, path, [3]uint64{10, 20, 30})
		want := everything(t, a)
		early, err := Open(ctx, localFiles(t), path, Options{Until: 20})
		if err != nil {
			t.Fatal(err)
		}
		wantEarly := everything(t, early)
		if _, err := early.Merge(ctx, MergeOptions{}); fault.KindOf(err) != fault.Unsupported {
			t.Errorf("an array at a time was merged: %v", err)
		}
		var steps []int64
		total := int64(0)
		m, err := a.Merge(ctx, MergeOptions{Remove: remove, Progress: func(done, all int64) {
			steps, total = append(steps, done), all
		}})
		if err != nil {
			t.Fatal(err)
		}
		if len(steps) == 0 || steps[len(steps)-1] != total || !slices.IsSorted(steps) {
			t.Errorf("progress %v of %d", steps, total)
		}
		now, err := Open(ctx, localFiles(t), path, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if got := everything(t, now); !slices.EqualFunc(got, want, sameValues) || len(now.Fragments) != 1 ||
			now.Fragments[0].Name != m.Fragment {
			t.Errorf("%d fragments, %v, want %v", len(now.Fragments), got, want)
		}
		if remove != (len(now.Hidden) == 0) || len(m.Removed) != 3-len(now.Hidden) {
			t.Errorf("%d hidden, %d removed", len(now.Hidden), len(m.Removed))
		}
		then, err := Open(ctx, localFiles(t), path, Options{Until: 20})
		if err != nil {
			t.Fatal(err)
		}
		if remove {
			if len(then.Fragments) != 0 {
				t.Error("what was removed is there")
			}
		} else if got := everything(t, then); !slices.EqualFunc(got, wantEarly, sameValues) {
			t.Errorf("as it was: %v, want %v", got, wantEarly)
		}
	}
}

func sameValues(a, b Values) bool {
	return string(a.Data) == string(b.Data) && slices.Equal(a.Offsets, b.Offsets)
}

// TestMergeLeavesNothing: a merge that is cancelled at any tile leaves the files that there were.
func TestMergeLeavesNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a")
	a := several(t, path, [3]uint64{10, 20, 30})
	before := names(t, path)
	for stop := range int64(5) {
		ctx, cancel := context.WithCancel(context.Background())
		_, err := a.Merge(ctx, MergeOptions{Remove: true, Progress: func(done, _ int64) {
			if done > stop {
				cancel()
			}
		}})
		cancel()
		if !errors.Is(err, context.Canceled) || !slices.Equal(names(t, path), before) {
			t.Errorf("stopped after %d: %v, left %q", stop, err, names(t, path))
		}
	}
}

// TestMergeOfOneMillisecond: what cannot be hidden is merged only where it is removed.
func TestMergeOfOneMillisecond(t *testing.T) {
	ctx := context.Background()
	path := filepath.Join(t.TempDir(), "a")
	a := several(t, path, [3]uint64{10, 10, 10})
	before, want := names(t, path), everything(t, a)
	if _, err := a.Merge(ctx, MergeOptions{}); fault.KindOf(err) != fault.Unsupported ||
		!slices.Equal(names(t, path), before) {
		t.Errorf("it was merged: %v", err)
	}
	if _, err := a.Merge(ctx, MergeOptions{Remove: true}); err != nil {
		t.Fatal(err)
	}
	now, err := Open(ctx, localFiles(t), path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if got := everything(t, now); !slices.EqualFunc(got, want, sameValues) || len(now.Fragments) != 1 {
		t.Errorf("%v, want %v", got, want)
	}
}

// TestMergedFragmentsStayUntilTheNewOneIsOnDisk: nothing is removed before the new fragment has
// been placed, which waits for the disk, nor if that fails.
func TestMergedFragmentsStayUntilTheNewOneIsOnDisk(t *testing.T) {
	real := place
	defer func() { place = real }()
	for _, fails := range []bool{false, true} {
		place = real
		dir := filepath.Join(t.TempDir(), "array")
		large(t, dir)
		var files Files
		defer files.Close()
		a, err := Open(t.Context(), &files, dir, Options{})
		if err != nil {
			t.Fatal(err)
		}
		placed := 0
		place = func(f *durable.Folder, name string) error {
			placed++
			if fails {
				return errors.New("disk")
			}
			err := real(f, name)
			for _, old := range a.Fragments {
				if _, err := os.Stat(filepath.Join(old.path(), metadataName)); err != nil {
					t.Errorf("gone before the new fragment is on the disk: %v", err)
				}
			}
			return err
		}
		m, err := a.Merge(t.Context(), MergeOptions{Remove: true})
		switch {
		case placed != 1:
			t.Errorf("%d fragments were placed, want 1", placed)
		case fails && (err == nil || m != nil && len(m.Removed) > 0):
			t.Errorf("merged as %v although the new one is not on the disk: %v", m, err)
		case !fails && (err != nil || len(m.Removed) != len(a.Fragments)):
			t.Errorf("removed %q: %v", m.Removed, err)
		}
	}
}

// TestFragmentsThatHide: which fragments libtiledb 1.6.3 reads, of the times in their names.
func TestFragmentsThatHide(t *testing.T) {
	for _, c := range []struct {
		times [3][2]uint64
		keeps []int
	}{
		{[3][2]uint64{{1, 5}, {3, 8}, {4, 4}}, []int{0, 1}},
		{[3][2]uint64{{1, 8}, {2, 5}, {9, 9}}, []int{0, 2}},
		{[3][2]uint64{{1, 5}, {5, 9}, {5, 5}}, []int{0, 1}},
		{[3][2]uint64{{2, 2}, {1, 3}, {2, 5}}, []int{1, 2}},
		{[3][2]uint64{{1, 4}, {1, 7}, {4, 7}}, []int{1}},
		{[3][2]uint64{{1, 5}, {1, 5}, {6, 6}}, []int{0, 2}},
		{[3][2]uint64{{3, 3}, {1, 5}, {1, 5}}, []int{1}},
		{[3][2]uint64{{1, 7}, {1, 5}, {1, 7}}, []int{0}},
	} {
		var all, want []*Fragment
		for k, at := range c.times {
			all = append(all, &Fragment{Name: fmt.Sprintf("__%d_%d_%032d", at[0], at[1], k), From: at[0], To: at[1]})
		}
		for _, k := range c.keeps {
			want = append(want, all[k])
		}
		keep, hidden := (&Array{}).hide(slices.Clone(all), nil)
		if !slices.Equal(keep, want) || len(keep)+len(hidden) != 3 {
			t.Errorf("%v: %d kept, want %v", c.times, len(keep), c.keeps)
		}
	}
}
