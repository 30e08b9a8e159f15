package xz

import (
	"bytes"
	"math/rand/v2"
	"testing"

	stream "github.com/ulikunitz/xz"
)

// TestPrefixes: the begin of a stream of several chunks is the begin of its content, wherever it ends, also where
// matches behind it reach back over all of it.
func TestPrefixes(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	rows := make([]byte, 0, 1<<20)
	row := make([]byte, 700)
	for range cap(rows) / len(row) {
		if len(rows) == 0 || r.IntN(3) == 0 {
			for i := range row {
				row[i] = byte(r.IntN(64))
			}
			rows = append(rows, row...)
			continue
		}
		begin := r.IntN(len(rows) - len(row) + 1) // from anywhere before
		rows = append(rows, rows[begin:begin+len(row)]...)
	}
	var src bytes.Buffer
	w, err := stream.NewWriter(&src)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(rows); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	for n := 1; n <= len(rows); n += 1 + r.IntN(len(rows)/10) {
		dst := make([]byte, n)
		if err := Decode(dst, src.Bytes()); err != nil || !bytes.Equal(dst, rows[:n]) {
			t.Errorf("the first %d of %d bytes: %v", n, len(rows), err)
		}
	}
}
