package tiff

import (
	"bytes"
	"compress/zlib"
	"context"
	"encoding/binary"
	"fmt"
	"path/filepath"
	"testing"

	kzstd "github.com/klauspost/compress/zstd"

	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/tools/testkit/corpus"
	"github.com/chaski-eo/chaski/tools/testkit/corpus/whole"
	"github.com/chaski-eo/chaski/tools/testkit/race"
	"github.com/chaski-eo/chaski/tools/testkit/testfile"
)

// slowPackBits writes literal runs of 128 and repeats of up to 128, whichever comes first.
func slowPackBits(data []byte) []byte {
	var out []byte
	for len(data) > 0 {
		n := 1
		for n < len(data) && n < 128 && data[n] == data[0] {
			n++
		}
		if n > 2 {
			out = append(out, byte(1-n), data[0])
			data = data[n:]
			continue
		}
		n = min(len(data), 128)
		out = append(append(out, byte(n-1)), data[:n]...)
		data = data[n:]
	}
	return out
}

// encoded returns data in every codec that can stop early.
func encoded(t testing.TB, data []byte) map[chunk.Codec][]byte {
	t.Helper()
	var z bytes.Buffer
	w := zlib.NewWriter(&z)
	w.Write(data)
	w.Close()
	e, err := kzstd.NewWriter(nil, kzstd.WithEncoderConcurrency(1), kzstd.WithEncoderLevel(kzstd.SpeedBestCompression))
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	return map[chunk.Codec][]byte{
		chunk.Zstd:     e.EncodeAll(data, nil),
		chunk.Deflate:  z.Bytes(),
		chunk.LZW:      slowLZW(data),
		chunk.PackBits: slowPackBits(data),
	}
}

// TestPrefixIsTheStartOfTheWhole: a prefix is the start of the whole, for every codec and length,
// and no byte past dst and its spare room is written.
func TestPrefixIsTheStartOfTheWhole(t *testing.T) {
	race.SkipCovered(t)
	all := payloads()
	all["several blocks"] = bytes.Repeat(all["steps"], 8)
	for name, want := range all {
		for codec, src := range encoded(t, want) {
			d := chunk.Registered()[codec]()
			for _, n := range []int{0, 1, 2, 5, 127, 4096, len(want) / 4, len(want) / 2, len(want) - 1, len(want)} {
				if n > len(want) || n < 0 {
					continue
				}
				for _, spare := range []int{0, chunk.Spare} {
					buf := bytes.Repeat([]byte{0xa5}, len(want)+spare+8)
					err := front(d, buf[:len(want):len(want)+spare], src, n)
					if err != nil || !bytes.Equal(buf[:n], want[:n]) {
						t.Errorf("%s %v: %d of %d bytes: %v", name, codec, n, len(want), err)
					}
					if !bytes.Equal(buf[len(want)+spare:], bytes.Repeat([]byte{0xa5}, 8)) {
						t.Errorf("%s %v: %d of %d bytes: wrote past the end", name, codec, n, len(want))
					}
				}
			}
		}
	}
}

// TestPrefixOfACutStream: a stream that is cut off before the end of the prefix is refused, and the
// decoder works as before.
func TestPrefixOfACutStream(t *testing.T) {
	race.SkipCovered(t)
	want := bytes.Repeat(payloads()["steps"], 8)
	for codec, src := range encoded(t, want) {
		d := chunk.Registered()[codec]()
		dst := make([]byte, len(want))
		for _, n := range []int{len(src) / 8, len(src) / 3, len(src) / 2} {
			if err := front(d, dst, src[:n], len(want)*3/4); err == nil {
				t.Errorf("%v: three quarters out of %d of %d bytes", codec, n, len(src))
			}
			err := front(d, dst, src, len(want)/4)
			if err != nil || !bytes.Equal(dst[:len(want)/4], want[:len(want)/4]) {
				t.Errorf("%v: after a cut stream: %v", codec, err)
			}
			if err := all(d, dst, src); err != nil || !bytes.Equal(dst, want) {
				t.Errorf("%v: the whole after a prefix: %v", codec, err)
			}
		}
	}
}

// TestPrefixStopsEarly: these codecs do stop early: a quarter of the content is there when half of
// the stream is.
func TestPrefixStopsEarly(t *testing.T) {
	race.SkipCovered(t)
	want := bytes.Repeat(payloads()["steps"], 8)
	for codec, src := range encoded(t, want) {
		if codec == chunk.Zstd {
			continue // depends on the library: see its package
		}
		d, dst := chunk.Registered()[codec](), make([]byte, len(want))
		if err := front(d, dst, src[:len(src)/2], len(want)/8); err != nil {
			t.Errorf("%v: %v", codec, err)
		}
	}
}

func TestPrefixNoAlloc(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector empties the pools of a library")
	}
	want := bytes.Repeat(payloads()["steps"], 8)
	dst := make([]byte, len(want), len(want)+chunk.Spare)
	for codec, src := range encoded(t, want) {
		d, tile := chunk.Registered()[codec](), &chunk.Tile{Need: len(dst) / 4, Number: 1}
		if n := testing.AllocsPerRun(10, func() {
			if err := d.Decompress(dst, src, tile); err != nil {
				t.Fatal(err)
			}
		}); n > 0 {
			t.Errorf("%v: %v allocations", codec, n)
		}
	}
}

// imagery returns the upper left of a real scene's first band, as rows of uint16 differences.
func imagery(t testing.TB, side int) []byte {
	t.Helper()
	file := testfile.Read(t, filepath.Join(corpus.Testdata(t), "demo", "coast.tif"))
	img, err := Open(context.Background(), &corpus.Mem{B: file}, Limits{})
	if err != nil {
		t.Fatal(err)
	}
	pix, err := whole.Image(img.Index, file, 1<<24)
	if err != nil || img.Index.DType != chunk.Uint16 || img.Index.Width < side || img.Index.Height < side {
		t.Fatalf("%+v: %v", img.Index, err)
	}
	var b []byte
	for y := range side {
		b = append(b, pix[2*y*img.Index.Width:][:2*side]...)
	}
	differences(b, side)
	return b
}

// BenchmarkRows decodes the first rows of a square uint16 chunk with the horizontal predictor.
func BenchmarkRows(b *testing.B) {
	for _, codec := range []chunk.Codec{chunk.Deflate, chunk.LZW, chunk.Zstd} {
		for _, side := range []int{128, 256, 512} {
			src := encoded(b, imagery(b, side))[codec]
			x := &chunk.Index{
				Bands: 1, Height: side, Width: side, ChunkB: 1, ChunkH: side, ChunkW: side,
				DType: chunk.Uint16, Codec: codec, Predictor: chunk.Horizontal,
				Ranges: []chunk.Range{{Len: int64(len(src))}},
			}
			n := x.DecodedBytes(0)
			dst, d := make([]byte, n, n+chunk.Spare), chunk.NewDecoder(nil)
			for _, percent := range []int{25, 50, 100} {
				b.Run(fmt.Sprintf("%v/%d/%d", codec, side, percent), func(b *testing.B) {
					b.ReportAllocs()
					for range b.N {
						if err := d.DecodeFirst(dst, src, x, 0, side*percent/100*side); err != nil {
							b.Fatal(err)
						}
					}
				})
			}
		}
	}
}

// all fills dst with the samples of a chunk, front its first n bytes.
func all(d chunk.Decompressor, dst, src []byte) error { return front(d, dst, src, len(dst)) }

func front(d chunk.Decompressor, dst, src []byte, n int) error {
	return d.Decompress(dst, src, &chunk.Tile{Need: n, Number: 1})
}

// differences applies the horizontal predictor to rows of width samples of 16 bits.
func differences(b []byte, width int) {
	le := binary.LittleEndian
	for i := len(b)/2 - 1; i > 0; i-- {
		if i%width > 0 {
			le.PutUint16(b[2*i:], le.Uint16(b[2*i:])-le.Uint16(b[2*i-2:]))
		}
	}
}
