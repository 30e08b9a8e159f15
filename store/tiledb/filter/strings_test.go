package filter

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/chaski-eo/chaski/fault"
)

// stringChunk makes a tile of one chunk by a filter of strings: the metadata that the specification lists, and data.
func stringChunk(strings, offsets int, count, length byte, rest, data []byte) []byte {
	var meta []byte
	for _, n := range []int{0, 1, strings, len(data), offsets} {
		meta = binary.LittleEndian.AppendUint32(meta, uint32(n))
	}
	meta = append(append(meta, count, length), rest...)
	b := binary.LittleEndian.AppendUint64(nil, 1)
	for _, n := range []int{strings, len(data), len(meta)} {
		b = binary.LittleEndian.AppendUint32(b, uint32(n))
	}
	return append(append(b, meta...), data...)
}

// TestStrings reads the tiles that the specification describes: runs, and a dictionary.
func TestStrings(t *testing.T) {
	want, offs := []byte("aaabbcaa"), []uint64{0, 2, 3, 5, 6}
	// two cells "aa" and "a" have lengths of their own, so that runs are of one cell
	runs := []byte{1, 2, 'a', 'a', 1, 1, 'a', 1, 2, 'b', 'b', 1, 1, 'c', 1, 2, 'a', 'a'}
	dict := []byte{0, 2, 'a', 'a', 0, 1, 'a', 0, 2, 'b', 'b', 0, 1, 'c'}
	words := append(binary.LittleEndian.AppendUint32(nil, uint32(len(dict))), dict...)
	for _, c := range []struct {
		id   ID
		tile []byte
	}{
		{RLE, stringChunk(len(want), 8*len(offs), 1, 1, nil, runs)},
		{Dictionary, stringChunk(len(want), 8*len(offs), 1, 2, words, []byte{0, 1, 2, 3, 0})},
	} {
		p := Pipeline{Filters: []Filter{{ID: c.id}}}
		dst, got := make([]byte, len(want)), make([]byte, 8*len(offs))
		if err := NewDecoder(nil).Strings(dst, got, c.tile, p, Elem{Kind: Char, Size: 1, Cell: 1}); err != nil {
			t.Fatalf("%v: %v", c.id, err)
		}
		for i, o := range offs {
			if !bytes.Equal(dst, want) || binary.LittleEndian.Uint64(got[8*i:]) != o {
				t.Fatalf("%v: %q at %v", c.id, dst, got)
			}
		}
	}
}

// FuzzStrings: metadata and data of both filters.
func FuzzStrings(f *testing.F) {
	f.Add(true, byte(1), byte(1), []byte(nil), []byte{3, 1, 'a'}, uint8(3), uint8(3))
	f.Add(false, byte(1), byte(1), []byte{2, 0, 0, 0, 1, 'a'}, []byte{0, 0}, uint8(2), uint8(2))
	f.Fuzz(func(t *testing.T, rle bool, count, length byte, rest, data []byte, n, cells uint8) {
		p := Pipeline{Filters: []Filter{{ID: Dictionary}}}
		if rle {
			p.Filters[0].ID = RLE
		}
		tile := stringChunk(int(n), 8*int(cells), count, length, rest, data)
		err := NewDecoder(nil).Strings(make([]byte, n), make([]byte, 8*int(cells)), tile, p, Elem{Kind: Char, Size: 1})
		if err != nil && fault.KindOf(err) == 0 {
			t.Fatalf("error without a kind: %v", err)
		}
	})
}

// TestChecksums: a chunk whose data or checksum differs in a bit is refused.
func TestChecksums(t *testing.T) {
	data := []byte("forty-two bytes of data that have checksums")
	for _, id := range []ID{MD5, SHA256} {
		meta := binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(nil, 0), 1)
		meta = append(binary.LittleEndian.AppendUint64(meta, uint64(len(data))), digest(id, data)...)
		tile := binary.LittleEndian.AppendUint64(nil, 1)
		for _, n := range []int{len(data), len(data), len(meta)} {
			tile = binary.LittleEndian.AppendUint32(tile, uint32(n))
		}
		tile = append(append(tile, meta...), data...)
		p, e := Pipeline{Filters: []Filter{{ID: id}}}, Elem{Kind: Unsigned, Size: 1, Cell: 1}
		dst := make([]byte, len(data))
		if err := NewDecoder(nil).Tile(dst, tile, p, e, 0, len(dst)); err != nil || !bytes.Equal(dst, data) {
			t.Fatalf("%v: %q, %v", id, dst, err)
		}
		for at := 20 + 8; at < len(tile); at++ {
			bad := bytes.Clone(tile)
			bad[at] ^= 1
			if err := NewDecoder(nil).Tile(dst, bad, p, e, 0, len(dst)); fault.KindOf(err) != fault.Corrupt {
				t.Fatalf("%v: bit 0 of byte %d: %v", id, at, err)
			}
		}
	}
}
