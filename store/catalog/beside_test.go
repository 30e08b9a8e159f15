package catalog_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/source/openers"
	"github.com/chaski-eo/chaski/store/catalog"
	testkit "github.com/chaski-eo/chaski/tools/testkit/corpus"
	"github.com/chaski-eo/chaski/tools/testkit/testfile"
)

// TestBesideAgainstGDAL: rasters lie where GDAL says, by the files beside them.
func TestBesideAgainstGDAL(t *testing.T) {
	dir := filepath.Join(testkit.Testdata(t), "beside")
	for _, f := range testkit.Rows[struct {
		Path      string
		Transform *[6]float64
		EPSG      int
	}](t, dir) {
		a, m, err := catalog.OpenAsset(t.Context(), new(openers.Files), filepath.Join(dir, f.Path), 0)
		if err != nil {
			t.Fatal(err)
		}
		if (m.Transform == nil) != (f.Transform == nil) || m.Transform != nil && *m.Transform != *f.Transform ||
			m.EPSG != f.EPSG || a.Beside == "" || (a.MaskFile != nil) != (f.Path == "mask.tif") {
			t.Errorf("%s: %v EPSG:%d, files %q; GDAL has %v EPSG:%d", f.Path, m.Transform, m.EPSG, a.Beside,
				f.Transform, f.EPSG)
		}
		if f.Path == "pam.tif" && !slices.Equal(a.Names, []string{"red", ""}) {
			t.Errorf("%s: bands %q", f.Path, a.Names)
		}
	}
}

// copied copies a file of testdata.
func copied(t *testing.T, name, to string) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(testkit.Testdata(t), "beside", name))
	if err == nil {
		err = os.WriteFile(to, b, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestADirectoryIsListedOnce: the names of a directory that has not changed are not read again, and those of one that
// has are.
func TestADirectoryIsListedOnce(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "x")
	for _, name := range []string{"a.tif.msk", "a.tfw", "b.wld", "other.txt", "x"} {
		testfile.Write(t, filepath.Join(dir, name), nil)
	}
	old := time.Now().Add(-time.Hour)
	age := func() {
		if err := errors.Join(os.Chtimes(dir, old, old), os.Chtimes(file, old, old)); err != nil {
			t.Fatal(err)
		}
	}
	want := func(name, files string) {
		t.Helper()
		got := ""
		for range 100_000 { // the names count for a short time even if the directory changes
			if got = catalog.BesideOf(t.Context(), new(openers.Files), filepath.Join(dir, name)); got == files {
				return
			}
		}
		t.Errorf("%s: %q, want %q", name, got, files)
	}
	age()
	want("a.tif", ".msk .tfw")
	if err := os.Remove(filepath.Join(dir, "b.wld")); err != nil {
		t.Fatal(err)
	}
	age() // as if nothing had changed
	want("b.tif", ".wld")
	if err := os.Remove(filepath.Join(dir, "a.tfw")); err != nil {
		t.Fatal(err)
	}
	want("a.tif", ".msk")
	want("b.tif", "")
	want("x/a.tif", "")
	if err := os.Remove(file); err != nil { // which becomes a directory of the same age
		t.Fatal(err)
	}
	testfile.Write(t, filepath.Join(file, "a.tif.msk"), nil)
	age()
	want("x/a.tif", ".msk")
}

// TestBesideStaysBelowRoots: a file beside a raster that a link leads out of the roots is not read.
func TestBesideStaysBelowRoots(t *testing.T) {
	root, outside := t.TempDir(), t.TempDir()
	path := filepath.Join(root, "mask.tif")
	copied(t, "mask.tif", path)
	copied(t, "mask.tif.msk", filepath.Join(outside, "secret"))
	if err := os.Symlink(filepath.Join(outside, "secret"), path+".msk"); err != nil {
		t.Skip(err)
	}
	open := openers.Below(new(openers.Files), []string{root})
	_, _, err := catalog.OpenAsset(t.Context(), open, path, 0)
	if !errors.Is(err, fault.NotFound) || !strings.Contains(err.Error(), "mask.tif.msk") {
		t.Errorf("%v", err)
	}
	if a, _, err := catalog.OpenAsset(t.Context(), new(openers.Files), path, 0); err != nil || a.MaskFile == nil {
		t.Errorf("without roots: %v", err)
	}
}

// TestNothingBesideParts: members of containers, and other openers of one object, have nothing beside them.
func TestNothingBesideParts(t *testing.T) {
	path := filepath.Join(testkit.Testdata(t), "beside", "pam.tif")
	one := source.OpenOne(func(ctx context.Context) (source.Reader, error) {
		return new(openers.Files).Open(ctx, path)
	})
	a, _, err := catalog.OpenAsset(t.Context(), one, path, 0)
	if err != nil || a.Beside != "" || a.Place.EPSG != 32633 {
		t.Errorf("%q, %v", a.Beside, err)
	}
	if beside := catalog.BesideOf(t.Context(), one, path); beside != "" {
		t.Errorf("beside the only file lies %q", beside)
	}
}

// TestADirectoryThatHangs: a directory whose listing hangs holds up rasters in it, until their context ends, and no
// others.
func TestADirectoryThatHangs(t *testing.T) {
	hangs, other := t.TempDir(), t.TempDir()
	for _, dir := range []string{hangs, other} {
		for _, name := range []string{"a.tif", "a.tif.aux.xml"} {
			testfile.Write(t, filepath.Join(dir, name), nil)
		}
	}
	release := catalog.HoldListing(t, hangs)
	if got := catalog.BesideOf(t.Context(), new(openers.Files), filepath.Join(other, "a.tif")); got != ".aux.xml" {
		t.Errorf("beside a raster elsewhere lies %q", got)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if got := catalog.BesideOf(ctx, new(openers.Files), filepath.Join(hangs, "a.tif")); got != "" {
		t.Errorf("a canceled opening got %q", got)
	}
	release()
	if got := catalog.BesideOf(t.Context(), new(openers.Files), filepath.Join(hangs, "a.tif")); got != ".aux.xml" {
		t.Errorf("afterwards %q lies beside it", got)
	}
}
