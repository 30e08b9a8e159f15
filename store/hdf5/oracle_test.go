package hdf5_test

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/source/openers"
	"github.com/chaski-eo/chaski/store/arrays"
	"github.com/chaski-eo/chaski/store/hdf5"
	"github.com/chaski-eo/chaski/tools/testkit/testfile"
)

// testdata is the folder of the corpus.
const testdata = "../../testdata/hdf5"

// dataset is what h5py reads of a dataset.
type dataset struct {
	Shape  []int64
	DType  string
	SHA256 string
}

// open opens a file of the corpus, or another one.
func open(t testing.TB, name string) *arrays.Node {
	t.Helper()
	node, err := hdf5.Open(context.Background(), &openers.Files{}, name, arrays.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return node
}

// read returns all elements of an array.
func read(ctx context.Context, a *arrays.Array) ([]byte, error) {
	size := int64(a.DType.Size())
	for _, n := range a.Shape {
		size *= n
	}
	out := make([]byte, size)
	if size == 0 {
		return out, nil
	}
	return out, a.Read(ctx, out, make([]int64, len(a.Shape)), a.Shape)
}

// TestH5py compares every dataset of the corpus, or of the folder in CHASKI_HDF5, with what h5py reads.
func TestH5py(t *testing.T) {
	folder := cmp.Or(os.Getenv("CHASKI_HDF5"), testdata)
	text := testfile.Read(t, filepath.Join(folder, "expected.json"))
	var files map[string]map[string]*dataset
	if err := json.Unmarshal(text, &files); err != nil {
		t.Fatal(err)
	}
	for name, want := range files {
		t.Run(name, func(t *testing.T) {
			list, err := open(t, filepath.Join(folder, name)).Members(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			seen := 0
			for _, member := range list {
				expected, ok := want[member.Path]
				if !ok && fault.KindOf(member.Err) == fault.Unsupported {
					continue // a link to another file
				}
				if seen++; !ok {
					t.Errorf("%s: h5py has none", member.Path)
					continue
				}
				compare(t, member, expected)
			}
			if seen != len(want) {
				t.Errorf("%d datasets, h5py reads %d", seen, len(want))
			}
		})
	}
}

// compare compares a dataset with what h5py reads.
func compare(t *testing.T, m arrays.Member, want *dataset) {
	t.Helper()
	if want == nil {
		if fault.KindOf(m.Err) != fault.Unsupported {
			t.Errorf("%s: %v, should not be supported", m.Path, m.Err)
		}
		return
	}
	if m.Err != nil {
		t.Errorf("%s: %v", m.Path, m.Err)
		return
	}
	dtype := m.Array.DType.String()
	if m.Array.Bool {
		dtype = "bool"
	}
	if !slices.Equal(m.Array.Shape, want.Shape) || dtype != want.DType {
		t.Errorf("%s: %v of %s, h5py has %v of %s", m.Path, m.Array.Shape, dtype, want.Shape, want.DType)
		return
	}
	data, err := read(context.Background(), m.Array)
	sum := sha256.Sum256(data)
	if err != nil || hex.EncodeToString(sum[:]) != want.SHA256 {
		t.Errorf("%s: %v, other elements than h5py reads", m.Path, err)
	}
}
