package recipe_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/ops/recipe"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store/taco"
)

// contents are the ids of a container's samples with the bytes of their files, in order.
func contents(t *testing.T, path string) (all []string) {
	t.Helper()
	files := &source.Files{}
	defer files.Close()
	samples(t, path, func(ctx context.Context, d *taco.Dataset, row int) {
		e, err := d.EntryAt(ctx, 0, row)
		if err != nil {
			t.Fatal(err)
		}
		r, err := files.Open(ctx, e.URI)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		b := make([]byte, e.Size)
		if err := r.ReadAt(ctx, b, e.Offset); err != nil {
			t.Fatal(err)
		}
		all = append(all, fmt.Sprintf("%s %x", e.ID, b))
	})
	return all
}

// TestDividedContainer: the parts of a container, by count and by size, have the samples of the container that is one
// ZIP, in its order, and each is a container with its share of them. So has the folder, by its index.
func TestDividedContainer(t *testing.T) {
	unsynced(t)
	dir := scenes(t, 2)
	text := "source: img\nwindows: {kind: grid, size: 20}\n"
	zip, _, err := create(t, dir, text, 2)
	if err != nil {
		t.Fatal(err)
	}
	want := contents(t, zip) // 50 chips
	chip := int64(len(want[0]) / 2)
	for name, c := range map[string]struct {
		output recipe.Output
		parts  int
		most   int64 // bytes of a part's files
	}{
		"count": {recipe.Output{PartCount: 4}, 4, 14 * chip},
		"size":  {recipe.Output{PartBytes: 12 * chip}, 5, 12 * chip},
	} {
		out := filepath.Join(t.TempDir(), name)
		res, err := recipe.Make(t.Context(), parsed(t, text), out, recipe.Options{Base: dir, Output: c.output})
		if err != nil || res.Samples != 50 || res.Windows != 50 {
			t.Fatalf("%s: %+v, %v", name, res, err)
		}
		if have := contents(t, out); !slices.Equal(have, want) {
			t.Errorf("%s: %d samples by the index, want %d, and the same", name, len(have), len(want))
		}
		zips, err := filepath.Glob(filepath.Join(out, "*.tacozip"))
		if err != nil || len(zips) < c.parts || len(zips) > c.parts+1 {
			t.Errorf("%s: the parts are %v (%v)", name, zips, err)
		}
		var all []string
		for _, zip := range zips {
			part, size := contents(t, zip), int64(0)
			for _, s := range part {
				size += int64(len(s)-strings.Index(s, " ")-1) / 2
			}
			if size > c.most {
				t.Errorf("%s: %s has %d bytes", name, zip, size)
			}
			all = append(all, part...)
		}
		if !slices.Equal(all, want) {
			t.Errorf("%s: %d samples of all parts, want %d, and the same", name, len(all), len(want))
		}
	}
}

// TestDividedOtherwise: a folder that is there is refused before the work, and more parts than chips after it. A run
// with fewer parts goes on with what that one made, and leaves nothing beside the container.
func TestDividedOtherwise(t *testing.T) {
	unsynced(t)
	dir := scenes(t, 1)
	r := parsed(t, "source: img\nwindows: {kind: grid, size: 20}\n")
	out := filepath.Join(t.TempDir(), "out")
	windows := 0
	run := func(parts int) error {
		windows = 0
		_, err := recipe.Make(t.Context(), r, out, recipe.Options{Base: dir, Output: recipe.Output{PartCount: parts},
			Resume: true, Shard: 5, Progress: func(int64, int64) { windows++ }})
		return err
	}
	if err := run(26); !errors.Is(err, fault.Unsupported) || windows != 25 {
		t.Fatalf("26 parts of 25 chips: %v after %d windows", err, windows)
	}
	if _, err := os.Lstat(out); err == nil {
		t.Fatal("a container is there")
	}
	if err := run(5); err != nil || windows != 5 {
		t.Fatalf("5 parts: %v after %d windows", err, windows)
	}
	if left, err := os.ReadDir(filepath.Dir(out)); err != nil || len(left) != 1 {
		t.Errorf("it leaves %v (%v)", left, err)
	}
	if err := run(5); !errors.Is(err, fault.Unsupported) || windows != 0 {
		t.Errorf("a folder that is there: %v after %d windows", err, windows)
	}
}
