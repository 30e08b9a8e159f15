package hdf5_test

import (
	"testing"

	"github.com/chaski-eo/chaski/store/hdf5"
	"github.com/chaski-eo/chaski/tools/testkit/arrayfile"
)

// testdata is the folder of the corpus.
const testdata = "../../testdata/hdf5"

// TestH5py compares every dataset of the corpus, or of the folder in CHASKI_HDF5, with what h5py reads.
func TestH5py(t *testing.T) { arrayfile.Compare(t, testdata, "CHASKI_HDF5", hdf5.Open) }
