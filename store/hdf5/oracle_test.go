package hdf5_test

import (
	"context"
	"testing"

	"github.com/chaski-eo/chaski/source/openers"
	"github.com/chaski-eo/chaski/store/arrays"
	"github.com/chaski-eo/chaski/store/hdf5"
	"github.com/chaski-eo/chaski/tools/testkit/arrayfile"
)

// testdata is the folder of the corpus.
const testdata = "../../testdata/hdf5"

// open opens a file of the corpus, or another one.
func open(t testing.TB, name string) *arrays.Node {
	t.Helper()
	node, err := hdf5.Open(context.Background(), &openers.Files{}, name, arrays.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return node
}

// TestH5py compares every dataset of the corpus, or of the folder in CHASKI_HDF5, with what h5py reads.
func TestH5py(t *testing.T) { arrayfile.Compare(t, testdata, "CHASKI_HDF5", hdf5.Open) }
