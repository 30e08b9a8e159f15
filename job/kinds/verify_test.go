package kinds

import (
	"math/rand/v2"
	"path/filepath"
	"testing"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/ops/verify"
	"github.com/chaski-eo/chaski/tools/testkit/race"
)

// TestAnySplitIsOneReport: any number of shards, in any order, some of them twice, gives the report of one pass, and
// its first fault: over good files, bad ones, a container and an array.
func TestAnySplitIsOneReport(t *testing.T) {
	race.SkipCovered(t)
	dir := chips(t, 9)
	for _, name := range []string{"a.tif", "b.tif", "a/z.tif", "b/z.tif"} {
		write(t, filepath.Join(dir, "chips", name), []byte("no TIFF "+name))
	}
	coast, err := filepath.Abs("../../testdata/coast/coast.tacozip")
	if err != nil {
		t.Fatal(err)
	}
	paths := []string{filepath.Join(dir, "chips"), coast, filepath.Join(dir, "chips", "b.tif")}
	r := rand.New(rand.NewPCG(1, 2))
	for _, maxFaults := range []int{2, 1000} {
		one, err := verify.Paths(t.Context(), paths, verify.Options{MaxFaults: maxFaults})
		if err != nil {
			t.Fatal(err)
		}
		want := asJSON(t, one) + "\n"
		if one.Faulty != 5 {
			t.Fatal(want)
		}
		for _, shards := range []int{1, 4, 99} {
			j := plan(t, &Verify{Paths: paths, MaxFaults: maxFaults}, shards)
			anyOrder(t, r, j)
			got, o, err := merge(t, j, "")
			if err != nil {
				t.Fatal(err)
			}
			if string(got) != want {
				t.Errorf("%d shards: %s\nwant %s", shards, got, want)
			}
			if o.Fault == nil || fault.Line(o.Fault) != fault.Line(one.Err()) ||
				fault.KindOf(o.Fault) != fault.KindOf(one.Err()) {
				t.Errorf("%d shards: %v, want %v", shards, o.Fault, one.Err())
			}
		}
	}
}
