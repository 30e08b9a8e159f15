package corpus

import (
	"bytes"
	"context"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"github.com/chaski-eo/chaski/tools/testkit/testfile"
)

// TestRows: a manifest is a value a line, and the files of the module's own one are there.
func TestRows(t *testing.T) {
	dir := t.TempDir()
	testfile.Write(t, filepath.Join(dir, "manifest.jsonl"), []byte("{\"n\":1}\n{\"n\":2}\n"))
	rows := Rows[struct{ N int }](t, dir)
	if len(rows) != 2 || rows[0].N != 1 || rows[1].N != 2 {
		t.Errorf("%+v", rows)
	}
	files := Manifest(t, filepath.Join(Testdata(t), "raster"))
	if len(files) < 10 {
		t.Fatalf("%d files", len(files))
	}
	for i := range files {
		files[i].Bytes(t) // it fails where the file is missing
	}
}

// TestDamage: a damaged copy differs from the file, which stays as it is.
func TestDamage(t *testing.T) {
	// A footer of 16 bytes, its length, and the magic stand at the end of a Parquet file.
	whole := append(bytes.Repeat([]byte("PAR1 and pages"), 40), "\x10\x00\x00\x00PAR1"...)
	before := bytes.Clone(whole)
	rng := rand.New(rand.NewPCG(1, 1))
	for k := range 200 {
		if bad := DamageParquet(rng, whole, k); bytes.Equal(bad, whole) && k > 0 && len(bad) == len(whole) {
			t.Errorf("copy %d is not damaged", k)
		}
	}
	if !bytes.Equal(whole, before) {
		t.Error("the file itself was changed")
	}
}

// TestMem: reads within the bytes return them, and others are errors.
func TestMem(t *testing.T) {
	m := &Mem{B: []byte("0123456789")}
	p := make([]byte, 4)
	if err := m.ReadAt(context.Background(), p, 6); err != nil || string(p) != "6789" {
		t.Errorf("%q, %v", p, err)
	}
	for _, off := range []int64{7, -1, 1 << 62} {
		if err := m.ReadAt(context.Background(), p, off); err == nil {
			t.Errorf("4 bytes at %d of 10", off)
		}
	}
}

var kept []byte

// TestAllocated counts at least what is allocated.
func TestAllocated(t *testing.T) {
	if n := Allocated(func() { kept = make([]byte, 1<<20) }); n < 1<<20 {
		t.Errorf("%d bytes for %d", n, len(kept))
	}
}
