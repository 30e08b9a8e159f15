package pixels_test

import (
	"testing"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/loader/pixels"
	"github.com/chaski-eo/chaski/loader/resources"
	"github.com/chaski-eo/chaski/store/catalog"
	"github.com/chaski-eo/chaski/tools/testkit/folder"
)

// cutShort decodes stored bytes 'u' completely, of 'c' only a part, and of 'b' nothing.
type cutShort struct{}

func (cutShort) Decompress(dst, src []byte, t *chunk.Tile) error {
	if src[0] == 'b' || src[0] != 'u' && t.Need == len(dst) {
		return fault.New(fault.Corrupt, "frame", "cut short")
	}
	return nil
}

// TestWindowsFailAlone: a window that shares tiles fails as one that shares none, whatever others
// have decoded or are decoding: on the chunk that comes first, and not on rows that it does not
// need.
func TestWindowsFailAlone(t *testing.T) {
	for stored, box := range map[string]chunk.Box{
		"uuuu": {B1: 1, Y1: 16, X1: 16},
		"ubub": {B1: 1, Y1: 16, X1: 16},
		"bbbb": {B1: 1, Y1: 12, X1: 16},
		"uucc": {B1: 1, Y1: 12, X1: 16},
		"ucuu": {B1: 1, Y1: 16, X1: 16},
		"uucb": {B1: 1, Y1: 12, X1: 16},
		"ucuc": {B1: 1, Y1: 16, X1: 12},
	} {
		x := &chunk.Index{Bands: 1, Height: 16, Width: 16, ChunkB: 1, ChunkH: 8, ChunkW: 8, DType: chunk.Uint8,
			Codec: chunk.Zstd, Predictor: chunk.NoPredictor}
		for i := range stored {
			x.Ranges = append(x.Ranges, chunk.Range{Off: int64(i), Len: 1})
		}
		read := func(share pixels.Shared) string {
			r := pixels.NewReader(resources.Options{Opener: folder.OneFile(stored)}.WithDefaults())
			r.Decoder = chunk.NewDecoder(chunk.Codecs{chunk.Zstd: func() chunk.Decompressor { return cutShort{} }})
			r.Share = share
			if err := r.Read(t.Context(), catalog.Asset{URI: "a", Index: x}, box, nil,
				pixels.Nowhere{}, nil); err != nil {
				return err.Error()
			}
			return ""
		}
		want := read(pixels.Shared{})
		for others := range 1 << len(stored) { // chunks that another worker decodes, and fails at
			c := pixels.NewTileCache(1 << 20)
			for i := range stored {
				if others>>i&1 == 0 {
					continue
				}
				held, _ := c.Get(pixels.TileKey{Chunk: i}, 0, 64, 0, 8)
				defer c.Put(held)
				if stored[i] == 'u' {
					c.Finish(held, false)
				} else {
					held.Failed = true
					close(held.Ready)
				}
			}
			if got := read(pixels.Shared{Tiles: c}); got != want {
				t.Errorf("%s, with %04b at others: %q, alone %q", stored, others, got, want)
			}
			for key, held := range c.By { // otherwise others would wait forever
				select {
				case <-held.Ready:
				default:
					t.Errorf("%s, with %04b at others: chunk %d is left undecoded", stored, others, key.Chunk)
				}
			}
		}
	}
}
