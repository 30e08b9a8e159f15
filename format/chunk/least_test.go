package chunk_test

import (
	"bytes"
	"testing"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/chunk"
)

// shapeOf keeps the last tile that it was to decompress.
type shapeOf struct{ tile chunk.Tile }

func (s *shapeOf) Decompress(_, _ []byte, t *chunk.Tile) error {
	s.tile = *t
	return nil
}

// TestRowsThatAChunkHolds: a chunk whose last rows lie below the image may leave these rows out, and no others. Codecs
// of images hear which.
func TestRowsThatAChunkHolds(t *testing.T) {
	const height, width, rows = 10, 3, 4
	pixels := []byte("abcdefghijkl") // of a chunk
	shape := &shapeOf{}
	decoder := chunk.NewDecoder(chunk.Codecs{chunk.JPEG: func() chunk.Decompressor { return shape }})
	for number, inside := range []int{4, 4, 2} { // rows in the image
		x := &chunk.Index{Bands: 1, Height: height, Width: width, ChunkB: 1, ChunkH: rows, ChunkW: width,
			DType: chunk.Uint8, Codec: chunk.JPEG, Predictor: chunk.NoPredictor, Ranges: make([]chunk.Range, 3)}
		x.Ranges[number].Len = rows * width
		got := make([]byte, rows*width)
		for needed := range inside + 1 {
			err := decoder.DecodeFirst(got, pixels, x, number, needed*width)
			if tile := shape.tile; err != nil || tile.LeastRows != inside || tile.Rows != needed ||
				tile.MaxHeight != rows || tile.Height != rows || tile.Need != needed*width {
				t.Errorf("chunk %d, %d rows: %+v, %v", number, needed, tile, err)
			}
		}
		x.Codec = chunk.Raw
		for stored := range rows + 1 {
			x.Ranges[number].Len = int64(stored * width)
			clear(got)
			err := decoder.DecodeFirst(got, pixels[:stored*width], x, number, inside*width)
			holds := stored >= inside
			switch {
			case stored == 0: // a sparse chunk
				holds = true
			case holds && !bytes.Equal(got[:inside*width], pixels[:inside*width]):
				t.Errorf("chunk %d with %d rows: %q", number, stored, got)
			}
			if holds != (err == nil) || !holds && fault.KindOf(err) != fault.Corrupt {
				t.Errorf("chunk %d with %d rows of %d: %v", number, stored, inside, err)
			}
		}
	}
}
