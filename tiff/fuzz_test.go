package tiff

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/chaski-eo/chaski/chunk"
	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/corpus"
	"github.com/chaski-eo/chaski/internal/corpus/whole"
)

// openBound is what Open may allocate for a file of n bytes.
func openBound(n int) uint64 { return 1<<20 + 100*uint64(n) }

// FuzzTIFF: any bytes give an error with a kind, or an image; opening costs memory in proportion
// to the bytes that are there, and reads no byte twice more than a few times.
func FuzzTIFF(f *testing.F) {
	for _, e := range corpus.Manifest(f, filepath.Join(corpus.Testdata(f), "raster")) {
		if b := e.Bytes(f); filepath.Ext(e.Path) == ".tif" && len(b) < 32<<10 {
			f.Add(b)
		}
	}
	dir := filepath.Join(corpus.Testdata(f), "tiffs")
	for _, e := range corpus.Rows[careless](f, dir) {
		b, err := os.ReadFile(filepath.Join(dir, e.Path))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var img *Image
		var err error
		r := &corpus.Mem{B: b}
		if n := corpus.Allocated(func() { img, err = Open(context.Background(), r, Limits{MaxChunk: 1 << 20}) }); n > openBound(len(b)) {
			t.Fatalf("%d bytes allocated for a file of %d", n, len(b))
		}
		if err == nil {
			if err := img.Index.Validate(int64(len(b)), 1<<20); err != nil {
				t.Fatal(err)
			}
			_, err = whole.Image(img.Index, b, Codecs(), 1<<22)
		}
		if err != nil && fault.KindOf(err) == 0 {
			t.Fatalf("error without a kind: %v", err)
		}
	})
}

// checkPrefixes holds prefixes to the whole: where that is accepted, all of its prefixes are, with its bytes.
func checkPrefixes(t *testing.T, c chunk.Codec, d chunk.RowDecompressor, want, src []byte, accepted bool) {
	const guard = 0x5a
	for _, n := range []int{0, len(want) / 3, len(want) - len(want)/7} {
		buf := make([]byte, len(want)+1)
		buf[len(want)] = guard
		err := d.DecompressPrefix(buf[:len(want):len(want)], src, n, 1)
		if err != nil && (accepted || fault.KindOf(err) == 0) {
			t.Fatalf("%v: the whole was accepted: %v; its first %d bytes: %v", c, accepted, n, err)
		}
		if accepted && !bytes.Equal(buf[:n], want[:n]) {
			t.Fatalf("%v: other bytes in the first %d", c, n)
		}
		if buf[len(want)] != guard {
			t.Fatalf("%v wrote past dst", c)
		}
	}
}

// FuzzCodecs: whatever the bytes, a decoder fills dst or says why not, and keeps to dst.
func FuzzCodecs(f *testing.F) {
	for _, want := range payloads() {
		f.Add(slowLZW(want[:min(len(want), 2000)]), uint16(2000))
	}
	f.Add([]byte{0xfe, 0xaa, 0x02, 0x80, 0x00, 0x2a}, uint16(6))
	f.Add([]byte("\x78\x9c\x4b\x4c\x4a\x06\x00\x02\x4d\x01\x27"), uint16(3))
	f.Fuzz(func(t *testing.T, src []byte, n uint16) {
		const guard = 0x5a
		for c, open := range Codecs() {
			buf := make([]byte, int(n)+1)
			buf[n] = guard
			d := open()
			err := d.Decompress(buf[:n:n], src, 1)
			if err != nil && fault.KindOf(err) == 0 {
				t.Fatalf("%v: error without a kind: %v", c, err)
			}
			if buf[n] != guard {
				t.Fatalf("%v wrote past dst", c)
			}
			checkPrefixes(t, c, d.(chunk.RowDecompressor), buf[:n:n], src, err == nil)
		}
	})
}
