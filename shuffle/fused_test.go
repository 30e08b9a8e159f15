package shuffle

import (
	"bufio"
	"bytes"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
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

// TestNothingIsFused: no compiler may fuse a product and a sum into one operation, because machines
// would then have different bits. quality.go is exempt: its measurements do not decide an order.
func TestNothingIsFused(t *testing.T) {
	if testing.Short() || race.Enabled {
		t.Skip("compiles packages for another machine")
	}
	// It compiles 70 packages of the standard library, too: 10 s of processor time, and 13 s without these flags.
	cmd := exec.Command("go", "build", "-gcflags=all=-dwarf=false", "-gcflags=-dwarf=false -S", "-o", os.DevNull, ".",
		"../crs/lonlat")
	cmd.Env = append(os.Environ(), "GOARCH=arm64", "GOOS=linux", "CGO_ENABLED=0", "GOFLAGS=", "GOGC=off",
		"GOMEMLIMIT=1GiB")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Skipf("it does not compile for arm64 here: %v", err)
	}
	fused := regexp.MustCompile(`\((?:[^()]*/)?(\w+\.go:\d+)\)\s+FN?M(ADD|SUB)[SD]\b`)
	lines, exempt := 0, 0
	for s := bufio.NewScanner(bytes.NewReader(out)); s.Scan(); lines++ {
		m := fused.FindStringSubmatch(s.Text())
		switch {
		case m == nil:
		case strings.HasPrefix(m[1], "quality.go:"):
			exempt++
		default:
			t.Errorf("%s is fused", m[1])
		}
	}
	if lines < 1000 || exempt == 0 {
		t.Errorf("%d lines of assembly, %d operations that may be fused", lines, exempt)
	}
}
