package tiledb

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store"
	"github.com/chaski-eo/chaski/store/tiledb/filter"
	"github.com/chaski-eo/chaski/tools/testkit/corpus"
	"github.com/chaski-eo/chaski/tools/testkit/race"
)

// manifestLine is a line of the corpus's manifest, or of that of malformed arrays.
type manifestLine struct {
	dir        string
	Path       string
	Encryption *struct{ Key string }
	Schema     struct {
		Type    string
		DimType string `json:"dim_type"`
		Dims    []struct{ Name string }
		Attrs   []struct {
			Name   string
			TypeID uint8 `json:"type_id"`
		}
	}
	Fragments int
	Reads     []manifestRead

	Wrong, File, Expect string
	CopyOf              string `json:"copy_of"`
	Read                [][2]json.Number
}

type manifestRead struct {
	Read     string
	Subarray [][2]json.Number
	Shape    []int
	Cells    *int
	Coords   struct{ SHA256 string }
	Attrs    map[string]struct {
		SHA256        string
		OffsetsSHA256 string `json:"offsets_sha256"`
		DataSHA256    string `json:"data_sha256"`
	}
}

// corpusDir is the corpus beside the module or, where there is none, the module's own few arrays.
func corpusDir(t testing.TB) string {
	t.Helper()
	dir := os.Getenv("CHASKI_CORPUS")
	if dir == "" {
		dir = filepath.Join(corpus.Root(t), "..", "shared", "corpus")
	}
	if _, err := os.Stat(filepath.Join(dir, "tiledb")); err == nil {
		return filepath.Join(dir, "tiledb")
	}
	return filepath.Join(corpus.Testdata(t), "tiledb")
}

func lines(t testing.TB, dir string) []manifestLine {
	t.Helper()
	list := corpus.Rows[manifestLine](t, dir)
	for i := range list {
		l := &list[i]
		l.dir = dir
		if strings.HasPrefix(l.Path, "bad/") {
			l.dir = filepath.Dir(dir)
		}
	}
	return list
}

func (l *manifestLine) options() Options {
	if l.Encryption == nil {
		return Options{}
	}
	return Options{Key: []byte(l.Encryption.Key)}
}

func (l *manifestLine) uri() string { return filepath.Join(l.dir, l.Path) }

func (l *manifestLine) open(t testing.TB) *Array {
	t.Helper()
	var files Files
	t.Cleanup(func() { files.Close() })
	a, err := Open(context.Background(), &files, l.uri(), l.options())
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func boxText(sub [][2]json.Number) string {
	var parts []string
	for _, s := range sub {
		parts = append(parts, s[0].String()+".."+s[1].String())
	}
	return strings.Join(parts, ",")
}

func offsetBytes(o []uint64) (b []byte) {
	for _, v := range o {
		b = binary.LittleEndian.AppendUint64(b, v)
	}
	return b
}

// differs says in what a read of an array is not what the manifest has.
func (r *manifestRead) differs(a *Array, rd *Reader, sub [][2]json.Number) (string, error) {
	ctx := context.Background()
	box, err := a.Schema.ParseBox(boxText(sub))
	if err != nil {
		return "", err
	}
	var attrs []int
	for i := range a.Schema.Attrs {
		attrs = append(attrs, i)
	}
	var values []Values
	if a.Schema.Dense {
		shape, _, err := a.Shape(box)
		if err != nil {
			return "", err
		}
		if fmt.Sprint(shape) != fmt.Sprint(r.Shape) {
			return fmt.Sprint("shape ", shape), nil
		}
		for _, i := range attrs {
			v, err := rd.Dense(ctx, i, box)
			if err != nil {
				return "", err
			}
			values = append(values, v)
		}
	} else {
		c, err := rd.Sparse(ctx, attrs, box)
		if err != nil {
			return "", err
		}
		if c.N != *r.Cells || corpus.SHA256(c.Coords) != r.Coords.SHA256 {
			return fmt.Sprintf("%d cells, or other coordinates", c.N), nil
		}
		values = c.Values
	}
	if len(r.Attrs) != len(values) {
		return fmt.Sprintf("%d attributes", len(values)), nil
	}
	for i, v := range values {
		at := &a.Schema.Attrs[i]
		want, ok := r.Attrs[at.Name]
		switch {
		case !ok:
			return "no attribute " + at.Name, nil
		case !at.Var() && corpus.SHA256(v.Data) != want.SHA256,
			at.Var() && (corpus.SHA256(v.Data) != want.DataSHA256 ||
				corpus.SHA256(offsetBytes(v.Offsets)) != want.OffsetsSHA256):
			return "attribute " + at.Name, nil
		}
	}
	return "", nil
}

// TestManifest: every read of every array gives what two versions of the original library gave.
func TestManifest(t *testing.T) {
	race.SkipCovered(t)
	for _, l := range lines(t, corpusDir(t)) {
		t.Run(filepath.Base(l.Path), func(t *testing.T) {
			a := l.open(t)
			if n := len(a.Fragments) + len(a.Hidden); n != l.Fragments || a.Schema.Dense != (l.Schema.Type == "dense") {
				t.Errorf("%d fragments, want %d", n, l.Fragments)
			}
			for i, at := range l.Schema.Attrs {
				if got := a.Schema.Attrs[i]; got.Name != at.Name || got.Type != Datatype(at.TypeID) {
					t.Errorf("attribute %d: %v, want %v", i, got, at)
				}
			}
			r := a.NewReader()
			for _, want := range l.Reads {
				if diff, err := want.differs(a, r, want.Subarray); err != nil || diff != "" {
					t.Errorf("read %s: %s differs, %v", want.Read, diff, err)
				}
			}
			if _, err := a.Verify(context.Background()); err != nil {
				t.Errorf("verify: %v", err)
			}
		})
	}
}

// TestKeyNeeded: an encrypted array says that it needs a key, and which one is wrong.
func TestKeyNeeded(t *testing.T) {
	for _, l := range lines(t, corpusDir(t)) {
		if l.Encryption == nil {
			continue
		}
		var files Files
		defer files.Close()
		for _, key := range [][]byte{nil, []byte("short"), []byte(strings.Repeat("z", 32))} {
			_, err := Open(context.Background(), &files, l.uri(), Options{Key: key})
			if err == nil || len(key) < 32 && fault.KindOf(err) != fault.Unsupported ||
				!strings.Contains(err.Error(), schemaName) {
				t.Errorf("%s with key %q: %v", l.Path, key, err)
			}
			if key == nil && !strings.Contains(err.Error(), store.KeyVar) {
				t.Errorf("%s: where the key goes is not said: %v", l.Path, err)
			}
		}
	}
}

// TestMalformed: every malformed array is refused with an error that names a file of the array and a part, or
// where that is as good, read as the array it was made from.
func TestMalformed(t *testing.T) {
	race.SkipCovered(t)
	dir := corpusDir(t)
	if _, err := os.Stat(filepath.Join(dir, "bad")); err != nil {
		t.Skip("no malformed arrays")
	}
	good := map[string]manifestLine{}
	for _, l := range lines(t, dir) {
		good[l.Path] = l
	}
	for _, l := range lines(t, filepath.Join(dir, "bad")) {
		t.Run(filepath.Base(l.Path), func(t *testing.T) {
			var want *manifestRead
			base := good[l.CopyOf]
			for i, r := range base.Reads {
				if boxText(r.Subarray) == boxText(l.Read) {
					want = &base.Reads[i]
				}
			}
			var files Files
			defer files.Close()
			a, err := Open(context.Background(), &files, l.uri(), l.options())
			diff := ""
			if err == nil {
				diff, err = want.differs(a, a.NewReader(), l.Read)
			}
			switch {
			case err != nil:
				checkFault(t, err, l.uri())
				if l.Expect == "original" {
					t.Errorf("%s: %v", l.Wrong, err)
				}
			case l.Expect == "error":
				t.Errorf("%s: accepted", l.Wrong)
			case l.Expect == "error or original" && diff != "":
				t.Errorf("%s: %s differs", l.Wrong, diff)
			}
			if err == nil && l.Expect == "error" {
				return
			}
			if a != nil && l.Expect == "error" {
				if _, err := a.Verify(context.Background()); err == nil {
					t.Errorf("%s: not found by Verify", l.Wrong)
				}
			}
		})
	}
}

func checkFault(t *testing.T, err error, uri string) {
	t.Helper()
	if fault.KindOf(err) == 0 {
		t.Errorf("error without a kind: %v", err)
	}
	var e *fault.Error
	if !strings.HasPrefix(err.Error(), uri) || !errors.As(err, &e) || e.Part == "" {
		t.Errorf("error without file or part: %v", err)
	}
}

// slow reads cells of a dense array one by one, from the definition of the format.
type slow struct {
	t     testing.TB
	a     *Array
	tiles map[string][]byte
}

func (s *slow) tile(f *Fragment, attr int, n int64, size int, p filter.Pipeline, e filter.Elem) []byte {
	key := fmt.Sprint(f.Name, attr, n)
	if b, ok := s.tiles[key]; ok {
		return b
	}
	column := f.stored(s.a.Schema, attr)
	file, err := os.ReadFile(f.file(column.stem, tileOffsets))
	if err != nil {
		s.t.Fatal(err)
	}
	offs, err := s.a.list(context.Background(), f, tileOffsets, &column)
	if err != nil {
		s.t.Fatal(err)
	}
	end := f.foot.sizes[tileOffsets][attr]
	if n+1 < int64(len(offs)) {
		end = offs[n+1]
	}
	b := make([]byte, size)
	if err := filter.NewDecoder(s.a.key).Tile(b, file[offs[n]:end], p, e, 0, size); err != nil {
		s.t.Fatal(err)
	}
	s.tiles[key] = b
	return b
}

// cell returns a cell of an attribute of fixed length.
func (s *slow) cell(attr int, at []Coord) []byte {
	sc := s.a.Schema
	a := &sc.Attrs[attr]
	size := a.CellSize()
	for i := len(s.a.Fragments) - 1; i >= 0; i-- {
		f := s.a.Fragments[i]
		if !holds(f.NonEmpty, at) {
			continue
		}
		if !f.Dense {
			if b := s.sparseCell(f, attr, at); b != nil {
				return b
			}
			continue
		}
		dims := len(sc.Dims)
		tile, in := int64(0), 0
		for k := range dims { // slowest first
			d := k
			if sc.TileOrder == ColMajor {
				d = dims - 1 - k
			}
			ext := sc.Dims[d].Extent
			low := sc.Dims[d].Domain.Lo
			first, last := uint64(f.NonEmpty[d].Lo-low)/ext, uint64(f.NonEmpty[d].Hi-low)/ext
			tile = tile*int64(last-first+1) + int64(uint64(at[d]-low)/ext-first)
		}
		for k := range dims {
			d := k
			if sc.CellOrder == ColMajor {
				d = dims - 1 - k
			}
			in = in*int(sc.Dims[d].Extent) + int(uint64(at[d]-sc.Dims[d].Domain.Lo)%sc.Dims[d].Extent)
		}
		b := s.tile(f, attr, tile, int(sc.tileCells)*size, a.Pipeline, a.Type.elem(int(a.Values)))
		return b[in*size : (in+1)*size]
	}
	var fill []byte
	for range a.Values {
		fill = append(fill, a.Type.fill()...)
	}
	return fill
}

func (s *slow) sparseCell(f *Fragment, attr int, at []Coord) []byte {
	sc := s.a.Schema
	a, cs := &sc.Attrs[attr], sc.DimType.Size()
	for n := range f.Tiles {
		cells := int(f.cells(sc, n))
		coords := s.tile(f, len(sc.Attrs), n, cells*cs*len(sc.Dims), sc.Coords, sc.DimType.elem(len(sc.Dims)))
		for row := range cells {
			same := true
			for d := range at {
				same = same && sc.DimType.Coord(coords[(d*cells+row)*cs:]) == at[d]
			}
			if same {
				size := a.CellSize()
				return s.tile(f, attr, n, cells*size, a.Pipeline, a.Type.elem(int(a.Values)))[row*size : (row+1)*size]
			}
		}
	}
	return nil
}

// TestDenseAgainstCellByCell: random sub-arrays of every dense array, by the plan and cell by cell.
func TestDenseAgainstCellByCell(t *testing.T) {
	race.SkipCovered(t)
	rnd, boxes := rand.New(rand.NewPCG(5, 6)), 12
	if testing.Short() {
		boxes = 3
	}
	for _, l := range lines(t, corpusDir(t)) {
		if l.Schema.Type != "dense" {
			continue
		}
		t.Run(filepath.Base(l.Path), func(t *testing.T) {
			a := l.open(t)
			s, r := &slow{t, a, map[string][]byte{}}, a.NewReader()
			for range boxes {
				box := randomBox(rnd, a)
				for attr := range a.Schema.Attrs {
					if a.Schema.Attrs[attr].Var() {
						continue
					}
					got, err := r.Dense(context.Background(), attr, box)
					if err != nil {
						t.Fatal(err)
					}
					compareCells(t, s, attr, box, got.Data)
				}
			}
		})
	}
}

// randomBox is a box of at most some thousand cells, near what was written.
func randomBox(rnd *rand.Rand, a *Array) Box {
	near := a.NonEmpty()
	box := a.Schema.Domain()
	left := uint64(3000)
	for _, d := range rnd.Perm(len(box)) {
		i := box[d]
		if near != nil { // reach a little beyond
			i = Interval{max(i.Lo, near[d].Lo-min(20, near[d].Lo)), min(i.Hi, near[d].Hi+20)}
		}
		n := min(uint64(i.Hi-i.Lo)+1, left)
		n = 1 + rnd.Uint64N(n)
		lo := i.Lo + Coord(rnd.Uint64N(uint64(i.Hi-i.Lo)+2-n))
		box[d] = Interval{lo, lo + Coord(n-1)}
		left = max(1, left/n)
	}
	return box
}

func compareCells(t *testing.T, s *slow, attr int, box Box, got []byte) {
	t.Helper()
	at := make([]Coord, len(box))
	for d := range at {
		at[d] = box[d].Lo
	}
	size := s.a.Schema.Attrs[attr].CellSize()
	for len(got) > 0 {
		if want := s.cell(attr, at); string(want) != string(got[:size]) {
			t.Fatalf("attribute %s in %v: cell %v is %x, want %x", s.a.Schema.Attrs[attr].Name, box,
				at, got[:size], want)
		}
		got = got[size:]
		for d := len(at) - 1; d >= 0; d-- {
			if at[d]++; at[d] <= box[d].Hi {
				break
			}
			at[d] = box[d].Lo
		}
	}
}

// memStore is a Store in memory that counts what is read.
type memStore struct {
	files map[string][]byte
	mu    sync.Mutex
	read  map[string]int64 // bytes, by base name of the file
}

func (m *memStore) Open(_ context.Context, uri string) (source.Reader, error) {
	b, ok := m.files[uri]
	if !ok {
		return nil, fault.WithFile(fault.New(fault.NotFound, "file", "no such file"), uri)
	}
	return &counted{corpus.Mem{B: b}, m, filepath.Base(uri)}, nil
}

func (m *memStore) Names(_ context.Context, uri string) ([]string, error) {
	seen := map[string]bool{}
	for name := range m.files {
		if rest, ok := strings.CutPrefix(name, uri+"/"); ok {
			dir, _, inside := strings.Cut(rest, "/")
			if inside {
				dir += "/"
			}
			seen[dir] = true
		}
	}
	var list []string
	for name := range seen {
		list = append(list, name)
	}
	return list, nil
}

type counted struct {
	corpus.Mem
	m    *memStore
	name string
}

func (c *counted) ReadAt(ctx context.Context, p []byte, off int64) error {
	c.m.mu.Lock()
	c.m.read[c.name] += int64(len(p))
	c.m.mu.Unlock()
	return c.Mem.ReadAt(ctx, p, off)
}

// load reads an array's files into memory, under the URI "array".
func (l *manifestLine) load(t testing.TB) *memStore {
	t.Helper()
	m := &memStore{files: map[string][]byte{}, read: map[string]int64{}}
	err := filepath.WalkDir(l.uri(), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, err := filepath.Rel(l.uri(), path)
		if err == nil {
			m.files["array/"+filepath.ToSlash(rel)], err = os.ReadFile(path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// TestReadsOnlyWhatItNeeds: a read of one cell reads the bytes of its tile, and of no other attribute.
func TestReadsOnlyWhatItNeeds(t *testing.T) {
	for _, l := range lines(t, corpusDir(t)) {
		if filepath.Base(l.Path) != "dense_2d_order_rc" && filepath.Base(l.Path) != "sparse_2d" {
			continue
		}
		m := l.load(t)
		a, err := Open(context.Background(), m, "array", l.options())
		if err != nil {
			t.Fatal(err)
		}
		f := a.Fragments[0]
		box := make(Box, len(f.NonEmpty))
		for d, i := range f.NonEmpty {
			box[d] = Interval{i.Lo, i.Lo}
		}
		if a.Schema.Dense {
			_, err = a.NewReader().Dense(context.Background(), 0, box)
		} else {
			_, err = a.NewReader().Sparse(context.Background(), []int{0}, box)
		}
		if err != nil {
			t.Fatal(err)
		}
		if before := m.read[a.Schema.Attrs[0].Name+lists[tileOffsets].suffix]; a.Schema.Dense {
			r := a.NewReader()
			for range 3 { // the tile is still there
				if _, err := r.Dense(context.Background(), 0, box); err != nil {
					t.Fatal(err)
				}
			}
			if got := m.read[a.Schema.Attrs[0].Name+lists[tileOffsets].suffix]; got != 2*before {
				t.Errorf("%s: %d bytes read for a tile of %d", l.Path, got-before, before)
			}
			m.read[a.Schema.Attrs[0].Name+lists[tileOffsets].suffix] = before
		}
		const end = ".tdb"
		first, other := a.Schema.Attrs[0].Name+end, a.Schema.Attrs[1].Name+end
		whole := int64(len(m.files["array/"+f.Name+"/"+first]))
		if got := m.read[first]; got > whole/4 || m.read[other] > 0 {
			t.Errorf("%s: %d of %d bytes read, and %d of another attribute", l.Path, got, whole, m.read[other])
		}
		if !a.Schema.Dense && m.read[coordsName+lists[tileOffsets].suffix] > whole/2 {
			t.Errorf("%s: %d bytes of coordinates read", l.Path, m.read[coordsName+lists[tileOffsets].suffix])
		}
	}
}

// TestReadersShareAnArray: many workers, each with a reader, give the same.
func TestReadersShareAnArray(t *testing.T) {
	for _, l := range lines(t, corpusDir(t)) {
		if b := filepath.Base(l.Path); b != "dense_with_sparse_fragment" && b != "sparse_var" {
			continue
		}
		a := l.open(t)
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				r := a.NewReader()
				for _, want := range l.Reads {
					if diff, err := want.differs(a, r, want.Subarray); err != nil || diff != "" {
						t.Errorf("read %s: %s differs, %v", want.Read, diff, err)
					}
				}
			})
		}
		wg.Wait()
	}
}

// TestCancelled: a read whose context is done ends with its error.
func TestCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for _, l := range lines(t, corpusDir(t)) {
		if len(l.Reads) == 0 || l.Fragments == 0 {
			continue
		}
		a := l.open(t)
		var err error
		if a.Schema.Dense {
			_, err = a.NewReader().Dense(ctx, 0, a.NonEmpty())
		} else {
			_, err = a.NewReader().Sparse(ctx, nil, a.NonEmpty())
		}
		if err != context.Canceled {
			t.Errorf("%s: %v", l.Path, err)
		}
	}
}

func (i Interval) has(c Coord) bool { return i.Lo <= c && c <= i.Hi }

// path returns the path of a local fragment.
func (f *Fragment) path() string { return source.LocalPath(f.uri) }

// holds reports whether a box holds a cell.
func holds(b Box, at []Coord) bool {
	for d := range at {
		if !b[d].has(at[d]) {
			return false
		}
	}
	return true
}

// TestSparseBoxes: random boxes of every sparse array hold those of all its cells that lie in them.
func TestSparseBoxes(t *testing.T) {
	race.SkipCovered(t)
	rnd := rand.New(rand.NewPCG(10, 11))
	ctx := context.Background()
	for _, l := range lines(t, corpusDir(t)) {
		if l.Schema.Type != "sparse" {
			continue
		}
		a := l.open(t)
		s, r := a.Schema, a.NewReader()
		var attrs []int
		for i := range s.Attrs {
			attrs = append(attrs, i)
		}
		all, err := r.Sparse(ctx, attrs, s.Domain())
		if err != nil {
			t.Fatal(err)
		}
		if all.N == 0 {
			continue
		}
		size, dims := s.DimType.Size(), len(s.Dims)
		at := func(n, d int) Coord { return s.DimType.Coord(all.Coords[(n*dims+d)*size:]) }
		for range 30 {
			box := s.Domain()
			for d := range box {
				x, y := at(rnd.IntN(all.N), d), at(rnd.IntN(all.N), d)
				box[d] = Interval{min(x, y), max(x, y)}
			}
			var coords []byte
			want := make([]Values, len(attrs))
			for n := range all.N {
				in := true
				for d := range box {
					in = in && box[d].has(at(n, d))
				}
				if !in {
					continue
				}
				coords = append(coords, all.Coords[n*dims*size:(n+1)*dims*size]...)
				for i, v := range all.Values {
					lo, hi := n*s.Attrs[i].CellSize(), (n+1)*s.Attrs[i].CellSize()
					if s.Attrs[i].Var() {
						lo, hi = int(v.Offsets[n]), len(v.Data)
						if n+1 < all.N {
							hi = int(v.Offsets[n+1])
						}
						want[i].Offsets = append(want[i].Offsets, uint64(len(want[i].Data)))
					}
					want[i].Data = append(want[i].Data, v.Data[lo:hi]...)
				}
			}
			got, err := r.Sparse(ctx, attrs, box)
			if err != nil {
				t.Fatal(err)
			}
			if string(got.Coords) != string(coords) {
				t.Fatalf("%s: %d cells in %v, want %d", l.Path, got.N, box, len(coords)/dims/size)
			}
			for i, v := range got.Values {
				if string(v.Data) != string(want[i].Data) ||
					string(offsetBytes(v.Offsets)) != string(offsetBytes(want[i].Offsets)) {
					t.Fatalf("%s: attribute %s in %v differs", l.Path, s.Attrs[i].Name, box)
				}
			}
		}
	}
}
