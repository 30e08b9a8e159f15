package loader

import (
	"bytes"
	"context"
	"encoding/binary"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/loader/spec"
	"github.com/chaski-eo/chaski/shuffle"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store/tiledb"
)

// numbered is an array (n y x) in which every pixel has a number of its own.
func numbered(t testing.TB, n, h, w int) string {
	path := filepath.Join(t.TempDir(), "cube")
	s := cubeSchema("n y x", map[string]int{"n": n, "y": h, "x": w},
		map[string]int{"n": 1, "y": 7, "x": 9}, 10, tiledb.Int32)
	if err := tiledb.Create(path, s, nil); err != nil {
		t.Fatal(err)
	}
	var data []byte
	for i := range n * h * w {
		data = binary.LittleEndian.AppendUint32(data, uint32(i))
	}
	if err := openWritten(t, path).WriteDense(context.Background(), s.Domain(),
		[]tiledb.Values{{Data: data}}); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestArraysMix: the sources of a mixture may be arrays, each with its own dimensions.
func TestArraysMix(t *testing.T) {
	const h, w = 20, 31
	a, b := numbered(t, 3, h, w), numbered(t, 5, h, w)
	sp := Spec{BatchSize: 2, Shuffle: true, Mixture: spec.Mixture{Until: spec.UntilLongest, Sources: []Source{
		{Name: "a", Source: a}, {Name: "b", Source: b, Dims: "n y x"}}}}
	e, err := Open(t.Context(), sp, Options{Workers: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	seen := map[uint64]int{}
	for step := range e.Steps() {
		batch := wait(t, e.Start(t.Context(), shuffle.Ticket{First: 2 * step, Count: 2, RowStride: 1}, false))
		for r := range 2 {
			if !batch.Valid[r] {
				continue
			}
			seen[binary.LittleEndian.Uint64(batch.Tensor(spec.SourceColumn).Data[8*r:])]++
		}
		batch.Release()
	}
	if seen[0] < 5 || seen[1] < 5 {
		t.Errorf("%v", seen)
	}
}

// TestEncryptedArray: an encrypted array needs its key, from the options or the environment.
func TestEncryptedArray(t *testing.T) {
	path, key := filepath.Join(t.TempDir(), "a"), []byte("0123456789abcdef0123456789abcdef")
	s := cubeSchema("n y x", map[string]int{"n": 2, "y": 4, "x": 4},
		map[string]int{"n": 1, "y": 4, "x": 4}, 0, tiledb.Uint8)
	if err := tiledb.Create(path, s, key); err != nil {
		t.Fatal(err)
	}
	var files source.Files
	defer files.Close()
	a, err := tiledb.Open(t.Context(), &files, path, tiledb.Options{Key: key})
	if err != nil {
		t.Fatal(err)
	}
	data := []byte("the cells of two images of 4 x 4")
	if err := a.WriteDense(t.Context(), s.Domain(), []tiledb.Values{{Data: data}}); err != nil {
		t.Fatal(err)
	}
	sp := Spec{Source: path, BatchSize: 2}
	t.Setenv(tiledb.KeyVar, "")
	if _, err := Open(t.Context(), sp, Options{}); fault.KindOf(err) != fault.Unsupported ||
		!strings.Contains(err.Error(), "key") {
		t.Errorf("without a key: %v", err)
	}
	for name, o := range map[string]Options{"options": {ArrayKey: key}, "environment": {}} {
		if o.ArrayKey == nil {
			t.Setenv(tiledb.KeyVar, string(key))
		}
		e, err := Open(t.Context(), sp, o)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		b := wait(t, e.Start(t.Context(), shuffle.Ticket{Count: 2, RowStride: 1}, false))
		if !bytes.Equal(b.Tensor("image").Data, data) {
			t.Errorf("%s: %q", name, b.Tensor("image").Data)
		}
		b.Release()
		e.Close()
		t.Setenv(tiledb.KeyVar, "")
	}
}
