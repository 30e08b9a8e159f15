package loader

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/loader/batch"
	"github.com/chaski-eo/chaski/loader/dryrun"
	"github.com/chaski-eo/chaski/loader/resources"
	"github.com/chaski-eo/chaski/loader/spec"
	"github.com/chaski-eo/chaski/loader/survey"
	"github.com/chaski-eo/chaski/shuffle"
	"github.com/chaski-eo/chaski/shuffle/steps"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/source/openers"
	"github.com/chaski-eo/chaski/store/tiledb"
	"github.com/chaski-eo/chaski/tools/testkit/corpus"
	"github.com/chaski-eo/chaski/tools/testkit/race"
	"github.com/chaski-eo/chaski/tools/testkit/soak"
	"github.com/chaski-eo/chaski/tools/testkit/testfile"
)

// known is an array whose cells are known, and so the samples that it must yield.
type known struct {
	path  string
	dims  string
	size  [4]int // n, b, y, x
	attrs []knownAttr
}

// knownAttr holds the samples of an attribute in the order n b y x.
type knownAttr struct {
	name string
	size int // of a sample, in bytes
	data []byte
}

// at returns a sample.
func (k *known) at(attr, n, b, y, x int) []byte {
	a := &k.attrs[attr]
	i := ((n*k.size[1]+b)*k.size[2]+y)*k.size[3] + x
	return a.data[i*a.size:][:a.size]
}

func openWritten(t testing.TB, path string) *tiledb.Array {
	t.Helper()
	files := &openers.Files{}
	t.Cleanup(func() { files.Close() })
	a, err := tiledb.Open(context.Background(), files, path, tiledb.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// knownCube copies a cube of known.zip, whose script says which cells it has. sizes are of n, b, y and x.
func knownCube(t testing.TB, name string, sizes ...int) *known {
	t.Helper()
	k := &known{path: corpus.Known(t, name), size: [4]int(sizes), attrs: []knownAttr{{name: "a", size: 2},
		{name: "f", size: 4}}}
	h, w := sizes[2], sizes[3]
	a, f := &k.attrs[0].data, &k.attrs[1].data
	for i := range sizes[0] * sizes[1] * h * w {
		y, x := i/w%h, i%w
		second := 0
		if y >= h/3 && y < h-3 && x >= w/4 && x < w-1 {
			second = 1
		}
		if y >= h-2 { // never written
			*a = binary.LittleEndian.AppendUint16(*a, math.MaxUint16)
			*f = binary.LittleEndian.AppendUint32(*f, 0x7fc00000)
			continue
		}
		*a = binary.LittleEndian.AppendUint16(*a, uint16((i+125*second)%251*4))
		*f = binary.LittleEndian.AppendUint32(*f, math.Float32bits(float32((i+15*second)%31)/2))
	}
	return k
}

// cubes are known arrays with their dimensions in many orders.
func cubes(t testing.TB) (list []*known) {
	for i, dims := range []string{"n b y x", "x y b n", "b n x y", "n y x", "y x b", "y x"} {
		n, b := 5, 3
		if !strings.Contains(dims, "n") {
			n = 1
		}
		if !strings.Contains(dims, "b") {
			b = 1
		}
		for j := range 2 {
			list = append(list, knownCube(t, fmt.Sprintf("cube-%d-%d", i, j), n, b, 20, 30))
		}
	}
	return list
}

// arrayCorpus returns the directory of arrays that the original library wrote.
func arrayCorpus(t testing.TB) string {
	dir := os.Getenv("CHASKI_CORPUS")
	if dir == "" {
		dir = filepath.Join(corpus.Root(t), "..", "shared", "corpus")
	}
	if _, err := os.Stat(filepath.Join(dir, "tiledb", "arrays")); err != nil {
		dir = corpus.Testdata(t)
	}
	return filepath.Join(dir, "tiledb", "arrays")
}

// original is an array of the corpus, with its cells as package tiledb reads them, which its own
// tests compare with the original library.
func original(t testing.TB, path, dims string, attrs ...string) *known {
	t.Helper()
	a := openWritten(t, path)
	k := &known{path: path, dims: dims, size: [4]int{1, 1, 1, 1}}
	box, axes := a.Schema.Domain(), make([]int, 0, 4)
	for i, name := range []string{"n", "b", "y", "x"} {
		for d, is := range strings.Fields(dims) {
			if is == name {
				if name == "n" {
					box[d] = a.NonEmpty()[d]
				}
				k.size[i] = int(box[d].Hi-box[d].Lo) + 1
				axes = append(axes, d)
			}
		}
	}
	for _, name := range attrs {
		at := a.Schema.Attr(name)
		size := a.Schema.Attrs[at].CellSize()
		data := make([]byte, k.size[0]*k.size[1]*k.size[2]*k.size[3]*size)
		if err := a.NewReader().DenseInto(context.Background(), data, at, box, axes); err != nil {
			t.Fatal(err)
		}
		k.attrs = append(k.attrs, knownAttr{name, size, data})
	}
	return k
}

func allCubes(t testing.TB) []*known {
	list := cubes(t)
	dir := arrayCorpus(t)
	for _, c := range []struct{ name, dims, attrs string }{
		{"chips_s2_nbyx", "n b y x", "dn"},
		{"chips_s2_one_fragment_each", "n b y x", "dn ok"},
		{"chips_l8_byx", "b y x", "dn"},
		{"dense_3d_byx", "b y x", "dn"},
		{"dense_3d_mixed_order", "b y x", "v"},
		{"dense_3d_mixed_order", "y n x", "v"},
		{"dense_2d_order_rc", "x y", "v w"},
		{"dense_2d_order_cc", "y x", "w"},
		{"dense_with_sparse_fragment", "y x", "a b"},
		{"dense_consolidated_leftovers", "y x", "a"},
		{"dense_odd_names", "x y", "höhe"},
		{"pipelines", "y x", "p0_uint16"},
	} {
		path := filepath.Join(dir, c.name)
		if _, err := os.Stat(path); err != nil { // the small corpus has some
			continue
		}
		list = append(list, original(t, path, c.dims, strings.Fields(c.attrs)...))
	}
	return list
}

// spec has all attributes of an array, each in its own dtype, with a mask of missing samples.
func (k *known) spec(s Sampler, augment string) Spec {
	spec := Spec{Source: k.path, Dims: k.dims, BatchSize: 3, Shuffle: true, Seed: 5, Sampler: s, Augment: augment}
	for _, a := range k.attrs {
		spec.Fields = append(spec.Fields, Field{Name: "f_" + a.name, Column: a.name, Validity: "v_" + a.name})
	}
	return spec
}

// check compares all batches of an epoch sample by sample.
func (k *known) check(t *testing.T, e *Engine) (rows int) {
	t.Helper()
	for step := range e.Steps() {
		tk := steps.Ticket{Epoch: 1, First: step * int64(e.Spec().BatchSize), Count: e.Spec().BatchSize, RowStride: 1}
		plan, err := e.Explain(context.Background(), tk)
		if err != nil {
			t.Fatal(err)
		}
		b := wait(t, e.Start(context.Background(), tk, false))
		for r, p := range plan {
			if p.Position < 0 {
				continue
			}
			rows++
			for i := range k.attrs {
				k.row(t, e, b, r, i, &p)
			}
		}
		b.Release()
	}
	return rows
}

// row compares one row of one field with the window of the plan, transformed as the plan says.
func (k *known) row(t *testing.T, e *Engine, b *batch.Batch, r, attr int, p *dryrun.Row) {
	t.Helper()
	a, win := &k.attrs[attr], p.Assets[attr].Window
	data, valid := b.Tensor("f_"+a.name), b.Tensor("v_"+a.name)
	bands, h, w := int(data.Shape[1]), int(data.Shape[2]), int(data.Shape[3])
	if bands != k.size[1] {
		t.Fatalf("%d bands, want %d", bands, k.size[1])
	}
	asset, err := e.sets[0].table.Fields[attr].Asset(t.Context(), p.Draw.Row)
	if err != nil {
		t.Fatal(err)
	}
	g := asset.Index
	for band := range bands {
		for y := range h {
			for x := range w {
				// Undo the transform's steps to find which pixel of the window is at (y, x).
				wy, wx := y, x
				if p.Draw.Transform&shuffle.Transpose != 0 {
					wy, wx = wx, wy
				}
				if p.Draw.Transform&shuffle.FlipY != 0 {
					wy = win.H - 1 - wy
				}
				if p.Draw.Transform&shuffle.FlipX != 0 {
					wx = win.W - 1 - wx
				}
				i := ((r*bands+band)*h+y)*w + x
				want := k.at(attr, int(p.Draw.Row), band, win.Y+wy, win.X+wx)
				if got := data.Data[i*a.size:][:a.size]; string(got) != string(want) {
					t.Fatalf("%s as %q, attribute %s, row %d at %d, %d, %d of window %+v: %x, want %x",
						k.path, k.dims, a.name, p.Draw.Row, band, y, x, win, got, want)
				}
				if there := valid.Data[i] == 1; there == (g.NoData != nil && isFill(want, g.DType)) {
					t.Fatalf("%s, attribute %s, %x: valid is %v", k.path, a.name, want, there)
				}
			}
		}
	}
}

// isFill reports whether a sample is TileDB's value for cells that were never written.
func isFill(b []byte, d chunk.DType) bool {
	switch d {
	case chunk.Float32:
		v := math.Float32frombits(binary.LittleEndian.Uint32(b))
		return v != v
	case chunk.Float64:
		v := math.Float64frombits(binary.LittleEndian.Uint64(b))
		return v != v
	case chunk.Uint8, chunk.Uint16, chunk.Uint32, chunk.Uint64:
		return bytes.Equal(b, bytes.Repeat([]byte{0xff}, len(b)))
	}
	return b[len(b)-1] == 0x80 && bytes.Equal(b[:len(b)-1], make([]byte, len(b)-1))
}

// TestArraysIndexByIndex: every sample of every batch of an array equals its cell, with all
// samplers that do not resample.
func TestArraysIndexByIndex(t *testing.T) {
	race.SkipCovered(t)
	for i, k := range allCubes(t) {
		if testing.Short() && i%3 != 0 {
			continue // the race detector sees the same workers for every array
		}
		side := min(8, k.size[2], k.size[3])
		for turn, s := range []Sampler{
			{},
			{Kind: spec.RandomWindow, Height: side, Width: side, PerAsset: 3},
			{Kind: spec.GridWindow, Height: side, Width: side},
			{Kind: spec.TileWindow, Height: side/2 + 1, Width: side/2 + 1, TileWindows: spec.TileWindows{PerVisit: 5}},
		} {
			if (i+turn)%2 > 0 && !soak.All() {
				continue // the next array has this sampler
			}
			augment := ""
			if s.Kind != "" {
				augment = "d4"
			}
			e, err := Open(t.Context(), k.spec(s, augment), Options{Workers: 3})
			if err != nil {
				t.Fatalf("%s as %q, %+v: %v", k.path, k.dims, s, err)
			}
			if rows := k.check(t, e); rows < k.size[0] {
				t.Errorf("%s, %q: %d rows of %d images", k.path, s.Kind, rows, k.size[0])
			}
			if err := e.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}

// TestStatsOfAnArray: the statistics agree with a count by hand.
func TestStatsOfAnArray(t *testing.T) {
	k := knownCube(t, "stats", 4, 2, 11, 13)
	r, err := survey.Stats(t.Context(), Spec{
		Source: k.path, Fields: []Field{{Name: "image", Column: "a"}},
	}, Options{Workers: 3}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if r.Samples != 4 || len(r.Fields["image"].Bands) != 2 {
		t.Fatalf("%d samples, %d bands", r.Samples, len(r.Fields["image"].Bands))
	}
	for b, got := range r.Fields["image"].Bands {
		sum, n, missing := 0., uint64(0), uint64(0)
		for i := range 4 {
			for y := range 11 {
				for x := range 13 {
					v := binary.LittleEndian.Uint16(k.at(0, i, b, y, x))
					if v == math.MaxUint16 {
						missing++
						continue
					}
					n, sum = n+1, sum+float64(v)
				}
			}
		}
		if got.Count != n || got.NoData != missing || math.Abs(*got.Mean-sum/float64(n)) > 1e-9*sum {
			t.Errorf("band %d: %d samples, %d missing, mean %v; want %d, %d, %v",
				b, got.Count, got.NoData, *got.Mean, n, missing, sum/float64(n))
		}
	}
}

// TestFillValuesThatWereWritten: in an image that was written completely, in one piece or several,
// the fill value is a number like any other. In other images it means a missing sample.
func TestFillValuesThatWereWritten(t *testing.T) {
	e, err := Open(t.Context(), Spec{
		Source: corpus.Known(t, "fills"), BatchSize: 4, Fields: []Field{{Name: "image", Validity: "valid_image"}},
	}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	b := wait(t, e.Start(t.Context(), steps.Ticket{Count: 4, RowStride: 1}, false))
	defer b.Release()
	valid := b.Tensor("valid_image").Data
	for r, want := range []int{64, 64, 0, 0} {
		if got := bytes.Count(valid[64*r:64*(r+1)], []byte{1}); got != want {
			t.Errorf("image %d has %d valid pixels, want %d", r, got, want)
		}
	}
}

// TestFingerprintOfAnArray: the fingerprint stays when the array moves and changes with a write,
// and so does the spec hash.
func TestFingerprintOfAnArray(t *testing.T) {
	path := corpus.Known(t, "small")
	dir := filepath.Dir(path)
	// The last write comes later.
	a := openWritten(t, path)
	last := a.Fragments[len(a.Fragments)-1].Name
	if err := os.Rename(filepath.Join(path, last), filepath.Join(dir, last)); err != nil {
		t.Fatal(err)
	}
	hash := func(path, dims string) string {
		e, err := Open(t.Context(), Spec{
			Source: path, Dims: dims, BatchSize: 1, Fields: []Field{{Name: "a"}},
		}, Options{Workers: 1})
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		return e.Hash()
	}
	was := hash(path, "")
	moved := filepath.Join(dir, "elsewhere")
	if err := os.Rename(path, moved); err != nil {
		t.Fatal(err)
	}
	if is := hash(moved, ""); is != was {
		t.Error("another hash in another place")
	}
	if is := hash(moved, "b n y x"); is == was {
		t.Error("the same hash with other dimensions")
	}
	if err := os.Rename(filepath.Join(dir, last), filepath.Join(moved, last)); err != nil {
		t.Fatal(err)
	}
	if is := hash(moved, ""); is == was {
		t.Error("the same hash after a write")
	}
}

// TestRowsOfAnArray: images along n that were never written are not rows, and the coordinate along
// n is a column and the id.
func TestRowsOfAnArray(t *testing.T) {
	path, empty := corpus.Known(t, "rows"), corpus.Known(t, "rows")
	if err := os.RemoveAll(filepath.Join(empty, openWritten(t, empty).Fragments[0].Name)); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(t.Context(), Spec{Source: empty, BatchSize: 1}, Options{}); fault.KindOf(err) != fault.NotFound {
		t.Errorf("an empty array: %v", err)
	}
	e, err := Open(t.Context(), Spec{
		Source: path, BatchSize: 5,
		Subset: Subset{Where: []Condition{{Column: "n", Op: ">=", Value: []byte("345")}}},
	}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	if e.Len() != 5 {
		t.Fatalf("%d samples", e.Len())
	}
	b := wait(t, e.Start(t.Context(), steps.Ticket{Count: 5, RowStride: 1}, false))
	defer b.Release()
	for r := range 5 {
		if got := b.Tensor("image").Data[16*r]; got != byte(5+r) {
			t.Errorf("row %d is image %d", r, got)
		}
		id, err := e.ID(t.Context(), 0, b.Samples[r])
		if err != nil || id != fmt.Sprint(345+r) && id != fmt.Sprint(340+b.Samples[r]) {
			t.Errorf("row %d is called %q (%v)", r, id, err)
		}
	}
}

// TestFewImagesFarApart: in an array that spans images 0 to 2^24, of which two were written, the
// sizes for a sampler take memory for these two only.
func TestFewImagesFarApart(t *testing.T) {
	race.SkipCovered(t)
	const n = 1 << 24
	dir := corpus.Known(t, "far-apart")
	for _, sampler := range []Sampler{
		{Kind: spec.GridWindow, Height: 4, Width: 4},
		{Kind: spec.TileWindow, Height: 4, Width: 4, TileWindows: spec.TileWindows{TileHeight: 4, TileWidth: 4,
			PerVisit: 1}},
	} {
		var e *Engine
		got := corpus.Allocated(func() {
			var err error
			e, err = Open(t.Context(), Spec{
				Source: dir, Fields: []Field{{Name: "a"}}, BatchSize: 2, Sampler: sampler,
			}, Options{MemoryBytes: 1 << 20, Workers: 1})
			if err != nil {
				t.Fatal(err)
			}
		})
		if got > 32<<20 {
			t.Errorf("%s: %d bytes for %d images", sampler.Kind, got, n)
		}
		if e.Len() != 2*n {
			t.Errorf("%s: %d samples", sampler.Kind, e.Len())
		}
		if sampler.Kind == spec.GridWindow { // in the order of the images
			b := wait(t, e.Start(t.Context(), steps.Ticket{First: 2*n - 2, Count: 2, RowStride: 1}, false))
			if !bytes.Equal(b.Tensor("a").Data, bytes.Repeat([]byte{7}, 32)) {
				t.Errorf("the last image is %v", b.Tensor("a").Data)
			}
			b.Release()
		}
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestArraysThatAreNotImages: arrays that cannot be read as images are refused with the reason.
func TestArraysThatAreNotImages(t *testing.T) {
	dir := arrayCorpus(t)
	cube := corpus.Known(t, "cube-3-0")
	field := func(name, column string) []Field { return []Field{{Name: name, Column: column}} }
	for _, c := range []struct {
		path, dims string
		fields     []Field
		kind       fault.Kind
		says       string
	}{
		{filepath.Join(dir, "sparse_2d"), "y x", field("i", "a"), fault.Unsupported, "sparse"},
		{filepath.Join(dir, "dense_2d_order_rc"), "", field("i", "v"), fault.Unsupported, "n, b, y and x"},
		{cube, "y x", field("i", "a"), fault.Unsupported, "3"},
		{cube, "", field("i", "z"), fault.NotFound, `no attribute "z"; there are ["a" "f"]`},
		{cube, "", field("i", ""), fault.NotFound, "name the attribute"},
		{cube, "", []Field{{Name: "i", Pattern: "{id}.tif"}}, fault.NotFound, "attributes"},
		{t.TempDir(), "y x", nil, fault.NotFound, "dims of rows is for arrays"},
	} {
		_, err := Open(t.Context(), Spec{Source: c.path, Dims: c.dims, Fields: c.fields, BatchSize: 1}, Options{})
		if fault.KindOf(err) != c.kind || !strings.Contains(fmt.Sprint(err), c.says) {
			t.Errorf("%s as %q, %v: %v", c.path, c.dims, c.fields, err)
		}
	}
	_, err := Open(t.Context(), Spec{Source: cube, Dims: "n y y", BatchSize: 1}, Options{})
	if err == nil || fault.KindOf(err) != 0 {
		t.Errorf("dims twice: %v", err)
	}
}

// TestArraysBelowRoots: a link in an array does not lead outside of the roots.
func TestArraysBelowRoots(t *testing.T) {
	in, out := filepath.Join(t.TempDir(), "in"), corpus.Known(t, "cube-3-0")
	spec := Spec{Source: in, Fields: []Field{{Name: "a"}}, BatchSize: 1}
	if err := os.CopyFS(in, os.DirFS(out)); err != nil {
		t.Fatal(err)
	}
	e, err := Open(t.Context(), spec, Options{Roots: []string{in}})
	if err != nil {
		t.Fatal(err)
	}
	wait(t, e.Start(t.Context(), steps.Ticket{Count: 1, RowStride: 1}, false)).Release()
	e.Close()
	spec.Source = out
	if _, err := Open(t.Context(), spec, Options{Roots: []string{in}}); fault.KindOf(err) != fault.NotFound {
		t.Errorf("outside of the roots: %v", err)
	}
	spec.Source = in
	fragments, _ := filepath.Glob(filepath.Join(in, "__*_*"))
	for _, f := range fragments {
		if err := os.RemoveAll(f); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(filepath.Join(out, filepath.Base(f)), f); err != nil {
			t.Fatal(err)
		}
	}
	if e, err := Open(t.Context(), spec, Options{Roots: []string{in}}); err == nil {
		e.Close()
		t.Error("links lead out of the roots")
	}
}

// bucket is an object store with the files of a directory.
type bucket struct {
	openers.Files
	dir string
}

func (b *bucket) Open(ctx context.Context, uri string) (source.Reader, error) {
	return b.Files.Open(ctx, filepath.Join(b.dir, strings.TrimPrefix(uri, "s3://bucket/")))
}

func (b *bucket) List(_ context.Context, folder string, each func(source.Entry) error) error {
	root := filepath.Join(b.dir, strings.TrimPrefix(folder, "s3://bucket"))
	return filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, err := filepath.Rel(root, p)
		if err != nil {
			return err
		}
		return each(source.Entry{Path: filepath.ToSlash(rel)})
	})
}

// TestArrayInAStore: an array in an object store, which has names and no directories, yields the
// samples of the same array on disk.
func TestArrayInAStore(t *testing.T) {
	k := knownCube(t, "small", 3, 2, 9, 9)
	dir := t.TempDir()
	if err := os.CopyFS(filepath.Join(dir, "data", "a"), os.DirFS(k.path)); err != nil {
		t.Fatal(err)
	}
	store := &bucket{dir: dir}
	defer store.Close()
	var hash string
	for _, at := range []string{k.path, "s3://bucket/data/a/"} {
		o := Options{Workers: 2}
		spec := k.spec(Sampler{}, "")
		if spec.Source, spec.Dims = at, "n b y x"; at != k.path {
			o.Opener = store
		}
		e, err := Open(t.Context(), spec, o)
		if err != nil {
			t.Fatal(err)
		}
		if k.check(t, e) != 3 || hash != "" && e.Hash() != hash {
			t.Errorf("%s: other rows or another hash", at)
		}
		hash = e.Hash()
		e.Close()
	}
}

// tileReads reports every read of a tile.
type tileReads struct {
	*bucket
	made chan string
}

func (s *tileReads) Open(ctx context.Context, uri string) (source.Reader, error) {
	r, err := s.bucket.Open(ctx, uri)
	if err != nil || strings.HasPrefix(path.Base(uri), "__") {
		return r, err
	}
	return toldReader{r, s, uri}, nil
}

type toldReader struct {
	source.Reader
	to  *tileReads
	uri string
}

func (r toldReader) ReadAt(ctx context.Context, p []byte, off int64) error {
	err := r.Reader.ReadAt(ctx, p, off)
	r.to.made <- fmt.Sprint(r.uri, off)
	return err
}

// TestTilesAreReadAhead: more tiles of a remote array are read than there are workers to decode
// them, and none is decoded while others hold all workers.
func TestTilesAreReadAhead(t *testing.T) {
	k := knownCube(t, "six", 6, 1, 8, 8)
	store := &tileReads{&bucket{dir: filepath.Dir(k.path)}, make(chan string, 1000)}
	defer store.Close()
	spec := k.spec(Sampler{}, "")
	spec.Source, spec.Dims, spec.BatchSize = "s3://bucket/six", "n b y x", 6
	all := resources.NewDecoders(1)
	e, err := Open(t.Context(), spec, Options{Workers: 1, Fetchers: 4, Opener: store, Stages: &resources.Stages{},
		Decoders: all})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	all.Begin(nil)
	p := e.Start(t.Context(), steps.StepTicket(0, 0, 6, 0, 1), false)
	seen := map[string]bool{}
	for len(seen) < 4 {
		seen[<-store.made] = true
	}
	if chunks, _ := e.options.Stages.Decoded(); chunks != 0 {
		t.Errorf("%d chunks decoded without a decoder", chunks)
	}
	select {
	case at := <-store.made:
		t.Errorf("%s was read by a fifth of four", at)
	case <-p.done:
		t.Error("a batch without a decoder")
	default:
	}
	all.End(nil)
	wait(t, p).Release()
	if k.check(t, e) != 6 {
		t.Error("other rows")
	}
}

// TestDamagedArray: a tile that cannot be decoded is a bad sample like any other.
func TestDamagedArray(t *testing.T) {
	path := corpus.Known(t, "six")
	files, _ := filepath.Glob(filepath.Join(path, "__*", "a.tdb"))
	for _, f := range files {
		b := testfile.Read(t, f)
		for i := 20; i < 40; i++ { // in the first tile
			b[i] ^= 0x55
		}
		testfile.Write(t, f, b)
	}
	spec := Spec{Source: path, Fields: []Field{{Name: "a"}}, BatchSize: 4, BadSamples: spec.BadSkip}
	e, err := Open(t.Context(), spec, Options{Workers: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	b := wait(t, e.Start(t.Context(), steps.Ticket{Count: 4, RowStride: 1}, false))
	defer b.Release()
	if len(b.Bad) != 1 || b.Bad[0].Row != 0 || fault.KindOf(b.Bad[0].Err) != fault.Corrupt ||
		!strings.Contains(b.Bad[0].Err.Error(), "a.tdb") {
		t.Errorf("%+v", b.Bad)
	}
}

// TestArraysAtATime: an array at a timestamp yields the samples and the fingerprint of an array
// with only the fragments written by then. The timestamp is also part of the spec hash.
func TestArraysAtATime(t *testing.T) {
	k := knownCube(t, "small", 3, 2, 9, 9)
	a, then := openWritten(t, k.path), k.path+"-then"
	if err := os.Mkdir(then, 0o777); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"__array_schema.tdb", a.Fragments[0].Name} {
		if err := os.Symlink(filepath.Join(k.path, name), filepath.Join(then, name)); err != nil {
			t.Fatal(err)
		}
	}
	at := &spec.Timestamp{0, a.Fragments[0].To}
	var batches [3][]byte
	var hashes, prints [3]string
	for i, c := range []struct {
		cube string
		at   *spec.Timestamp
	}{{k.path, nil}, {k.path, at}, {then, nil}} {
		sp := k.spec(Sampler{}, "")
		sp.Source, sp.Timestamp, sp.BatchSize = c.cube, c.at, 3
		b, err := json.Marshal(sp)
		if err != nil {
			t.Fatal(err)
		}
		if sp, err = ParseSpec(b); err != nil {
			t.Fatal(err)
		}
		e, err := Open(t.Context(), sp, Options{Workers: 2})
		if err != nil {
			t.Fatal(err)
		}
		x := wait(t, e.Start(t.Context(), steps.StepTicket(0, 0, 3, 0, 1), false))
		for _, tensor := range x.Tensors {
			batches[i] = append(batches[i], tensor.Data...)
		}
		x.Release()
		hashes[i], prints[i] = e.Hash(), e.Fingerprint()
		e.Close()
	}
	if !bytes.Equal(batches[1], batches[2]) || bytes.Equal(batches[0], batches[1]) {
		t.Error("the samples at a time are not those of the fragments of then")
	}
	if prints[0] == prints[1] || prints[1] != prints[2] || hashes[0] == hashes[1] || hashes[1] == hashes[2] {
		t.Errorf("fingerprints %q, hashes %q", prints, hashes)
	}
	coast := filepath.Join(corpus.Testdata(t), "coast", "coast.tacozip")
	_, err := Open(t.Context(), Spec{
		Source: coast, BatchSize: 1, Timestamp: at,
	}, Options{})
	if fault.KindOf(err) != fault.Unsupported {
		t.Errorf("a container at a time: %v", err)
	}
	_, err = Open(t.Context(), Spec{
		Source: coast, BatchSize: 1, Dims: "n b y x",
	}, Options{})
	if fault.KindOf(err) != fault.Unsupported || !strings.Contains(err.Error(), "dims is for arrays") {
		t.Errorf("a container with dims: %v", err)
	}
	for _, bad := range []*spec.Timestamp{{5, 4}, {0, 0}} {
		spec := k.spec(Sampler{}, "").WithDefaults()
		spec.Timestamp = bad
		if err := spec.Validate(); err == nil {
			t.Errorf("%v is a time", bad)
		}
	}
}
