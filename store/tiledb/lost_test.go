package tiledb

import (
	"bytes"
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/tools/testkit/testfile"
)

// TestLostCoordinates: libtiledb 1.6.3 takes the span of a window of int16 in 16 bits with a sign.
// The windows of these coordinates, shuffled and then reduced, span 65535 each: as that is -1
// there, it keeps 8 bits of every value. Thus the second of eight cells is at -1020 in one array
// and at -1018 in the other, and both have the same bytes: no reader can tell them apart. What the
// bytes say lies outside of the tile's own box, and is refused; libtiledb (1.6.3 and 2.30) gives
// cells that nobody wrote.
func TestLostCoordinates(t *testing.T) {
	ctx := context.Background()
	var files Files
	defer files.Close()
	var stored [][]byte
	for _, name := range []string{"one", "other"} {
		a, err := Open(ctx, &files, filepath.Join("testdata", "lost_coordinates", name), Options{})
		if err != nil {
			t.Fatal(err)
		}
		if want := (Interval{Int16.CoordOf(-1024), Int16.CoordOf(16896)}); a.NonEmpty()[0] != want {
			t.Errorf("%s: written from %v", name, a.NonEmpty())
		}
		b := testfile.Read(t, filepath.Join(a.Fragments[0].path(), coordsName+lists[tileOffsets].suffix))
		stored = append(stored, b)
		_, err = a.NewReader().Sparse(ctx, nil, a.Schema.Domain())
		if fault.KindOf(err) != fault.Corrupt || !strings.Contains(err.Error(), coordsName) ||
			!strings.Contains(err.Error(), "outside the bounding box of its tile") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if !bytes.Equal(stored[0], stored[1]) {
		t.Error("the arrays do not differ in their coordinates alone")
	}
}
