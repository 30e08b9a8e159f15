package catalog_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/source/openers"
	kinds "github.com/chaski-eo/chaski/store"
	"github.com/chaski-eo/chaski/store/catalog"
	"github.com/chaski-eo/chaski/tools/testkit/corpus"
)

// TestWithoutVirtual promises that a program without package virtual is told what to import.
func TestWithoutVirtual(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(corpus.Testdata(t), "vrt", "*.vrt"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	_, _, err = catalog.OpenAsset(t.Context(), new(openers.Files), files[0], 0)
	if fault.KindOf(err) != fault.Unsupported || !strings.Contains(err.Error(), "/store/catalog/virtual,") {
		t.Error(err)
	}
}

// TestWithoutStores promises the same of a store without its package.
func TestWithoutStores(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(corpus.Testdata(t), "hdf5", "*.h5"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	folder := filepath.Join(corpus.Testdata(t), "taco3", "scenes") // with rasters in it
	_, err = kinds.Of(t.Context(), new(openers.Files), folder)
	if fault.KindOf(err) != fault.Unsupported || !strings.Contains(err.Error(), "/loader/containers,") {
		t.Error(err)
	}
	_, err = catalog.Open(t.Context(), files[0], nil, catalog.Options{})
	if fault.KindOf(err) != fault.Unsupported || !strings.Contains(err.Error(), "/store/hdf5,") {
		t.Error(err)
	}
}
