package container

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/store/taco"
	"github.com/chaski-eo/chaski/tools/testkit/corpus"
)

// TestSessionHoldsFewContainers: of many containers, the most recently used ones stay open.
func TestSessionHoldsFewContainers(t *testing.T) {
	b, err := os.ReadFile(filepath.Join(corpus.Testdata(t), "coast", "flat.tacozip"))
	if err != nil {
		t.Fatal(err)
	}
	h := newSession()
	defer h.close()
	ctx := context.WithValue(t.Context(), sessionKey{}, h)
	dir := t.TempDir()
	open := func(i int) *taco.Dataset {
		t.Helper()
		f := containerFlags{mode: "intersection"}
		d, done, err := f.dataset(ctx, []string{filepath.Join(dir, strconv.Itoa(i)+".tacozip")})
		if err != nil {
			t.Fatal(err)
		}
		done(nil)
		return d
	}
	var sets []*taco.Dataset
	for i := range 2 * maxSets {
		if err := os.WriteFile(filepath.Join(dir, strconv.Itoa(i)+".tacozip"), b, 0o600); err != nil {
			t.Fatal(err)
		}
		sets = append(sets, open(i))
	}
	if n := h.sets.Len(); n != maxSets {
		t.Errorf("%d datasets are held", n)
	}
	if open(2*maxSets-1) != sets[2*maxSets-1] || open(maxSets) != sets[maxSets] {
		t.Error("one that was used last is opened again")
	}
	if open(0) == sets[0] {
		t.Error("the first is still held")
	}
	f := containerFlags{mode: "intersection"}
	first, done, err := f.dataset(ctx, []string{filepath.Join(dir, "0.tacozip")})
	if err != nil {
		t.Fatal(err)
	}
	done(fault.New(fault.Corrupt, "table", 0, "broken"))
	if open(0) == first {
		t.Error("one that failed is kept")
	}
}
