package build

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store/taco"
)

// The child of TestKillsOfAppends appends to the folder in this variable, until it is killed.
const killedAppend = "CHASKI_TEST_KILLED_APPEND"

// appendOne appends a sample, whose id is the number of ZIPs that are there.
func appendOne(t *testing.T, dir string) {
	t.Helper()
	_, names, err := indexed(t.Context(), &source.Files{}, filepath.Join(dir, tacocatName))
	if err != nil {
		t.Fatal(err)
	}
	d := numbered(len(names))
	d.Samples.Samples = d.Samples.Samples[:1]
	d.Samples.Samples[0].ID = fmt.Sprint(len(names))
	_, err = Append(t.Context(), dir, Options{}, func(path string, c Collection) (*Result, error) {
		d.Collection = c
		return Create(t.Context(), d, path, Options{})
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestKillsOfAppends: a process that appends is killed at random moments. The index always has a first run of the ZIPs,
// each of which is there, and the next run goes on from it.
func TestKillsOfAppends(t *testing.T) {
	if dir := os.Getenv(killedAppend); dir != "" {
		for range 1 << 20 { // ends even if nobody kills it
			appendOne(t, dir)
			fmt.Println("written")
		}
		return
	}
	kills := 10
	if testing.Short() {
		kills = 2
	}
	rng := rand.New(rand.NewPCG(3, 4))
	for i := range kills {
		dir := filepath.Join(t.TempDir(), "parts")
		first := numbered(0)
		first.Samples.Samples = first.Samples.Samples[:1]
		first.Samples.Samples[0].ID = "0"
		if _, err := Create(t.Context(), first, dir, Options{PartBytes: 1 << 40}); err != nil {
			t.Fatal(err)
		}
		killWriter(t, rng, "TestKillsOfAppends", killedAppend+"="+dir)
		n := samplesAt(t, dir)
		appendOne(t, dir)
		if after := samplesAt(t, dir); n < 2 || after != n+1 {
			t.Fatalf("kill %d leaves %d samples, and the next run %d", i, n, after)
		}
		zips, err := filepath.Glob(filepath.Join(dir, "*.tacozip"))
		if err != nil || len(zips) != n+1 {
			t.Fatalf("kill %d leaves %q of %d: %v", i, zips, n, err)
		}
		if _, err := os.Lstat(filepath.Join(dir, journalName)); err == nil {
			t.Fatalf("kill %d leaves a journal", i)
		}
	}
}

// samplesAt counts the samples of a folder, whose ids are 0, 1, 2, …
func samplesAt(t *testing.T, dir string) int {
	t.Helper()
	index := filepath.Join(dir, tacocatName)
	d, err := taco.Open(t.Context(), &source.Files{}, []string{index}, taco.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if _, err := d.Verify(t.Context()); err != nil {
		t.Fatal(err)
	}
	rows, err := d.Visible(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	for n, row := range rows {
		e, err := d.Entry(t.Context(), 0, row)
		if err != nil || e.ID != fmt.Sprint(n) || strings.Contains(e.URI, ".tmp") {
			t.Fatalf("sample %d is %+v: %v", n, e, err)
		}
	}
	return len(rows)
}
