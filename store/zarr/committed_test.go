package zarr

import (
	"archive/zip"
	"os"
	"testing"
)

// TestCommittedArrays: boxes of arrays that zarr-python wrote have the cells that it read of them.
func TestCommittedArrays(t *testing.T) {
	z, err := zip.OpenReader("testdata/arrays.zip")
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	dir := t.TempDir()
	if err := os.CopyFS(dir, z); err != nil {
		t.Fatal(err)
	}
	list, err := os.Open("testdata/arrays.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer list.Close()
	if n := compare(t, dir, list); n != 72 {
		t.Errorf("%d arrays, 72 are in the list", n)
	}
}
