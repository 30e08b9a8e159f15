package filter

import (
	"bytes"
	"testing"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/tools/testkit/corpus"
)

// seedTiles are tiles by the encoder, of each filter and some pipelines.
func seedTiles(f *testing.F, add func(stored []byte, p Pipeline, e Elem, n int)) {
	k, err := NewKey(testKey)
	if err != nil {
		f.Fatal(err)
	}
	enc := NewEncoder(k)
	data := bytes.Repeat([]byte{0, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0}, 12)
	lists := [][]ID{{BitWidth, BitShuffle, Zstd}, {BitWidth, Gzip, BitShuffle, DoubleDelta},
		{AES256GCM, LZ4, BitWidth, Zstd}, {PositiveDelta, BitWidth, LZ4},
		{ByteShuffle, Gzip, AES256GCM}, {BitShuffle, RLE}}
	for _, id := range written {
		lists = append(lists, []ID{id})
	}
	for _, ids := range lists {
		p := Pipeline{MaxChunk: 64}
		for _, id := range ids {
			p.Filters = append(p.Filters, Filter{ID: id, Level: 1, Window: 32})
		}
		for _, e := range elems() {
			if stored, err := enc.Tile(nil, data, p, e); err == nil {
				add(stored, p, e, len(data))
			}
		}
	}
}

// FuzzTile: any bytes, any pipeline: the tile is filled or an error with a kind says why not, the memory
// for it is in proportion to the tile, and a part is that part of the whole.
func FuzzTile(f *testing.F) {
	seedTiles(f, func(stored []byte, p Pipeline, e Elem, n int) {
		f.Add(stored, p.append(nil), byte(e.Kind), byte(e.Size), uint16(n))
	})
	dec := key(f)
	f.Fuzz(func(t *testing.T, stored, pipeline []byte, kind, size byte, n uint16) {
		p, _, err := parse(pipeline)
		if err != nil {
			if fault.KindOf(err) == 0 {
				t.Fatalf("error without a kind: %v", err)
			}
			return
		}
		e := Elem{Kind: Kind(kind % 5), Size: 1 << (size % 4)}
		e.Cell = e.Size
		if len(p.Filters) > 8 {
			return // what passes between filters is bounded for each of them
		}
		dst := make([]byte, n, int(n)+Spare)
		got := corpus.Allocated(func() { err = dec.Tile(dst, stored, p, e, 0, len(dst)) })
		// bzip2 makes tables of its own for every stream.
		if got > 64<<20+100*(uint64(n)+uint64(len(stored))) {
			t.Fatalf("%d bytes allocated for a tile of %d from %d", got, n, len(stored))
		}
		if err != nil {
			if fault.KindOf(err) == 0 {
				t.Fatalf("error without a kind: %v", err)
			}
			return
		}
		part := make([]byte, n)
		lo, hi := int(n)/3, int(n)-int(n)/4
		if err := dec.Tile(part, stored, p, e, lo, hi); err != nil || !bytes.Equal(part[lo:hi], dst[lo:hi]) {
			t.Fatalf("a part of the tile: %v", err)
		}
	})
}

// FuzzFilters: each filter of ours, alone, on any metadata and data.
func FuzzFilters(f *testing.F) {
	seedTiles(f, func(stored []byte, p Pipeline, e Elem, _ int) {
		if c, _, err := nextChunk(stored, 8); err == nil && len(p.Filters) == 1 {
			f.Add(byte(p.Filters[0].ID), byte(e.Kind), byte(e.Size), c.meta, c.data, uint16(c.orig))
		}
	})
	dec := key(f)
	f.Fuzz(func(t *testing.T, id, kind, size byte, meta, data []byte, n uint16) {
		e := Elem{Kind: Kind(kind % 5), Size: 1 << (size % 4)}
		e.Cell, e.Alt = 2*e.Size, e.Size
		dec.steps = []step{{Filter{ID: ID(id % numFilters), Scale: 0.5, Offset: 3, Width: 1 << (kind / 5 % 4)}, e}}
		if !dec.steps[0].acts(e) {
			return
		}
		dst := make([]byte, n)
		err := dec.chunk(dst, tileChunk{orig: int(n), meta: meta, data: data})
		if err != nil && fault.KindOf(err) == 0 {
			t.Fatalf("error without a kind: %v", err)
		}
	})
}

// FuzzPipeline: what is accepted is written again as it was.
func FuzzPipeline(f *testing.F) {
	for _, id := range written {
		f.Add(Pipeline{MaxChunk: 100, Filters: []Filter{{ID: id}, {ID: Zstd, Level: 3}}}.append(nil))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		p, n, err := parse(b)
		if err != nil {
			if fault.KindOf(err) == 0 {
				t.Fatalf("error without a kind: %v", err)
			}
			return
		}
		if !bytes.Equal(p.append(nil), b[:n]) {
			t.Fatalf("%x is written as %x", b[:n], p.append(nil))
		}
	})
}
