package zstd_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	kzstd "github.com/klauspost/compress/zstd"

	"github.com/chaski-eo/chaski/internal/cputime"
	"github.com/chaski-eo/chaski/internal/zstd"
	"github.com/chaski-eo/chaski/tiff"
	"github.com/chaski-eo/chaski/tools/testkit/corpus"
	"github.com/chaski-eo/chaski/tools/testkit/corpus/whole"
)

// residuals are differences of a noisy sensor: few matches, and bytes with very unequal
// frequencies.
func residuals(n int) []byte {
	r := rand.New(rand.NewPCG(3, 4))
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(int8(r.NormFloat64() * 6))
	}
	return b
}

// classes is a map of patches, coded as differences along rows.
func classes(n int) []byte {
	r := rand.New(rand.NewPCG(5, 6))
	row := make([]byte, 256)
	var b []byte
	for len(b) < n {
		if len(b)/256%4 == 0 {
			clear(row)
			for range 9 {
				row[r.IntN(64)*4] = byte(r.IntN(5)) - 2
			}
		}
		b = append(b, row...)
	}
	return b[:n]
}

// TestAppend: Append adds one frame to dst, which states its content size and decodes to the input.
func TestAppend(t *testing.T) {
	for _, content := range [][]byte{
		nil, {7}, residuals(300), residuals(70_000), classes(200_000), make([]byte, 1<<20),
	} {
		// The first and the last level of each of klauspost's four, and those around the one from which the deep search
		// is always tried.
		for _, level := range []int{1, 2, 3, 5, 6, 9, 10, 19, 20, 22} {
			got := zstd.Append([]byte("before"), content, level)
			frame, ok := bytes.CutPrefix(got, []byte("before"))
			if !ok {
				t.Fatalf("level %d: what stood there is gone", level)
			}
			var h kzstd.Header
			err := h.Decode(frame)
			if err != nil || !h.HasFCS || h.FrameContentSize != uint64(len(content)) || h.HasCheckSum {
				t.Errorf("level %d: header %+v, %v", level, h, err)
			}
			dst := make([]byte, len(content))
			if err := zstd.New().Decompress(dst, frame); err != nil || !bytes.Equal(dst, content) {
				t.Errorf("level %d: %d bytes are not read back: %v", level, len(content), err)
			}
			if again := zstd.Append(nil, content, level); !bytes.Equal(again, frame) {
				t.Errorf("level %d: another frame the second time", level)
			}
		}
	}
}

// TestWindowChangesNothing: the frame is the smaller one of those of klauspost's encoders with the windows of their
// levels, also if the last bytes match the first.
func TestWindowChangesNothing(t *testing.T) {
	for _, n := range []int{300, 200_000, 1 << 20, 1<<20 + 1} {
		content := append(residuals(n-n/4), classes(n/4)...)
		copy(content[n-100:], content)
		for level, windows := range map[int][]kzstd.EncoderLevel{1: {kzstd.SpeedFastest}, 3: {kzstd.SpeedDefault},
			20: {kzstd.SpeedDefault, kzstd.SpeedBestCompression}} {
			if level == 20 && n > 200_000 {
				continue // it takes a second per MiB
			}
			var want []byte
			for _, l := range windows {
				e, err := kzstd.NewWriter(nil, kzstd.WithEncoderLevel(l), kzstd.WithEncoderConcurrency(1),
					kzstd.WithEncoderCRC(false), kzstd.WithSingleSegment(true),
					kzstd.WithAllLitEntropyCompression(true))
				if err != nil {
					t.Fatal(err)
				}
				if b := e.EncodeAll(content, nil); want == nil || len(b) < len(want) {
					want = b
				}
			}
			if got := zstd.Append(nil, content, level); !bytes.Equal(got, want) {
				t.Errorf("level %d, %d bytes: a frame of %d bytes, want %d", level, n, len(got), len(want))
			}
		}
	}
}

// TestAppendCompresses: no level stores differences uncompressed: by their entropy (4.6 bits), 2
// bytes of every 3 are enough. Higher levels search labels deeper.
func TestAppendCompresses(t *testing.T) {
	noise, labels := residuals(1<<17), classes(1<<18)
	for level := 1; level <= 22; level++ {
		if n := len(zstd.Append(nil, noise, level)); n > len(noise)*2/3 {
			t.Errorf("level %d: differences of %d bytes take %d", level, len(noise), n)
		}
	}
	if fast, deep := len(zstd.Append(nil, labels, 3)), len(zstd.Append(nil, labels, 13)); deep >= fast {
		t.Errorf("labels take %d bytes at level 3 and %d at 13", fast, deep)
	}
}

// coast returns tiles of real imagery (testdata/demo) as a TOG with tiles of 256 × 256 has them:
// differences along rows.
func coast(b *testing.B) (tiles [][]byte, size int) {
	b.Helper()
	file, err := os.ReadFile(filepath.Join(corpus.Testdata(b), "demo", "coast.tif"))
	if err != nil {
		b.Fatal(err)
	}
	img, err := tiff.Open(b.Context(), &corpus.Mem{B: file}, tiff.Limits{})
	if err != nil {
		b.Fatal(err)
	}
	x := img.Index
	pixels, err := whole.Image(x, file, 1<<30)
	if err != nil {
		b.Fatal(err)
	}
	const side = 256
	at := func(band, y, c int) uint16 {
		return binary.LittleEndian.Uint16(pixels[2*((band*x.Height+y)*x.Width+c):])
	}
	for i := range x.Bands * (x.Height / side) * (x.Width / side) {
		band, y0, x0 := i%x.Bands, i/x.Bands/(x.Width/side)*side, i/x.Bands%(x.Width/side)*side
		var t []byte
		for y := y0; y < y0+side; y++ {
			before := uint16(0)
			for c := x0; c < x0+side; c++ {
				v := at(band, y, c)
				t = binary.LittleEndian.AppendUint16(t, v-before)
				before = v
			}
		}
		tiles = append(tiles, t)
		size += len(t)
	}
	return tiles, size
}

// benchmarkEncoder measures an encoder on tiles. ratio is the size of the tiles over that of the
// frames.
func benchmarkEncoder(b *testing.B, encode func(dst, src []byte) []byte) {
	tiles, size := coast(b)
	b.SetBytes(int64(size))
	var dst []byte
	stored, rounds := 0, 0
	start := cputime.Used()
	for b.Loop() {
		rounds++
		stored = 0
		for _, t := range tiles {
			dst = encode(dst[:0], t)
			stored += len(dst)
		}
	}
	b.ReportMetric(float64(size*rounds)/1e6/(cputime.Used()-start).Seconds(), "cpu-MB/s")
	b.ReportMetric(float64(size)/float64(stored), "ratio")
}

func BenchmarkAppend(b *testing.B) {
	for _, level := range []int{1, 3, 6, 13, 20} {
		b.Run(fmt.Sprint(level), func(b *testing.B) {
			benchmarkEncoder(b, func(dst, src []byte) []byte { return zstd.Append(dst, src, level) })
		})
	}
}
