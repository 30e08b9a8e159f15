package catalog_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/format/chunk/blob"
	"github.com/chaski-eo/chaski/internal/magic"
	"github.com/chaski-eo/chaski/rumi"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/source/openers"
	"github.com/chaski-eo/chaski/store/catalog"
	"github.com/chaski-eo/chaski/tiff/ifd"
	"github.com/chaski-eo/chaski/tiff/ifdwrite"
	"github.com/chaski-eo/chaski/tools/testkit/corpus"
	"github.com/chaski-eo/chaski/tools/testkit/folder"
	"github.com/chaski-eo/chaski/tools/testkit/testfile"
)

// object is a store of one object, and notes how it is opened and read.
type object struct {
	data           []byte
	known          source.Known
	reads          []source.Range
	reading, close error
}

// Open implements source.Opener.
func (o *object) Open(ctx context.Context, uri string) (source.Reader, error) {
	return o.OpenKnown(ctx, uri, source.Known{})
}

// OpenKnown implements source.KnownOpener.
func (o *object) OpenKnown(_ context.Context, _ string, k source.Known) (source.Reader, error) {
	o.known = k
	return &openObject{o.data, o}, nil
}

type openObject struct {
	source.Memory
	of *object
}

// ReadAt implements source.Reader.
func (r *openObject) ReadAt(ctx context.Context, p []byte, off int64) error {
	r.of.reads = append(r.of.reads, source.Range{Off: off, Len: int64(len(p))})
	return errors.Join(r.of.reading, r.Memory.ReadAt(ctx, p, off))
}

// ETag implements source.Tagged.
func (r *openObject) ETag() string { return "its tag" }

// Close implements source.Reader.
func (r *openObject) Close() error { return r.of.close }

// TestSmallRasters: a remote raster comes whole in one request if its size is known and small, or if it is not longer
// than what a header takes.
func TestSmallRasters(t *testing.T) {
	const head = 64 << 10
	least := len(folder.TIFF(2, 3, 0))
	for _, size := range []int{least, head, head + 1, catalog.SmallBytes, catalog.SmallBytes + 1} {
		for _, known := range []source.Known{{}, {ETag: "tag"}, {Size: int64(size), ETag: "tag"}} {
			for _, uri := range []string{"/a.tif", "s3://bucket/a.tif"} {
				o, remote := &object{data: folder.TIFF(2, 3, size-least)}, strings.HasPrefix(uri, "s3")
				small := remote && known.Size > 0 && size <= catalog.SmallBytes
				a, err := catalog.OpenSmall(t.Context(), o, uri, known, chunk.Axes{}, 0)
				if err != nil {
					t.Fatal(err)
				}
				passed := source.Known{}
				if remote {
					passed.ETag = known.ETag
				}
				if small {
					passed.Size = known.Size
				}
				whole := small || remote && size <= head
				once := slices.Equal(o.reads, []source.Range{{Len: int64(size)}})
				if whole && (!bytes.Equal(a.Bytes, o.data) || !once) || !whole && a.Bytes != nil || o.known != passed ||
					a.Size != int64(size) || a.ETag != "its tag" {
					t.Errorf("%s of %d bytes, known %v: %d bytes by %v, opened with %v, tag %q", uri, size, known,
						len(a.Bytes), o.reads, o.known, a.ETag)
				}
				o.known, o.reads = source.Known{}, nil
				r, err := a.Open(t.Context(), o, a.Known())
				pixels := make([]byte, 6)
				if err == nil {
					err = r.ReadAt(t.Context(), pixels, 8)
				}
				if passed = a.Known(); whole {
					passed = source.Known{}
				}
				if err != nil || o.known != passed || (len(o.reads) == 0) != whole || r.Size() != int64(size) {
					t.Errorf("%s of %d bytes: opened with %v, reads %v, %v", uri, size, o.known, o.reads, err)
				}
				if whole && (a.Reader().Size() != int64(size) || source.ETag(a.Reader()) != a.ETag ||
					source.Gap(a.Reader()) != 0) {
					t.Errorf("the reader of a raster in memory: %+v", a.Reader())
				}
			}
		}
	}
	if r := (&catalog.Asset{Bytes: make([]byte, 4)}).Reader(); r.Size() != 4 {
		t.Errorf("four bytes are %d", r.Size())
	}
	for _, o := range []*object{{reading: errors.New("read")}, {close: errors.New("close")},
		{reading: errors.New("read"), close: errors.New("close")}} {
		o.data = folder.TIFF(2, 3, 0)
		for _, uri := range []string{"/a.tif", "s3://bucket/a.tif"} {
			_, err := catalog.OpenSmall(t.Context(), o, uri, source.Known{}, chunk.Axes{}, 0)
			if want := []error{o.reading, o.close}[min(len(o.reads), 1)]; o.reading != nil && !errors.Is(err,
				o.reading) || err == nil {
				t.Errorf("%s: %v, want %v", uri, err, want)
			}
		}
	}
}

// pagesOf returns a TIFF of n pages of 2 rows of 3. The last has more tags.
func pagesOf(n int, more ...[2]uint32) string {
	le := binary.LittleEndian
	b := folder.TIFF(2, 3, 0)
	first := le.Uint32(b[4:])
	page := slices.Clone(b[first+2 : len(b)-4])
	b = b[:first]
	for i := range n {
		tags := [][]byte{}
		for tag := range slices.Chunk(page, 12) {
			tags = append(tags, tag)
		}
		for _, tag := range more {
			if i == n-1 {
				tags = slices.DeleteFunc(tags, func(t []byte) bool { return le.Uint16(t) == uint16(tag[0]) })
				t := le.AppendUint16(nil, uint16(tag[0]))
				tags = append(tags, le.AppendUint32(append(t, 4, 0, 1, 0, 0, 0), tag[1]))
			}
		}
		slices.SortFunc(tags, func(a, b []byte) int { return int(le.Uint16(a)) - int(le.Uint16(b)) })
		b = append(le.AppendUint16(b, uint16(len(tags))), bytes.Join(tags, nil)...)
		next := uint32(len(b) + 4)
		if i == n-1 {
			next = 0
		}
		b = le.AppendUint32(b, next)
	}
	return string(b)
}

// rumiOf returns a rumi file of 16 by 16 pixels with further tags.
func rumiOf(t *testing.T, dtype chunk.DType, tags ...ifdwrite.Field) string {
	t.Helper()
	var b bytes.Buffer
	_, err := rumi.Write(&b, [][]byte{make([]byte, 40)}, rumi.Layout{Shape: [3]int{1, 16, 16}, DType: dtype,
		TileH: 16, TileW: 16, Tags: tags})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// greyPNG returns a PNG of 4 by 4 grey pixels, of which those of a value are missing.
func greyPNG(t *testing.T, missing string) string {
	t.Helper()
	file := string(pictures(t, 4)[1])
	const head = 8 + 12 + 13 // the signature and IHDR
	part := "tRNS" + missing
	size := binary.BigEndian.AppendUint32(nil, uint32(len(missing)))
	sum := binary.BigEndian.AppendUint32(nil, crc32.ChecksumIEEE([]byte(part)))
	return file[:head] + string(size) + part + string(sum) + file[head:]
}

// TestAxesOfFiles: what a field says of axes counts in the files that have them. A catalog may keep the headers of the
// others.
func TestAxesOfFiles(t *testing.T) {
	said := chunk.Axes{Dims: "y x", Pages: "t", AsStored: true}
	grey := pictures(t, 4)
	for name, c := range map[string]struct {
		file, name string
		planes     int
		counts     chunk.Axes
	}{
		"one page":        {pagesOf(1), "a.tif", 1, chunk.Axes{}},
		"two pages":       {pagesOf(2), "a.tif", 2, chunk.Axes{Pages: "t"}},
		"many pages":      {pagesOf(300), "a.tif", 300, chunk.Axes{Pages: "t"}},
		"a PNG":           {string(grey[1]), "a.png", 1, chunk.Axes{AsStored: true}},
		"an array":        {string(grey[3]), "a.npy", 1, chunk.Axes{Dims: "y x"}},
		"a rumi file":     {rumiOf(t, chunk.Uint8), "a.rumi", 1, chunk.Axes{}},
		"a page's mask":   {pagesOf(2, [2]uint32{254, 4}), "a.tif", 1, chunk.Axes{}},
		"a mask unpacked": {pagesOf(2, [2]uint32{254, 4}, [2]uint32{259, 4711}), "a.tif", 0, chunk.Axes{}},
		"a codec":         {pagesOf(1, [2]uint32{259, 4711}), "a.tif", 0, chunk.Axes{}},
	} {
		dir := folder.Of(t, c.name+"="+c.file)
		axes := said
		if c.name == "a.npy" {
			axes.Pages = ""
		}
		uri := "file://" + filepath.Join(dir, c.name)
		a, err := catalog.OpenSmall(t.Context(), &openers.Files{}, uri, source.Known{}, axes, 0)
		if c.planes == 0 {
			if fault.KindOf(err) != fault.Unsupported || a.Index != nil {
				t.Errorf("%s: %+v, %v", name, a.Index, err)
			}
			continue
		}
		if err != nil || a.Index.Bands != c.planes || a.Axes != c.counts {
			t.Errorf("%s: %+v of %+v, %v", name, a.Axes, a.Index, err)
			continue
		}
		b, m, err := catalog.OpenAsset(t.Context(), &openers.Files{}, uri, 0)
		kept, parsing := catalog.ParseIndex(m.Kept(b.Index), 0)
		if errors.Join(err, parsing) != nil || !catalog.Matches(b.Index, kept) || b.Axes != (chunk.Axes{}) {
			t.Errorf("%s without words: %+v, %v", name, b.Axes, errors.Join(err, parsing))
		}
		if _, _, err := catalog.OpenAsset(t.Context(), &openers.Files{}, uri, 1); fault.KindOf(err) != fault.Limit {
			t.Errorf("%s: chunks of a byte at most: %v", name, err)
		}
	}
}

// TestSameIndex: an index is the one of a file also without what older catalogs leave out. What files beside the raster
// say is not compared.
func TestSameIndex(t *testing.T) {
	data := func(name string) string {
		return string(testfile.Read(t, filepath.Join(corpus.Testdata(t), name)))
	}
	nodata := ifdwrite.Text(ifd.TagGDALNoData, "7")
	files := map[string]string{"alpha": data("alpha/rgba.tif"), "palette": data("extras/palette.tif"),
		"mask": data("masks/bytes.tif"), "scales": data("extras/scaled.tif"), "plain": string(folder.TIFF(4, 4, 0)),
		"rumi": rumiOf(t, chunk.Uint8, nodata), "rumi of bits": rumiOf(t, chunk.Uint64,
			ifdwrite.Text(ifd.TagGDALNoData, "18446744073709551615")), "png": greyPNG(t, "\x00\xc8")}
	nine, bits := 9.0, uint64(9)
	pixel := &chunk.Index{Bands: 1, Height: 1, Width: 1, ChunkB: 1, ChunkH: 1, ChunkW: 1, DType: chunk.Uint8,
		Ranges: []chunk.Range{{Len: 1}}}
	changes := []struct {
		of, beside string // a file beside says it
		old        bool   // older catalogs are like this
		change     func(x *chunk.Index)
	}{
		{"nothing", "", true, func(*chunk.Index) {}},
		{"no mask", ".msk", true, func(x *chunk.Index) { x.Mask = nil }},
		{"a mask", ".msk", false, func(x *chunk.Index) { x.Mask = pixel }},
		{"no alpha", ".aux.xml", true, func(x *chunk.Index) { x.Alpha = false }},
		{"alpha", ".aux.xml", false, func(x *chunk.Index) { x.Alpha = true }},
		{"no classes", ".aux.xml", true, func(x *chunk.Index) { x.Classes = false }},
		{"classes", ".aux.xml", false, func(x *chunk.Index) { x.Classes = true }},
		{"no scales", ".aux.xml", true, func(x *chunk.Index) { x.Physical = nil }},
		{"scales", ".aux.xml", false, func(x *chunk.Index) { x.Physical = []chunk.Linear{{Scale: 9}} }},
		{"no nodata", ".aux.xml", false, func(x *chunk.Index) { x.NoData, x.NoDataBits = nil, nil }},
		{"nodata", ".aux.xml", false, func(x *chunk.Index) { x.NoData = &nine }},
		{"nodata of bits", ".aux.xml", false, func(x *chunk.Index) { x.NoDataBits = &bits }},
		{"nodata of alpha", ".aux.xml", false, func(x *chunk.Index) { x.SetNoData([][]float64{nil, {nine}}) }},
		{"another height", "", false, func(x *chunk.Index) { x.Height++ }},
		{"another place", "", false, func(x *chunk.Index) {
			x.Ranges = slices.Clone(x.Ranges)
			x.Ranges[0].Off++
		}},
	}
	for name, file := range files {
		path := filepath.Join(t.TempDir(), "a.tif")
		testfile.Write(t, path, []byte(file))
		a, _, err := catalog.OpenAsset(t.Context(), &openers.Files{}, path, 0)
		if err != nil {
			t.Fatal(name, err)
		}
		r := source.Memory(file)
		late := strings.HasPrefix(name, "rumi") || name == "png" // older catalogs lack its nodata
		for _, c := range changes {
			x := *a.Index
			c.change(&x)
			same := bytes.Equal(blob.Append(nil, a.Index), blob.Append(nil, &x))
			for _, beside := range []string{"", ".tfw", ".MSK", ".msk .tfw", ".aux.xml"} {
				want := same || c.old || late && c.of == "no nodata" ||
					c.beside != "" && strings.Contains(strings.ToLower(beside), c.beside)
				got, err := catalog.SameIndex(t.Context(), r, &x, beside, chunk.Axes{}, 0)
				if err != nil || got != want {
					t.Errorf("%s beside %q, %s: %v, want %v, %v", name, beside, c.of, got, want, err)
				}
			}
		}
		damaged := source.Memory("II*\x00\xff\xff")
		if _, err := catalog.SameIndex(t.Context(), damaged, a.Index, "", chunk.Axes{}, 0); fault.KindOf(err) == 0 {
			t.Errorf("%s beside a damaged file: %v", name, err)
		}
	}
	array, file := &chunk.Index{Blocks: &chunk.Blocks{}}, pixel
	for _, x := range []*chunk.Index{array, file} {
		for _, y := range []*chunk.Index{array, file} {
			if catalog.Matches(x, y) != (x == y) {
				t.Errorf("indexes with blocks: %v and %v", x.Blocks, y.Blocks)
			}
		}
	}
}

// TestKeptIndexes: what a catalog keeps of a file says all that its index does. Only what the header of a rumi file has
// no room for, and a mask in a file of its own, need another form than the header.
func TestKeptIndexes(t *testing.T) {
	number, bits := 7.0, uint64(7)
	header := []byte("a header")
	pixel := chunk.Index{Bands: 1, Height: 1, Width: 1, ChunkB: 1, ChunkH: 1, ChunkW: 1, DType: chunk.Uint8,
		Ranges: []chunk.Range{{Len: 1}}}
	said := slices.Repeat([]chunk.Index{pixel}, 4)
	said[1].NoData, said[2].NoDataBits, said[3].Physical = &number, &bits, []chunk.Linear{{Scale: 2}}
	for _, format := range []*magic.Format{magic.Rumi, magic.TIFF, magic.PNG} {
		for i, x := range said {
			m := catalog.Meta{Format: format, Blob: header}
			want := header
			if format == magic.Rumi && i > 0 {
				want = blob.Append(nil, &x)
			}
			if got := m.Kept(&x); !bytes.Equal(got, want) {
				t.Errorf("%v, index %d: %q", format, i, got)
			}
			if got, err := m.Header(); err != nil || !bytes.Equal(got, header) {
				t.Errorf("the header: %q, %v", got, err)
			}
		}
	}
	if _, err := (&catalog.Meta{}).Header(); fault.KindOf(err) != fault.Unsupported {
		t.Errorf("a virtual raster has a header: %v", err)
	}
	path := filepath.Join(corpus.Testdata(t), "beside", "mask.tif")
	a, m, err := catalog.OpenAsset(t.Context(), &openers.Files{}, path, 0)
	if err != nil {
		t.Fatal(err)
	}
	for kept, masked := range map[string]bool{string(m.Kept(a.Index)): true, string(m.Blob): false} {
		if x, err := catalog.ParseIndex([]byte(kept), 0); err != nil || (x.Mask != nil) != masked {
			t.Errorf("a mask of its own: %+v, want one: %v, %v", x, masked, err)
		}
	}
}

// TestRastersInFiles: below roots, an index counts only where its file has a raster.
func TestRastersInFiles(t *testing.T) {
	dir := folder.Of(t, "a.tif", "secret=a text of many bytes")
	raster, err := os.ReadFile(filepath.Join(dir, "a.tif"))
	if err != nil {
		t.Fatal(err)
	}
	folder.Write(t, filepath.Join(dir, "b.zip"), "PK"+string(raster))
	end := int64(2 + len(raster))
	below := openers.Below(&openers.Files{}, []string{dir})
	for _, c := range []struct {
		name string
		off  int64
		kind fault.Kind
	}{
		{"a.tif", 0, 0}, {"secret", 0, fault.Unsupported}, {"none", 0, fault.NotFound}, {"b.zip", 2, 0},
		{"b.zip", 0, fault.Unsupported}, {"b.zip", 3, fault.Unsupported}, {"b.zip", end - 1, fault.Unsupported},
		{"b.zip", end, fault.Unsupported}, {"b.zip", end + 1, fault.Unsupported},
		{"b.zip", math.MaxInt64, fault.Unsupported}, {"b.zip", -1, fault.Unsupported},
	} {
		err := catalog.CheckRaster(t.Context(), below, filepath.Join(dir, c.name), c.off)
		var cause *fault.Error
		if fault.KindOf(err) != c.kind || err != nil && (!errors.As(err, &cause) ||
			cause.File != filepath.Join(dir, c.name)) {
			t.Errorf("%s at %d: %v, want %v", c.name, c.off, err, c.kind)
		}
		if err := catalog.CheckRaster(t.Context(), &openers.Files{}, filepath.Join(dir, c.name), c.off); err != nil {
			t.Errorf("%s at %d without roots: %v", c.name, c.off, err)
		}
		if err := catalog.CheckRaster(t.Context(), below, "s3://bucket/"+c.name, c.off); err != nil {
			t.Errorf("%s at %d of a store: %v", c.name, c.off, err)
		}
	}
}

// TestOverviewFiles: the file of overviews beside a raster is opened by its name, before the query of a URL; a file of
// pictures is none, and a missing one has no levels.
func TestOverviewFiles(t *testing.T) {
	dir := filepath.Join(corpus.Testdata(t), "overviews")
	a, _, err := catalog.OpenAsset(t.Context(), &openers.Files{}, filepath.Join(dir, "plain.tif"), 0)
	if err != nil {
		t.Fatal(err)
	}
	levels := testfile.Read(t, filepath.Join(dir, "plain.tif.ovr"))
	for uri, want := range map[string]string{"/plain.tif": "/plain.tif.ovr", "/a?b.tif": "/a?b.tif.ovr",
		"https://host/a.tif?key=1&b=.": "https://host/a.tif.ovr?key=1&b=.", "s3://b/a.tif": "s3://b/a.tif.ovr"} {
		file, found, err := catalog.OverviewFile(t.Context(), folder.Memory{Name: want, Data: levels}, uri, a.Index, 0)
		if err != nil || len(found) != 2 || found[0].Height != 39 || file.URI != want ||
			file.Size != int64(len(levels)) {
			t.Errorf("%s: %q, %d levels, %v", uri, file.URI, len(found), err)
		}
		if _, found, err := catalog.OverviewFile(t.Context(), folder.Memory{}, uri, a.Index, 0); found != nil ||
			err != nil {
			t.Errorf("%s without the file: %v, %v", uri, found, err)
		}
	}
	for name, n := range map[string]int{"pyramid.tif": 2, "both.tif": 1, "plain.tif": 0} { // as GDAL reads them
		file := source.Memory(testfile.Read(t, filepath.Join(dir, name)))
		b, _, err := catalog.OpenAsset(t.Context(), folder.OneFile(file), name, 0)
		inside, finding := catalog.Overviews(t.Context(), file, b.Index, 0)
		if errors.Join(err, finding) != nil || len(inside) != n {
			t.Errorf("%s holds %d overviews, want %d, %v", name, len(inside), n, errors.Join(err, finding))
		}
	}
	for says, c := range map[string]struct {
		x    *chunk.Index
		file []byte
	}{"header at 0: a file of overviews that is no TIFF": {a.Index, pictures(t, 4)[1]}, "": {a.Index, levels[:200]},
		"an overview of (1, 4, 4) uint8 of an image of (2, 77, 101) uint16": {a.Index, folder.TIFF(4, 4, 0)}} {
		file, found, err := catalog.OverviewFile(t.Context(), folder.OneFile(c.file), "/a.tif", c.x, 0)
		if fault.KindOf(err) == 0 || !strings.Contains(err.Error(), says) || found != nil {
			t.Errorf("%q: %v, %v, %v", says, file.URI, found, err)
		}
	}
}
