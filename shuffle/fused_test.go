package shuffle

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"testing"

	"github.com/chaski-eo/chaski/tools/testkit/race"
)

// TestApportionRoundsProducts: compilers for arm64 fuse a product and the subtraction of its whole
// part into one operation, which would give other parts here. The expected parts are Python's,
// which rounds after every operation.
func TestApportionRoundsProducts(t *testing.T) {
	for _, c := range []struct {
		total   int64
		weights []float64
		parts   []int64
	}{
		{1000, []float64{0.7, 0.3, 7}, []int64{88, 37, 875}},
		{100, []float64{7, 0.7, 7, 0.3}, []int64{47, 5, 46, 2}},
		{1000, []float64{0.7, 1, 0.1}, []int64{389, 555, 56}},
	} {
		if got, err := Apportion(c.total, c.weights); err != nil || !slices.Equal(got, c.parts) {
			t.Errorf("%d by %v: %v, %v, want %v", c.total, c.weights, got, err, c.parts)
		}
	}
}

// TestNothingIsFused: no compiler may fuse a product and a sum into one operation, because machines would then have
// different bits. Package crs, whose results are rounded, shows that the test would see it.
func TestNothingIsFused(t *testing.T) {
	if testing.Short() || race.Enabled {
		t.Skip("compiles packages for another machine")
	}
	for _, name := range []string{".", "../internal/crs/lonlat"} {
		if places := fused(t, name); len(places) > 0 {
			t.Errorf("%s has fused operations: %v", name, places)
		}
	}
	if len(fused(t, "../internal/crs")) == 0 {
		t.Error("no operation of crs is found to be fused")
	}
}

// fused returns the places at which a compiler for arm64 fuses a product and a sum.
func fused(t *testing.T, name string) (places []string) {
	// The first call compiles 70 packages of the standard library, too: 10 s of processor time, and 13 s without these
	// flags. The rate, which changes nothing without a profile, differs for each call: go build may show nothing of a
	// package in its cache, as when another build has stored the package and not yet what the compiler printed.
	printed := fmt.Sprintf("-gcflags=-dwarf=false -S -memprofilerate=%d", 1+rand.Int32())
	cmd := exec.Command("go", "build", "-gcflags=all=-dwarf=false", printed, "-o", os.DevNull, name)
	cmd.Env = append(os.Environ(), "GOARCH=arm64", "GOOS=linux", "CGO_ENABLED=0", "GOFLAGS=", "GOGC=off",
		"GOMEMLIMIT=1GiB")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Skipf("it does not compile for arm64 here: %v", err)
	}
	for _, m := range regexp.MustCompile(`\((?:[^()]*/)?(\w+\.go:\d+)\)\s+FN?M(?:ADD|SUB)[SD]\b`).
		FindAllSubmatch(out, -1) {
		places = append(places, string(m[1]))
	}
	return places
}
