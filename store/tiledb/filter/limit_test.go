package filter

import (
	"encoding/binary"
	"testing"

	"github.com/chaski-eo/chaski/fault"
)

// TestLargeChunksHaveLimits: what passes between the filters of a large chunk is bounded before memory is taken for it.
func TestLargeChunksHaveLimits(t *testing.T) {
	const n = 48 << 20
	for _, c := range []struct {
		meta, data uint32
		kind       fault.Kind
	}{
		{13, n, fault.Corrupt}, // there is no such data, but it is asked for
		{n + largeChunk, n, fault.Limit},
		{13, 3 * n, fault.Limit},
	} {
		b := binary.LittleEndian.AppendUint64(nil, 1)
		for _, v := range []uint32{n, 2, 24, 1, 1, c.meta, 1, c.data, 1} {
			b = binary.LittleEndian.AppendUint32(b, v)
		}
		b = append(b, 0, 0)
		p := Pipeline{MaxChunk: n, Filters: []Filter{{ID: BitWidth, Window: n}, {ID: Zstd}}}
		if err := NewDecoder(nil).Tile(make([]byte, n), b, p, Elem{Kind: Unsigned, Size: 2, Cell: 2}, 0,
			n); fault.KindOf(err) != c.kind {
			t.Errorf("%d bytes of metadata and %d of data: %v", c.meta, c.data, err)
		}
	}
}
