package rumi

import (
	"bytes"
	"encoding/hex"
	"path/filepath"
	"slices"
	"testing"

	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/tools/testkit/corpus"
	"github.com/chaski-eo/chaski/tools/testkit/testfile"
)

// cutFile is a line of testdata/raster/rumi-cut/manifest.jsonl.
type cutFile struct {
	Path, DType, SHA256, Blob string
	Shape                     []int
}

// TestCutTilesAndComponents: files of rumi-eo 0.12 to 0.14 cut tiles at the edges, and may hold the
// components of complex samples. They read as the arrays of numpy that were written, with the blob
// of their writer and with one made from the file.
func TestCutTilesAndComponents(t *testing.T) {
	dir := filepath.Join(corpus.Testdata(t), "raster", "rumi-cut")
	for _, f := range corpus.Rows[cutFile](t, dir) {
		t.Run(f.Path, func(t *testing.T) {
			file := testfile.Read(t, filepath.Join(dir, f.Path))
			blob, err := hex.DecodeString(f.Blob)
			if err != nil || !IsBlob(blob) {
				t.Fatalf("the writer's blob is none: %v", err)
			}
			h, pix, err := indexAndDecode(file)
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(h.Shape[:], f.Shape) || h.DType.String() != f.DType || corpus.SHA256(pix) != f.SHA256 {
				t.Errorf("%v %v, sha256 %s", h.Shape, h.DType, corpus.SHA256(pix))
			}
			if _, same, err := decode(file, blob); err != nil || !bytes.Equal(same, pix) {
				t.Errorf("by the writer's blob: %v", err)
			}
			checkRows(t, h, file)
		})
	}
}

// checkRows compares the first rows of every chunk with the whole chunk, and requires errors from
// damaged frames.
func checkRows(t *testing.T, h *Header, file []byte) {
	x, d := h.Index(), chunk.NewDecoder(nil)
	for i, r := range x.Ranges {
		all, some := make([]byte, x.DecodedBytes(i)), make([]byte, x.DecodedBytes(i), x.DecodedBytes(i)+chunk.Spare)
		stored := file[r.Off : r.Off+r.Len]
		if err := d.Decode(all, stored, x, i); err != nil {
			t.Fatal(err)
		}
		err := d.DecodeFirst(some, stored, x, i, len(all)/x.ChunkH/x.DType.Size())
		if err != nil || !bytes.Equal(some[:len(all)/x.ChunkH], all[:len(all)/x.ChunkH]) {
			t.Errorf("the first row of chunk %d: %v", i, err)
		}
		if d.Decode(some, stored[:len(stored)-1], x, i) == nil {
			t.Errorf("chunk %d is accepted without its last byte", i)
		}
		// The frame of a chunk at an edge is not a valid frame for a chunk inside.
		if i > 0 && x.Across() > 1 && (x.Box(i).X1-x.Box(i).X0 < x.ChunkW || x.Box(i).Y1-x.Box(i).Y0 < x.ChunkH) {
			if d.Decode(some, stored, x, 0) == nil {
				t.Errorf("the frame of chunk %d is accepted for chunk 0", i)
			}
		}
	}
}
