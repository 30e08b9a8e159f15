package matlab_test

import (
	"testing"

	"github.com/chaski-eo/chaski/store/matlab"
	"github.com/chaski-eo/chaski/tools/testkit/arrayfile"
	"github.com/chaski-eo/chaski/tools/testkit/testfile"
)

const testdata = "../../testdata/matlab"

// TestSciPy compares every variable of the corpus, or of the folder in CHASKI_MATLAB, with what scipy.io.loadmat reads.
func TestSciPy(t *testing.T) { arrayfile.Compare(t, testdata, "CHASKI_MATLAB", matlab.Open) }

// TestDamaged: damaged files are read or refused, with a kind.
func TestDamaged(t *testing.T) {
	arrayfile.Damage(t, matlab.Open, testdata+"/plain.mat", testdata+"/packed.mat")
}

// FuzzOpen: a file of any content is read or refused, with a kind.
func FuzzOpen(f *testing.F) {
	for _, name := range [...]string{"plain.mat", "packed.mat"} {
		f.Add(testfile.Read(f, testdata+"/"+name))
	}
	f.Fuzz(func(t *testing.T, b []byte) { arrayfile.ReadAll(t, b, "a.mat", matlab.Open) })
}
