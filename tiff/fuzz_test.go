package tiff

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/tiff/ifd"
	"github.com/chaski-eo/chaski/tiff/ifdwrite"
	"github.com/chaski-eo/chaski/tools/testkit/corpus"
	"github.com/chaski-eo/chaski/tools/testkit/corpus/whole"
	"github.com/chaski-eo/chaski/tools/testkit/race"
	"github.com/chaski-eo/chaski/tools/testkit/taken"
	"github.com/chaski-eo/chaski/tools/testkit/testfile"
)

// openBound returns how much memory Open may allocate for a file of n bytes.
func openBound(n int) uint64 { return 1<<20 + 100*uint64(n) }

// FuzzTIFF: any bytes yield an error with a kind, or an image. Opening costs memory in proportion
// to the file, and reads no byte more than a few times.
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
	dir = filepath.Join(corpus.Testdata(f), "codecs")
	for _, e := range corpus.Rows[coded](f, dir) {
		b, err := os.ReadFile(filepath.Join(dir, e.Path))
		if err != nil {
			f.Fatal(err)
		}
		if strings.HasPrefix(e.Path, "ycbcr-") {
			f.Add(b)
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var img *Image
		var err error
		r := &corpus.Mem{B: b}
		n := corpus.Allocated(func() { img, err = Open(context.Background(), r, Limits{MaxChunk: 1 << 20}) })
		if n > openBound(len(b)) {
			t.Fatalf("%d bytes allocated for a file of %d", n, len(b))
		}
		if err == nil {
			if err := img.Index.Validate(int64(len(b)), 1<<20); err != nil {
				t.Fatal(err)
			}
			_, err = whole.Image(img.Index, b, 1<<22)
		}
		if err != nil && fault.KindOf(err) == 0 {
			t.Fatalf("error without a kind: %v", err)
		}
	})
}

// TestTaken: GDAL_METADATA of many parts takes memory by its length. It is parsed for the image
// and for what else it says.
func TestTaken(t *testing.T) {
	race.SkipCovered(t)
	item := "<GDALMetadata><Item name='a' sample='0' role='scale'>"
	for _, element := range []string{"<GDALMetadata>", "<GDALMetadata><Item name='a'>", item} {
		for _, text := range taken.XML(element) {
			b := oneTile(ifdwrite.Text(ifd.TagGDALMetadata, text), ifdwrite.Shorts(ifd.TagCompression, compNone))
			taken.Check(t, 3*len(b), taken.FactorXML, func() {
				file, err := ifd.Open(t.Context(), &corpus.Mem{B: b}, Limits{}.IFD())
				if err != nil {
					t.Fatal(err)
				}
				_, _ = FromFile(t.Context(), file, Limits{})
				_, _ = ReadMeta(t.Context(), file)
			})
		}
	}
}

// checkPrefixes requires that if the whole is accepted, all of its prefixes are, with its bytes.
func checkPrefixes(t *testing.T, c chunk.Codec, d chunk.Decompressor, want, src []byte, accepted bool) {
	const guard = 0x5a
	for _, n := range []int{0, len(want) / 3, len(want) - len(want)/7} {
		buf := make([]byte, len(want)+1)
		buf[len(want)] = guard
		err := front(d, buf[:len(want):len(want)], src, n)
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

// firstChunk returns the stored bytes of the first chunk of a file of testdata/codecs, and its index.
func firstChunk(t testing.TB, name string) ([]byte, *chunk.Index) {
	b := testfile.Read(t, filepath.Join(corpus.Testdata(t), "codecs", name))
	img, err := Open(t.Context(), &corpus.Mem{B: b}, Limits{})
	if err != nil {
		t.Fatal(err)
	}
	r := img.Index.Ranges[0]
	return b[r.Off:][:r.Len], img.Index
}

// FuzzLZW: for any bytes, the decoder of chunks writes the bytes of the decoder of streams, whose table has another
// form, and breaks off where it does.
func FuzzLZW(f *testing.F) {
	for _, want := range payloads() {
		src := slowLZW(want)
		f.Add(src, uint16(min(len(want)+9, 1<<16-1)))
		f.Add(slices.Concat(src[:len(src)/2], []byte{0xa5, 0x0f}, src[len(src)/2:]), uint16(min(len(want), 1<<16-1)))
	}
	f.Fuzz(func(t *testing.T, src []byte, n uint16) {
		dst, want, d := make([]byte, n), make([]byte, n), new(lzwDecoder)
		for range 2 { // also with the table of another chunk
			got := d.decode(dst, src, len(dst))
			s, err := d.Stream(bufio.NewReader(bytes.NewReader(src)), 0)
			if err != nil {
				t.Skip("the old order of bits")
			}
			err = s.Fill(want)
			if err == nil != (got == len(dst)) || !bytes.Equal(dst[:got], want[:got]) {
				t.Fatalf("%d of %d bytes, the stream says %v", got, n, err)
			}
			if err != nil && !strings.Contains(err.Error(), fmt.Sprintf("after %d of", got)) {
				t.Fatalf("%d bytes, the stream says %v", got, err)
			}
		}
	})
}

// FuzzCodecs: for any bytes, a decoder fills dst or returns an error, and writes nothing outside of
// dst.
func FuzzCodecs(f *testing.F) {
	for _, want := range payloads() {
		f.Add(slowLZW(want[:min(len(want), 2000)]), uint16(2000))
	}
	f.Add([]byte{0xfe, 0xaa, 0x02, 0x80, 0x00, 0x2a}, uint16(6))
	for _, name := range []string{"lzma-uint8.tif", "lzma-delta.tif", "lzma-sha256.tif"} {
		src, x := firstChunk(f, name)
		f.Add(src, uint16(x.DecodedBytes(0)))
	}
	f.Add([]byte("\x78\x9c\x4b\x4c\x4a\x06\x00\x02\x4d\x01\x27"), uint16(3))
	f.Fuzz(func(t *testing.T, src []byte, n uint16) {
		const guard = 0x5a
		for c, open := range chunk.Registered() {
			buf := make([]byte, int(n)+1)
			buf[n] = guard
			d := open()
			if c.Samples() {
				continue // they have targets of their own
			}
			err := all(d, buf[:n:n], src)
			if err != nil && fault.KindOf(err) == 0 {
				t.Fatalf("%v: error without a kind: %v", c, err)
			}
			if buf[n] != guard {
				t.Fatalf("%v wrote past dst", c)
			}
			checkPrefixes(t, c, d, buf[:n:n], src, err == nil)
		}
	})
}
