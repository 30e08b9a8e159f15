package taco_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/format/column"
	"github.com/chaski-eo/chaski/format/tables/spacetime"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/source/openers"
	"github.com/chaski-eo/chaski/store"
	"github.com/chaski-eo/chaski/store/taco"
	"github.com/chaski-eo/chaski/tiff"
	"github.com/chaski-eo/chaski/tools/testkit/corpus"
	"github.com/chaski-eo/chaski/tools/testkit/outage"
	"github.com/chaski-eo/chaski/tools/testkit/race"
	"github.com/chaski-eo/chaski/tools/testkit/testfile"
)

// v1 returns the rows of a type about Tortillas and TACO 0.2.
func v1(t testing.TB, typ string) []corpus.Container {
	t.Helper()
	rows := slices.DeleteFunc(corpus.Containers(t), func(c corpus.Container) bool {
		if c.Type != typ || len(c.Path) != 1 {
			return true
		}
		ext := filepath.Ext(c.Path[0])
		return ext != ".taco" && ext != ".tortilla"
	})
	if len(rows) == 0 {
		t.Fatalf("no %s of TACO 0.2", typ)
	}
	return rows
}

// TestTortillaLeaves: the bytes of every sample are those that the original writers put there, levels
// have their rows, and everything passes verification.
func TestTortillaLeaves(t *testing.T) {
	race.SkipCovered(t)
	files := &openers.Files{}
	defer files.Close()
	for _, c := range v1(t, "case") {
		t.Run(c.Path[0], func(t *testing.T) {
			d := mustOpen(t, c.At()...)
			var lines []string
			for e, err := range d.Leaves(t.Context(), true) {
				if err != nil {
					t.Fatal(err)
				}
				lines = append(lines, line(t, files, e))
			}
			slices.Sort(lines)
			if got := corpus.SHA256([]byte(strings.Join(lines, ""))); got != c.SHA256 || len(lines) != c.NLeaves {
				t.Errorf("%d leaves with hash %s, want %d with %s", len(lines), got, c.NLeaves, c.SHA256)
			}
			for k := 0; k < d.Levels(); k++ {
				tab, err := d.Level(t.Context(), k)
				if err != nil || tab.Len() != c.Levels[fmt.Sprintf("level%d", k)] {
					t.Errorf("level %d: %d rows, %v, want %v", k, tab.Len(), err, c.Levels)
				}
			}
			if n, ok := c.Levels["chunks"]; ok {
				tab, err := d.StoredTable(t.Context(), "chunks")
				if err != nil {
					t.Fatal(err)
				}
				if tab.Len() != n {
					t.Errorf("%d chunks, want %d", tab.Len(), n)
				}
			}
			if r, err := d.Verify(t.Context()); err != nil || r.Files != int64(c.NLeaves) || r.Notes != nil {
				t.Errorf("%+v, %v", r, err)
			}
		})
	}
}

// TestBadTortillas: what is malformed is refused with a kind, at the latest when everything is verified.
func TestBadTortillas(t *testing.T) {
	race.SkipCovered(t)
	for _, c := range v1(t, "bad") {
		d, err := open(t, c.At(), taco.Options{})
		if err == nil {
			_, err = d.Verify(t.Context())
		}
		must := c.Expect == "error" || c.Expect == "error-on-read"
		if must && fault.KindOf(err) == 0 || c.Expect == "accept" && err != nil || err != nil &&
			fault.KindOf(err) == 0 {
			t.Errorf("%s, %s: %v, want %s", c.Path[0], c.Wrong, err, c.Expect)
		}
	}
}

// TestChunks: a chunk is found by the root and id that are stored, its bytes are those of the manifest,
// and its path leads to it again.
func TestChunks(t *testing.T) {
	files := &openers.Files{}
	defer files.Close()
	for _, c := range v1(t, "query") {
		if c.Op != "chunk" {
			continue
		}
		d := mustOpen(t, c.At()...)
		for _, keys := range [][]string{append(strings.Split(c.Root, "/"), c.ID), {c.Root, c.ID},
			{c.Root + "/" + c.ID}} {
			e, err := d.Locate(t.Context(), keys)
			if err != nil || e.Offset != c.Offset || e.Size != c.Size || e.Folder {
				t.Fatalf("%s %q: %+v, %v", c.Path[0], keys, e, err)
			}
			r, err := e.Open(t.Context(), files)
			if err != nil {
				t.Fatal(err)
			}
			b := make([]byte, r.Size())
			if err := r.ReadAt(t.Context(), b, 0); err != nil || corpus.SHA256(b) != c.Bytes {
				t.Errorf("%s %q: other bytes, %v", c.Path[0], keys, err)
			}
			if err := r.Close(); err != nil {
				t.Fatal(err)
			}
			_, name, _ := strings.Cut(e.ID, "::")
			again, err := d.Resolve(t.Context(), e.Of.Path+"::"+name)
			if err != nil || again.Offset != e.Offset || fmt.Sprint(e.Number) != name {
				t.Errorf("%s %s: %+v, %v", c.Path[0], e.Of.Path, again, err)
			}
		}
		for _, key := range []string{c.ID + "9999", "::0", "none::0", c.Root + "::x"} {
			if e, err := d.Resolve(t.Context(), key); fault.KindOf(err) != fault.NotFound {
				t.Errorf("%s: %+v, %v", key, e, err)
			}
		}
	}
}

// TestDecodedChunks: the chunks of a sample, decoded each by itself, make up the image that rasterio
// reads.
func TestDecodedChunks(t *testing.T) {
	race.SkipCovered(t)
	n := 0
	for _, c := range v1(t, "query") {
		if c.Op != "decode leaf" {
			continue
		}
		d := mustOpen(t, c.At()...)
		var image []byte
		shape := c.Shape
		covered := 0
		for k := 0; ; k++ {
			e, err := d.Resolve(t.Context(), fmt.Sprintf("%s::%d", c.ID, k))
			if fault.KindOf(err) == fault.NotFound {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			ch := readChunk(t, d, e)
			if ch.DType.String() != c.DType {
				t.Fatalf("%s: %v, want %s", c.ID, ch.DType, c.DType)
			}
			size := ch.DType.Size()
			if image == nil {
				image = make([]byte, shape[0]*shape[1]*shape[2]*size)
			}
			covered += paste(image, shape, ch)
		}
		if covered != len(image) || corpus.SHA256(image) != c.Pixels {
			t.Errorf("%s %s: %d of %d bytes covered, or other pixels", c.Path[0], c.ID, covered, len(image))
		}
		n++
	}
	if n == 0 {
		t.Fatal("no sample")
	}
}

// paste copies a chunk into an image, and returns the number of bytes.
func paste(image []byte, shape []int, c *decodedChunk) int {
	size, at := c.DType.Size(), 0
	n := (c.Box.X1 - c.Box.X0) * size
	for b := c.Box.B0; b < c.Box.B1; b++ {
		for y := c.Box.Y0; y < c.Box.Y1; y++ {
			copy(image[((b*shape[1]+y)*shape[2]+c.Box.X0)*size:], c.Data[at:at+n])
			at += n
		}
	}
	return at
}

const streamed = "taco-v1/stream_n2_top.taco"

// TestChunkRequests: opening a streaming TACO takes two reads where its tables stand at the end; a chunk
// takes one range, its own, the first of its sample with the sample's header.
func TestChunkRequests(t *testing.T) {
	s := &spy{}
	defer s.files.Close()
	path := testdata(t, streamed)
	d, err := taco.Open(t.Context(), s, []string{path}, taco.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if len(s.reads) != 2 {
		t.Errorf("opened by reads %q", s.reads)
	}
	e, err := d.Resolve(t.Context(), "roi_1/t1/t1-img::4")
	if err != nil || len(s.reads) != 2 {
		t.Fatalf("%v, reads %q", err, s.reads)
	}
	want := readChunk(t, d, e)
	own := fmt.Sprintf("stream_n2_top.taco %d+%d", e.Offset, e.Size)
	if _, err := d.ChunkIndex(t.Context(), e); err != nil || len(s.reads) != 3 || s.reads[2] == own {
		t.Errorf("%v, reads %q, want one, of the header of the sample", err, s.reads[2:])
	}

	// As a TIFF of its own, the same.
	s.reads = nil
	r, err := new(taco.Kind).OpenMember(t.Context(), s, path+"::roi_1/t1/t1-img::4")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	im, err := tiff.Open(t.Context(), r, tiff.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	x := im.Index
	if len(x.Ranges) != 1 || x.Width != want.Box.X1-want.Box.X0 || x.Height != want.Box.Y1-want.Box.Y0 ||
		x.DType != want.DType {
		t.Fatalf("%+v", x)
	}
	if len(s.reads) != 3 { // header, tables, the sample's header; no chunk
		t.Errorf("reads %q", s.reads)
	}
	src, dst := make([]byte, im.Index.Ranges[0].Len), make([]byte, im.Index.DecodedBytes(0))
	if err := r.ReadAt(t.Context(), src, im.Index.Ranges[0].Off); err != nil {
		t.Fatal(err)
	}
	if err := chunk.NewDecoder(nil).Decode(dst, src, im.Index, 0); err != nil ||
		!bytes.Equal(dst[:len(want.Data)], want.Data) {
		t.Errorf("other pixels, %v", err)
	}
	if len(s.reads) != 4 || s.reads[3] != own {
		t.Errorf("reads %q, want the last to be %s", s.reads, own)
	}
}

// TestMovedChunk: a chunk that its sample has elsewhere than its row says is neither read nor verified.
func TestMovedChunk(t *testing.T) {
	b := testfile.Read(t, testdata(t, streamed))
	path := filepath.Join(t.TempDir(), "moved.taco")
	const name = "roi_1/t0/t0-img::15"
	e, err := mustOpen(t, testdata(t, streamed)).Resolve(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	own := binary.LittleEndian.AppendUint64(nil, uint64(e.Offset-e.Of.Offset))
	at := bytes.Index(b[e.Of.Offset:e.Of.Offset+4096], own)
	if at < 0 {
		t.Fatal("the sample's header does not have the chunk")
	}
	b[int(e.Of.Offset)+at]++
	testfile.Write(t, path, b)
	d := mustOpen(t, path)
	e.URI, e.Of.URI = path, path
	if _, err := d.ChunkIndex(t.Context(), e); fault.KindOf(err) != fault.Corrupt {
		t.Error(err)
	}
	files := &openers.Files{}
	defer files.Close()
	if _, err := new(taco.Kind).OpenMember(t.Context(), files, path+"::"+name); fault.KindOf(err) != fault.Corrupt {
		t.Error(err)
	}
	if _, err := d.Verify(t.Context()); fault.KindOf(err) != fault.Corrupt {
		t.Error(err)
	}
}

// plainNested is a nested TACO without a chain: a streaming one, whose pointer has another name. Its
// nested samples are complete Tortillas too.
func plainNested(t *testing.T) string {
	t.Helper()
	b := testfile.Read(t, testdata(t, streamed))
	if n := bytes.Count(b, []byte("pointer")); n < 4 {
		t.Fatal(n)
	}
	path := filepath.Join(t.TempDir(), "plain.taco")
	testfile.Write(t, path, bytes.ReplaceAll(b, []byte("pointer"), []byte("pointed")))
	return path
}

// TestNestedFooters: with and without the chain the samples are the same; without it, the footers are read once, when
// the first path leads below level 0.
func TestNestedFooters(t *testing.T) {
	path := plainNested(t)
	list := func(d *taco.Dataset) (all []string) {
		for e, err := range d.Leaves(t.Context(), false) {
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, fmt.Sprintf("%s %d+%d", e.Path, e.Offset, e.Size))
		}
		return all
	}
	want := list(mustOpen(t, testdata(t, streamed)))
	for i := range want { // the nested footers have the ids that were made unique for the chain
		want[i] = strings.ReplaceAll(strings.ReplaceAll(want[i], "t0-", ""), "t1-", "")
	}
	d := mustOpen(t, path)
	if d.Form().String() != "TACO 0.2" {
		t.Error(d.Form())
	}
	if got := list(d); !slices.Equal(got, want) || len(got) != 4 {
		t.Errorf("%q, want %q", got, want)
	}
	for row := range 4 {
		e, err := d.Entry(t.Context(), 2, row)
		if err != nil || !strings.HasPrefix(want[row], e.Path+" ") {
			t.Errorf("row %d is %s, %v", row, e.Path, err)
		}
	}

	s := &spy{}
	defer s.files.Close()
	d, err := taco.Open(t.Context(), s, []string{path}, taco.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if len(s.reads) != 2+2*2 { // header and tail; header and footer of the first nested one of each level
		t.Errorf("opened by reads %q", s.reads)
	}
	s.reads = nil
	e, err := d.Resolve(t.Context(), "roi_1/t1/img")
	if err != nil || len(s.reads) != 2*(2+4) { // header and footer of those of both levels
		t.Errorf("%v, reads %q", err, s.reads)
	}
	if e.Row != 3 {
		t.Errorf("row %d", e.Row)
	}
	s.reads = nil
	if _, err := d.Resolve(t.Context(), "roi_0/t0/img"); err != nil || len(s.reads) != 0 {
		t.Errorf("%v, reads %q", err, s.reads)
	}
}

// TestEveryCallOfATortillaFailsOnce: whichever call of the source fails, the error comes out.
func TestEveryCallOfATortillaFailsOnce(t *testing.T) {
	for _, path := range []string{plainNested(t), testdata(t, streamed)} {
		walk := func(s *spy) error {
			d, err := taco.Open(t.Context(), s, []string{path}, taco.Options{})
			if err != nil {
				return err
			}
			defer d.Close()
			for _, err := range d.Leaves(t.Context(), true) {
				if err != nil {
					return err
				}
			}
			_, err = d.Verify(t.Context())
			return err
		}
		good := &spy{}
		if err := walk(good); err != nil {
			t.Fatal(err)
		}
		for n := 1; n <= good.calls; n++ {
			s := &spy{failAt: n}
			if err := walk(s); err == nil {
				t.Errorf("%s, call %d of %d (of %q): no error", path, n, good.calls, s.reads)
			}
			if s.open != 0 {
				t.Errorf("%s, call %d: %d readers are open", path, n, s.open)
			}
			if err := s.files.Close(); err != nil {
				t.Fatal(err)
			}
		}
		if err := good.files.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestLongestID: ids may hold what paths are made of.
func TestLongestID(t *testing.T) {
	d := mustOpen(t, testdata(t, "tortilla/flat_bytes.tortilla"))
	n := 0
	rows, err := d.Visible(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range rows {
		e, err := d.Entry(t.Context(), 0, row)
		if err != nil {
			t.Fatal(err)
		}
		if strings.ContainsAny(e.ID, "/ ") {
			n++
		}
		if got, err := d.Resolve(t.Context(), e.ID); err != nil || got.Row != e.Row {
			t.Errorf("%q: row %d, %v", e.ID, got.Row, err)
		}
	}
	if n == 0 {
		t.Error("no id with a slash or a blank")
	}
}

// parts writes a container as n parts, numbered from first on.
func parts(t *testing.T, n, first int) (dir string, paths []string) {
	t.Helper()
	b := testfile.Read(t, testdata(t, "taco-v1/bytes.taco"))
	binary.LittleEndian.PutUint64(b[18:], uint64(n))
	dir = t.TempDir()
	for i := range n {
		p := filepath.Join(dir, fmt.Sprintf("set.%04d.part.taco", first+i))
		testfile.Write(t, p, b)
		paths = append(paths, p)
	}
	return dir, paths
}

// TestParts: a part is readable alone, all of them by their names or that of the whole, and a set that
// lacks one is not.
func TestParts(t *testing.T) {
	for first := range 2 {
		dir, paths := parts(t, 3, first)
		rows := func(names ...string) int {
			d, err := open(t, names, taco.Options{})
			if err != nil {
				if fault.KindOf(err) != fault.NotFound {
					t.Error(err)
				}
				return -1
			}
			tab, err := d.Level(t.Context(), 0)
			if err != nil {
				t.Fatal(err)
			}
			return tab.Len()
		}
		whole := filepath.Join(dir, "set.taco")
		for _, c := range []struct {
			names []string
			want  int
		}{
			{paths[1:2], 9}, {paths, 27}, {[]string{paths[2], paths[0], paths[1]}, 27},
			{paths[:2], -1}, {paths[1:], -1},
			{[]string{whole}, 27}, {[]string{filepath.Join(dir, "other.taco")}, -1},
		} {
			if got := rows(c.names...); got != c.want {
				t.Errorf("parts from %d, %q: %d rows, want %d", first, c.names, got, c.want)
			}
		}
		outage.Each(t, whole, func(files source.Opener) (any, error) {
			d, err := taco.Open(t.Context(), files, []string{whole}, taco.Options{})
			if err != nil {
				if !errors.Is(err, outage.Err) {
					t.Errorf("%v", err)
				}
				return nil, err
			}
			return d.Parts(), d.Close()
		})
		if err := os.Remove(paths[1]); err != nil {
			t.Fatal(err)
		}
		if got := rows(whole); got != -1 {
			t.Errorf("a set without a part has %d rows", got)
		}
		if d := mustOpen(t, paths[0]); d.Partitions() != 3 {
			t.Errorf("%d partitions", d.Partitions())
		}
	}
}

// TestUnevenParts: of the parts of a set, some may have nested samples and others none. The rows of a level
// are those of the parts that have it.
func TestUnevenParts(t *testing.T) {
	dir := t.TempDir()
	flat := testdata(t, "tortilla/compiled_bytes.tortilla")
	deep := uneven(t)
	for i, from := range []string{flat, deep, flat} {
		b := testfile.Read(t, from)
		binary.LittleEndian.PutUint64(b[18:], 3)
		testfile.Write(t, filepath.Join(dir, fmt.Sprintf("set.%04d.part.tortilla", i)), b)
	}
	leaves := func(path string) (paths []string) {
		for e, err := range mustOpen(t, path).Leaves(t.Context(), false) {
			if err != nil {
				t.Fatal(err)
			}
			paths = append(paths, e.Path)
		}
		slices.Sort(paths)
		return paths
	}
	whole := filepath.Join(dir, "set.tortilla")
	want := append(append(leaves(flat), leaves(flat)...), leaves(deep)...)
	slices.Sort(want)
	if got := leaves(whole); !slices.Equal(got, want) {
		t.Errorf("leaves %q, want %q", got, want)
	}
	above := mustOpen(t, flat)
	first, err := above.Level(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	alone, d := mustOpen(t, deep), mustOpen(t, whole)
	for k := 1; k < 4; k++ {
		want, err := alone.Parents(t.Context(), k)
		if err != nil {
			t.Fatal(err)
		}
		if k == 1 { // the rows of the first part stand before them
			want = slices.Clone(want)
			for i := range want {
				want[i] += int32(first.Len())
			}
		}
		if got, err := d.Parents(t.Context(), k); err != nil || !slices.Equal(got, want) {
			t.Errorf("level %d: parents %v, want %v, %v", k, got, want, err)
		}
		a, err := alone.Level(t.Context(), k)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := d.Level(t.Context(), k); err != nil || got.Len() != a.Len() || got.Index("tortilla:id") < 0 {
			t.Errorf("level %d: %v, %v", k, got, err)
		}
	}
	if e, err := d.Resolve(t.Context(), "b/roi_1/t1/img"); err != nil || e.URI != d.Parts()[1] {
		t.Error(e, err)
	}
}

// near compares by a relative tolerance.
func near(a, b []float64, tol float64) bool {
	return slices.EqualFunc(a, b, func(x, y float64) bool { return math.Abs(x-y) <= tol*max(math.Abs(x), math.Abs(y)) })
}

// TestPooledStatistics: those of the manifest, which were computed by the formula, and in the form that
// normalisers take.
func TestPooledStatistics(t *testing.T) {
	for _, c := range v1(t, "query") {
		if c.Op != "pooled stats" {
			continue
		}
		d := mustOpen(t, c.At()...)
		p, err := d.Pool(t.Context(), c.Component, nil)
		if err != nil {
			t.Fatal(err)
		}
		if !near(p.Mean, c.Mean, 1e-9) || !near(p.Std, c.Std, 1e-9) || !near(p.Min, c.Min, 0) ||
			!near(p.Max, c.Max, 0) || p.Samples != c.N {
			t.Errorf("%s %s: %+v, want %v %v %v %v", c.Path[0], c.Component, p, c.Mean, c.Std, c.Min, c.Max)
		}
		r, err := d.Report(t.Context(), c.Component, nil)
		if err != nil {
			t.Fatal(err)
		}
		name := c.Component
		if name == "*" {
			continue
		}
		scale, offset, _, err := r.Normalizer(name, "mean_std", nil)
		for b := range c.Mean {
			if err != nil || math.Abs(scale[b]*c.Mean[b]+offset[b]) > 1e-6 || math.Abs(scale[b]*c.Std[b]-1) > 1e-6 {
				t.Errorf("%s band %d: scale %v, offset %v, %v", name, b, scale, offset, err)
			}
		}
		if r.Fields[name].DType != chunk.Uint16 && r.Fields[name].DType != chunk.Uint8 {
			t.Errorf("%s: dtype %v", name, r.Fields[name].DType)
		}
	}
}

// decodedChunk is a chunk of a sample: the part of the image that it covers, in shape (bands, rows, columns).
type decodedChunk struct {
	Box   chunk.Box
	DType chunk.DType
	Data  []byte
}

// readChunk decodes a chunk by its own index, as the loader does.
func readChunk(t *testing.T, d *taco.Dataset, e store.Entry) *decodedChunk {
	t.Helper()
	files := &openers.Files{}
	defer files.Close()
	x, err := d.ChunkIndex(t.Context(), e)
	if err != nil {
		t.Fatal(err)
	}
	r, err := files.Open(t.Context(), e.URI)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	src := make([]byte, x.Ranges[0].Len)
	if err := r.ReadAt(t.Context(), src, x.Ranges[0].Off); err != nil {
		t.Fatal(err)
	}
	tile := make([]byte, x.DecodedBytes(0), x.DecodedBytes(0)+chunk.Spare)
	if err := chunk.NewDecoder(nil).Decode(tile, src, x, 0); err != nil {
		t.Fatal(err)
	}
	sample, err := e.Of.Open(t.Context(), files)
	if err != nil {
		t.Fatal(err)
	}
	defer sample.Close()
	im, err := tiff.Open(t.Context(), sample, tiff.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	positions := im.Index.Across() * im.Index.Down() // TIFF stores all chunks of a band before the next band
	c := &decodedChunk{im.Index.Box(e.Number%positions*im.Index.Groups() + e.Number/positions), x.DType, nil}
	strides, size := x.Strides(0), x.DType.Size()
	for b := range x.Bands {
		for y := range x.Height {
			for k := range x.Width {
				off := (strides.Plane(b) + y*strides.Y + k*strides.X) * size
				c.Data = append(c.Data, tile[off:off+size]...)
			}
		}
	}
	return c
}

// TestSensors: what the notation for sensors and bands means, by the examples of the specification.
func TestSensors(t *testing.T) {
	s, err := taco.ParseSensor("landsat8oli[B01, B02]")
	if err != nil || s.Name != "landsat8oli" || len(s.Bands) != 2 || s.Bands[1].Name != "B02" {
		t.Errorf("%+v, %v", s, err)
	}
	if at, err := s.Pick("b02", "blue", "B01"); err != nil || !slices.Equal(at, []int{1, 1, 0}) {
		t.Error(at, err)
	}
	if _, err := s.Pick("B03"); fault.KindOf(err) != fault.NotFound {
		t.Error(err)
	}
	for name := range strings.FieldsSeq("landsat1mss landsat2mss landsat3mss landsat4mss landsat5mss landsat4tm " +
		"landsat5tm landsat7etm landsat8oli landsat9oli sentinel2msi eo1ali aster modis") {
		s, err := taco.ParseSensor(name)
		if err != nil || len(s.Bands) < 4 {
			t.Errorf("%s: %+v, %v", name, s, err)
		}
		seen := map[string]bool{}
		for i, b := range s.Bands {
			if at, err := s.Pick(b.Name); err != nil || at[0] != i || seen[b.Name] {
				t.Errorf("%s band %s: %v, %v", name, b.Name, at, err)
			}
			seen[b.Name] = true
		}
	}
	// The names of colours are the oracle for the wavelengths, in nanometres.
	colours := map[string][2]float64{"blue": {430, 530}, "green": {500, 610}, "red": {600, 720}, "nir": {700, 1000},
		"swir": {1200, 2500}, "tir": {8000, 13000}, "red edge": {680, 900}}
	for _, name := range taco.Sensors() {
		s, err := taco.ParseSensor(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range s.Bands {
			colour := strings.TrimRight(b.CommonName, " 1234")
			is, ok := colours[colour]
			if ok && !(b.Centre >= is[0] && b.Centre <= is[1]) || b.Centre <= b.Width || b.Metres < 10 {
				t.Errorf("%s: %+v", name, b)
			}
		}
	}
	if s, err := taco.ParseSensor("mine[red,green]"); err != nil || len(s.Bands) != 2 || s.Bands[0].Name != "red" {
		t.Errorf("%+v, %v", s, err)
	}
	for _, bad := range []string{"landsat8oli[B99]", "landsat8oli[", "landsat8oli[]", "landsat8oli[B01] x"} {
		if s, err := taco.ParseSensor(bad); err == nil {
			t.Errorf("%s: %+v", bad, s)
		}
	}
}

// TestSensorOfCollection: sensor and bands as the text and the writers put them.
func TestSensorOfCollection(t *testing.T) {
	for _, c := range [][2]string{
		{`{"id":"x"}`, ""},
		{`{"id":"x","sensor":null,"optical_data":null}`, ""},
		{`{"sensor":"landsat8oli[B04, B02]"}`, "landsat8oli B04 B02"},
		{`{"optical_data":{"sensor":"landsat8oli","bands":[{"name":"B04","index":3},{"name":"B02","index":1}]}}`,
			"landsat8oli B04 B02"},
		{`{"optical_data":{"sensor":"x","bands":[{"name":"b","index":1},{"name":"a","index":0}]}}`, "x a b"},
		{`{"optical_data":{"sensor":"x","bands":[{"name":"b","index":0},{"name":"a","index":0}]}}`, "x b a"},
		{`{"optical_data":{"sensor":"x","bands":[{"name":"b","index":-1},{"name":"a"}]}}`, "x b a"},
		{`{"optical:sensor":"sentinel2msi[B8A]","optical:bands":null}`, "sentinel2msi B8A"},
		{`{"optical:sensor":"landsat8oli","optical:bands":[{"name":"B02","index":99999999},{"name":"B01","index":0}]}`,
			"landsat8oli B02 B01"},
		{`{"sensor":7}`, ""},
	} {
		doc, want := c[0], c[1]
		d := mustOpen(t, withCollection(t, doc))
		s, ok, err := d.Sensor()
		got := s.Name
		for _, b := range s.Bands {
			got += " " + b.Name
		}
		if err != nil || got != want || ok != (want != "") {
			t.Errorf("%s: %q, %t, %v, want %q", doc, got, ok, err, want)
		}
	}
}

// withCollection writes a TACO with another document about it.
func withCollection(t *testing.T, doc string) string {
	t.Helper()
	b := testfile.Read(t, testdata(t, "taco-v1/bytes.taco"))
	binary.LittleEndian.PutUint64(b[26:], uint64(len(b)))
	binary.LittleEndian.PutUint64(b[34:], uint64(len(doc)))
	path := filepath.Join(t.TempDir(), "x.taco")
	testfile.Write(t, path, append(b, doc...))
	return path
}

// TestClasses: a Tortilla is what its columns make it.
func TestClasses(t *testing.T) {
	for _, c := range v1(t, "case") {
		d := mustOpen(t, c.At()...)
		tab, err := d.Level(t.Context(), 0)
		if err != nil {
			t.Fatal(err)
		}
		stac := tab.Index("stac:crs") >= 0 && tab.Index("stac:raster_shape") >= 0 && tab.Index("stac:time_end") >= 0
		rai := tab.Index("rai:admin2") >= 0
		got, err := d.Classes(t.Context(), 0)
		if err != nil {
			t.Fatal(err)
		}
		if slices.Contains(got, "stac-tortilla") != stac || slices.Contains(got, "rai-tortilla") != rai {
			t.Errorf("%s: %q", c.Path[0], got)
		}
	}
}

// uneven writes a Tortilla of two: the first holds files, the second is nested twice more.
func uneven(t *testing.T) string {
	t.Helper()
	type row struct {
		ID     string `parquet:"tortilla:id"`
		Format string `parquet:"tortilla:file_format"`
		Offset int64  `parquet:"tortilla:offset"`
		Length int64  `parquet:"tortilla:length"`
	}
	b := make([]byte, 200)
	var rows []row
	for id, path := range map[string]string{"a": testdata(t, "tortilla/compiled_bytes.tortilla"), "b": plainNested(t)} {
		inner := testfile.Read(t, path)
		rows = append(rows, row{id, "TORTILLA", int64(len(b)), int64(len(inner))})
		b = append(b, inner...)
	}
	slices.SortFunc(rows, func(x, y row) int { return strings.Compare(x.ID, y.ID) })
	return writeTortilla(t, b, rows)
}

// writeTortilla writes a Tortilla of a header's room and data, and the rows of its footer.
func writeTortilla[R any](t *testing.T, b []byte, rows []R) string {
	t.Helper()
	var footer bytes.Buffer
	w := parquet.NewGenericWriter[R](&footer)
	if _, err := w.Write(rows); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	copy(b, "#y")
	for i, v := range []int{len(b), footer.Len(), 1} {
		binary.LittleEndian.PutUint64(b[2+8*i:], uint64(v))
	}
	path := filepath.Join(t.TempDir(), "written.tortilla")
	testfile.Write(t, path, append(b, footer.Bytes()...))
	return path
}

// TestStatisticsThatCannotBePooled: the row and the column of a value that is not finite are told,
// and so are shapes of no number of pixels, and sums that no number holds; rows without statistics
// are passed over.
func TestStatisticsThatCannotBePooled(t *testing.T) {
	type row struct {
		ID     string    `parquet:"tortilla:id"`
		Format string    `parquet:"tortilla:file_format"`
		Offset int64     `parquet:"tortilla:offset"`
		Length int64     `parquet:"tortilla:length"`
		Mean   []float64 `parquet:"stats:mean,list"`
		Std    []float64 `parquet:"stats:std,list"`
		Min    []float64 `parquet:"stats:min,list"`
		Max    []float64 `parquet:"stats:max,list"`
		Shape  []float64 `parquet:"stac:raster_shape,list"`
	}
	inf := math.Inf(1)
	for name, c := range map[string]struct {
		change func(r *row)
		want   string
		kind   fault.Kind
	}{
		"fine": {func(*row) {}, "", 0},
		"none": {func(r *row) { r.Mean, r.Std, r.Min, r.Max = nil, nil, nil, nil }, "", 0},
		"NaN": {func(r *row) {
			r.Mean[1] = math.NaN()
		}, "level0 row 1 column stats:mean: NaN for band 1", fault.Unsupported},
		"inf":   {func(r *row) { r.Max[0] = inf }, "level0 row 1 column stats:max: +Inf for band 0", fault.Unsupported},
		"shape": {func(r *row) { r.Shape[2] = inf }, "level0 row 1 shape", fault.Corrupt},
		"empty": {func(r *row) { r.Shape[1] = 0 }, "level0 row 1 shape", fault.Corrupt},
		"large": {func(r *row) { r.Mean[0] = 1e300 }, "level0: the statistics are too large", fault.Unsupported},
	} {
		rows := make([]row, 2)
		for i := range rows {
			rows[i] = row{fmt.Sprint("s", i), "BYTES", 200, 1, []float64{1, 2}, []float64{0.5, 0.5},
				[]float64{0, 0}, []float64{4, 4}, []float64{2, 8, 8}}
		}
		c.change(&rows[1])
		p, err := mustOpen(t, writeTortilla(t, make([]byte, 201), rows)).Pool(t.Context(), "*", nil)
		if fault.KindOf(err) != c.kind || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q of kind %v", name, err, c.want, c.kind)
		}
		if err == nil && (!near(p.Mean, []float64{1, 2}, 1e-12) || !near(p.Std, []float64{0.5, 0.5}, 1e-12)) {
			t.Errorf("%s: %+v", name, p)
		}
	}
}

// TestDeepLevels: a level that is not known when a nested Tortilla is opened can be asked for in every
// way.
func TestDeepLevels(t *testing.T) {
	path := uneven(t)
	if n := mustOpen(t, path).Levels(); n != 2 {
		t.Fatalf("%d levels are known", n)
	}
	for _, sql := range []string{"SELECT count(*) FROM level3", `SELECT count(DISTINCT "l3:tortilla:offset") FROM l3`} {
		tab, err := mustOpen(t, path).SQL(t.Context(), sql)
		if err != nil {
			t.Fatal(err)
		}
		if v, err := tab.At(t.Context(), 0); err != nil || v.Int(0) == 0 {
			t.Errorf("%s: %v, %v", sql, v, err)
		}
	}
	for _, bad := range []string{"level4", "l4", "level03", "l-1", "level", "chunks"} {
		if _, err := mustOpen(t, path).SQLTable(t.Context(), bad); fault.KindOf(err) != fault.NotFound {
			t.Errorf("%s: %v", bad, err)
		}
	}
	times, err := column.ParseTimes("2020-01-01/2021-01-01")
	if err != nil {
		t.Fatal(err)
	}
	_, err = mustOpen(t, path).Filter(t.Context(), spacetime.Filter{Times: &times, Level: 4})
	if fault.KindOf(err) != fault.NotFound || !strings.Contains(err.Error(), "the levels are 0 to 3") {
		t.Error(err)
	}
	d := mustOpen(t, path)
	if e, err := d.Entry(t.Context(), 3, 3); err != nil || e.Path != "b/roi_1/t1/img" {
		t.Error(e.Path, err)
	}
	n := 0
	for _, err := range mustOpen(t, path).Leaves(t.Context(), false) {
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	if n != 4+4 {
		t.Errorf("%d leaves", n)
	}
	if _, err := mustOpen(t, path).Verify(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestGroupsHaveHeadersOfTheirOwn: a group counts its containers anew, so that headers that were
// kept for one are not taken for those of another.
func TestGroupsHaveHeadersOfTheirOwn(t *testing.T) {
	b := testfile.Read(t, testdata(t, streamed))
	const name = "roi_1/t1/t1-img::4"
	e, err := mustOpen(t, testdata(t, streamed)).Resolve(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	clear(b[e.Of.Offset:][:8])
	broken := filepath.Join(t.TempDir(), "broken.taco")
	testfile.Write(t, broken, b)
	files := &openers.Files{}
	defer files.Close()
	d, err := taco.Open(t.Context(), files, []string{testdata(t, streamed), broken}, taco.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if e, err = d.Resolve(t.Context(), name); err == nil {
		_, err = d.ChunkIndex(t.Context(), e)
	}
	if err != nil {
		t.Fatal(err)
	}
	g, _, err := d.Group(t.Context(), 1, 2, column.Intersection, false)
	if err != nil {
		t.Fatal(err)
	}
	if e, err = g.Resolve(t.Context(), name); err != nil {
		t.Fatal(err)
	}
	if _, err := g.ChunkIndex(t.Context(), e); fault.KindOf(err) != fault.Corrupt &&
		fault.KindOf(err) != fault.Unsupported {
		t.Errorf("a chunk of a sample without a header: %v", err)
	}
}

// TestHistogramsAreNoSamples: what lists, queries and counts the samples of a streaming TACO leaves
// its folder of histograms out; its paths lead there all the same.
func TestHistogramsAreNoSamples(t *testing.T) {
	path := filepath.Join("..", "..", "testdata", "containers", "taco-v1", "stream_n1.taco")
	for k, want := range []int{2 * 4, 2 * 8} { // of two containers, before any other level is read
		table, err := mustOpen(t, path, path).SQLTable(t.Context(), fmt.Sprintf("level%d", k))
		if err != nil || table.Len() != want {
			t.Errorf("level %d of two has %d rows (%v), want %d", k, table.Len(), err, want)
		}
	}
	d := mustOpen(t, path)
	for k, want := range []int{4, 8} {
		rows, err := d.Visible(t.Context(), k)
		if err != nil || len(rows) != want {
			t.Errorf("level %d: %d visible rows (%v), want %d", k, len(rows), err, want)
		}
		for _, name := range []string{fmt.Sprintf("level%d", k), fmt.Sprintf("l%d", k)} {
			table, err := d.SQLTable(t.Context(), name)
			if err != nil || table.Len() != want {
				t.Errorf("%s has %d rows (%v), want %d", name, table.Len(), err, want)
			}
			all, err := d.StoredTable(t.Context(), name)
			if err != nil || all.Len() != want+k+1 {
				t.Errorf("%s stores %d rows (%v), want %d", name, all.Len(), err, want+k+1)
			}
		}
	}
	files := 0
	for e, err := range d.Leaves(t.Context(), false) {
		if err != nil || strings.HasPrefix(e.Path, "histogram") {
			t.Errorf("%q (%v)", e.Path, err)
		}
		files++
	}
	top, err := d.Resolve(t.Context(), "histogram")
	if err != nil || files != 8 {
		t.Fatalf("%d files, %v", files, err)
	}
	below := 0
	for e, err := range d.Children(t.Context(), top) {
		if err != nil || !strings.HasPrefix(e.Path, "histogram/") {
			t.Errorf("%q (%v)", e.Path, err)
		}
		below++
	}
	if below != 2 {
		t.Errorf("%d histograms, want 2", below)
	}
	if e, err := d.Locate(t.Context(), []string{"#3"}); err != nil || e.Path != "roi_3" {
		t.Errorf("#3 is %q (%v)", e.Path, err)
	}
	if _, err := d.Locate(t.Context(), []string{"#4"}); fault.KindOf(err) != fault.NotFound {
		t.Errorf("#4: %v", err)
	}
	chunks, err := d.SQLTable(t.Context(), "chunks")
	if err != nil {
		t.Fatal(err)
	}
	roots, err := chunks.Column(t.Context(), "tortilla:root")
	if err != nil {
		t.Fatal(err)
	}
	for i := range chunks.Len() {
		if roots.Str(i) == "histogram" {
			t.Fatalf("chunk %d is one of the histograms", i)
		}
	}
}
