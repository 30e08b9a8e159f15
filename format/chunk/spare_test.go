package chunk_test

import (
	"bytes"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/chaski-eo/chaski/format/chunk"
	_ "github.com/chaski-eo/chaski/tiff"
)

// TestDecodeOverwritesNoMoreThanSpare: a chunk may be decoded into part of a larger buffer. Bytes
// further than Spare behind the chunk keep their values, however large the capacity is.
func TestDecodeOverwritesNoMoreThanSpare(t *testing.T) {
	const side = 256
	want := make([]byte, side*side)
	for i := range want { // compressed by its literals
		want[i] = byte(i*i>>7) & byte(i*7>>3) & 15
	}
	e, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	src := e.EncodeAll(want, nil)
	x := &chunk.Index{
		Bands: 1, Height: side, Width: side, ChunkB: 1, ChunkH: side, ChunkW: side, DType: chunk.Uint8,
		Codec: chunk.Zstd, Predictor: chunk.NoPredictor, Ranges: []chunk.Range{{Off: 0, Len: int64(len(src))}},
	}
	d := chunk.NewDecoder(nil)
	for _, rows := range []int{side, side / 2, 1} {
		buf := bytes.Repeat([]byte{0xa5}, 1<<20)
		err := d.DecodeFirst(buf[:len(want)], src, x, 0, rows*side)
		if err != nil || !bytes.Equal(buf[:rows*side], want[:rows*side]) {
			t.Fatal(err)
		}
		if rest := buf[len(want)+chunk.Spare:]; bytes.Count(rest, []byte{0xa5}) != len(rest) {
			t.Errorf("%d rows: bytes further behind than %d are overwritten", rows, chunk.Spare)
		}
	}
}
