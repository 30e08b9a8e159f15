package tiff

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/tiff/ifd"
	"github.com/chaski-eo/chaski/tools/testkit/corpus"
	"github.com/chaski-eo/chaski/tools/testkit/corpus/whole"
	"github.com/chaski-eo/chaski/tools/testkit/race"
	"github.com/chaski-eo/chaski/tools/testkit/taken"
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

// TestTaken: GDAL_METADATA of many parts takes memory by its length. It is parsed for the image, for what else it says,
// and for what a copy keeps of it.
func TestTaken(t *testing.T) {
	race.SkipCovered(t)
	item := "<GDALMetadata><Item name='a' sample='0' role='scale'>"
	for _, element := range []string{"<GDALMetadata>", "<GDALMetadata><Item name='a'>", item} {
		for _, text := range taken.XML(element) {
			b := oneTile(ifd.Text(ifd.TagGDALMetadata, text), ifd.Shorts(ifd.TagCompression, compNone))
			taken.Check(t, 3*len(b), taken.FactorXML, func() {
				file, err := ifd.Open(t.Context(), &corpus.Mem{B: b}, Limits{}.IFD())
				if err != nil {
					t.Fatal(err)
				}
				_, _ = FromFile(t.Context(), file, Limits{})
				_, _ = ReadMeta(t.Context(), file)
				_, _ = ReadExtras(t.Context(), file)
			})
		}
	}
}

// FuzzExtras: what a file says besides its samples is kept by a TOG of them, or has no place in
// one, or is an error with a kind.
func FuzzExtras(f *testing.F) {
	for _, folder := range []string{"extras", "masks", "overviews"} {
		for _, e := range corpus.Manifest(f, filepath.Join(corpus.Testdata(f), folder)) {
			f.Add(e.Bytes(f))
		}
	}
	besides, err := filepath.Glob(filepath.Join(corpus.Testdata(f), "overviews", "*.ovr"))
	if err != nil || len(besides) == 0 {
		f.Fatalf("no files of overviews: %v", err)
	}
	for _, path := range besides {
		b, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	nested := "<GDALMetadata><Item name='a' domain='xml:x'><Item>\xff</Item></Item><b/></GDALMetadata>"
	f.Add(oneTile(ifd.Text(ifd.TagGDALMetadata, nested), ifd.Shorts(ifd.TagCompression, compNone)))
	f.Fuzz(func(t *testing.T, b []byte) {
		ctx, bound := context.Background(), Limits{MaxChunk: 1 << 16}
		read := func(b []byte) (img *Image, e *Extras, overviews []*chunk.Index, err error) {
			file, err := ifd.Open(ctx, &corpus.Mem{B: b}, bound.IFD())
			if err != nil {
				return nil, nil, nil, err
			}
			if img, err = FromFile(ctx, file, bound); err != nil {
				return nil, nil, nil, err
			}
			if overviews, err = OpenOverviews(ctx, file, img.Index, bound); err != nil {
				return nil, nil, nil, err
			}
			// The file as one of overviews, whose largest has the size of the image: it is the image.
			all, err := OpenOverviewFile(ctx, file, img.Index, bound)
			if err != nil && fault.KindOf(err) == 0 || err == nil && len(all) != len(overviews)+1 {
				t.Fatalf("%d overviews in a file with %d: %v", len(all), len(overviews), err)
			}
			e, err = ReadExtras(ctx, file)
			return img, e, overviews, err
		}
		var img *Image
		var e *Extras
		var overviews []*chunk.Index
		var err error
		taken.Check(t, 4*len(b), taken.FactorXML, func() { img, e, overviews, err = read(b) })
		if err != nil {
			if fault.KindOf(err) == 0 {
				t.Fatalf("error without a kind: %v", err)
			}
			return
		}
		pixels, err := whole.Image(img.Index, b, 1<<16)
		if err != nil {
			return
		}
		o := TOGOptions{
			Shape: [3]int{img.Index.Bands, img.Index.Height, img.Index.Width},
			DType: img.Index.DType, Tile: 16, Level: 1, Tags: e.Tags,
			GDALMetadata: FormatGDALMetadata(e.Items), Photometric: e.Photometric,
			WhiteIsZero: e.WhiteIsZero, ExtraSamples: e.ExtraSamples, NoData: img.Meta.NoData,
		}
		for _, x := range overviews {
			v := Overview{Height: x.Height, Width: x.Width}
			if v.Pixels, err = whole.Image(x, b, 1<<16); err != nil {
				return
			}
			n := len(o.Overviews)
			if len(o.Overviews) == 0 || v.Height <= o.Overviews[n-1].Height && v.Width <= o.Overviews[n-1].Width {
				o.Overviews = append(o.Overviews, v)
			}
		}
		var w bytes.Buffer
		if err := WriteTOG(&w, pixels, o); err != nil {
			t.Fatal(err)
		}
		again, e2, overviews, err := read(w.Bytes())
		if err != nil {
			t.Fatal(err)
		}
		slices.SortFunc(e.Tags, func(a, b ifd.Field) int { return int(a.Tag) - int(b.Tag) })
		if !slices.EqualFunc(e.Tags, e2.Tags, func(a, b ifd.Field) bool { return reflect.DeepEqual(a, b) }) ||
			!slices.Equal(e.Items, e2.Items) || e.Photometric != e2.Photometric || e.WhiteIsZero != e2.WhiteIsZero ||
			len(e2.Unknown) > 0 || len(overviews) != len(o.Overviews) || again.Meta.NoData != img.Meta.NoData {
			t.Fatalf("%+v became %+v", e, e2)
		}
	})
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
	b, err := os.ReadFile(filepath.Join(corpus.Testdata(t), "codecs", name))
	if err != nil {
		t.Fatal(err)
	}
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
