package packed

import (
	"encoding/binary"
	"os"
	"testing"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/hdf5"
	"github.com/chaski-eo/chaski/tools/testkit/corpus"
)

// FuzzSzip: a chunk of any content, behind the parameters of its filter, fills what it was asked for, or is refused. It
// starts from chunks that h5py wrote.
func FuzzSzip(f *testing.F) {
	file, err := os.ReadFile("../../testdata/hdf5/packed_latest.h5")
	if err != nil {
		f.Fatal(err)
	}
	r := &corpus.Mem{B: file}
	tree, err := hdf5.Open(f.Context(), r, func(int64) error { return nil })
	if err != nil {
		f.Fatal(err)
	}
	for _, path := range tree.Paths {
		d := tree.Nodes[path].Dataset
		if d == nil || len(d.Filters) != 1 || d.Filters[0].ID != hdf5.SZIP {
			continue
		}
		chunks, err := d.Chunks(f.Context(), r, func(int64) error { return nil })
		if err != nil {
			f.Fatal(err)
		}
		at, _ := chunks.Find(0)
		values := d.Filters[0].Data
		f.Add(values[szipOptions], values[szipBlock], values[szipBits], values[szipLine], file[at.Off:][:at.Size])
	}
	f.Fuzz(func(t *testing.T, options, block, bits, line uint32, b []byte) {
		if len(b) < szipHead {
			return
		}
		n := min(binary.LittleEndian.Uint32(b), 1<<16)
		binary.LittleEndian.PutUint32(b, n)
		var memory []byte
		err := Parameters{options, block, bits, line}.Szip(make([]byte, n), b, &memory)
		if err != nil && fault.KindOf(err) == 0 {
			t.Fatalf("an error without a kind: %v", err)
		}
	})
}
