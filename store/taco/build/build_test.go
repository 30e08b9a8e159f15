package build_test

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/column"
	"github.com/chaski-eo/chaski/format/tables"
	"github.com/chaski-eo/chaski/source/openers"
	"github.com/chaski-eo/chaski/store"
	"github.com/chaski-eo/chaski/store/taco"
	"github.com/chaski-eo/chaski/store/taco/build"
	"github.com/chaski-eo/chaski/tools/testkit/race"
	_ "github.com/chaski-eo/chaski/tools/testkit/seed"
	"github.com/chaski-eo/chaski/tools/testkit/testfile"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var integers = tables.Type{Kind: tables.Int64, Bits: 64}

func collection() build.Collection {
	return build.Collection{ID: "made-up", DatasetVersion: "1.0", Description: "é <x> & y",
		Licenses: []string{"CC0-1.0"}, Providers: []map[string]any{{"name": "Ana"}}, Tasks: []string{"classification"},
		More: map[string]json.RawMessage{"my:note": json.RawMessage(`{"a":[1,2]}`)}}
}

// maker makes random datasets, and remembers what is in them.
type maker struct {
	r      *rapid.T
	tables [][]*tables.Table // of each level, by folder
	dir    string
	leaves map[string]string
	rows   []map[string]string // of each level: values by path and column
	names  [][]string          // columns of each level
}

var words = []string{"s10", "s2", "s1", "a b", "x.tif", "ñandú", "日本", "a#b", "50%", "%20", "a..b", ".hid", "it's",
	`a"b`, "[1]", "-d", "A", "a", "😀", "CON"}

// node is the tree that all samples have.
type node struct {
	id    string
	below []node
}

func (m *maker) ids(n int) []string {
	return rapid.SliceOfNDistinct(rapid.SampledFrom(words), n, n, rapid.ID).Draw(m.r, "ids")
}

func (m *maker) tree(depth int) (nodes []node) {
	for i, id := range m.ids(rapid.IntRange(1, 3).Draw(m.r, "children")) {
		n := node{id: id}
		if depth > 0 && (i == 0 || rapid.Bool().Draw(m.r, "folder")) {
			n.below = m.tree(depth - 1)
		}
		nodes = append(nodes, n)
	}
	return nodes
}

// table draws the values of n samples.
func (m *maker) table(level int, folder string, ids []string) {
	for len(m.rows) <= level {
		m.rows = append(m.rows, map[string]string{})
		names := []string{"zeta", "my:list", "stac:time_start", "a"}
		m.names = append(m.names, names[:rapid.IntRange(0, 4).Draw(m.r, "columns")])
	}
	for len(m.tables) <= level {
		m.tables = append(m.tables, nil)
	}
	var vectors []*tables.Vector
	for _, name := range m.names[level] {
		v := m.vector(name, len(ids))
		for i, id := range ids {
			m.rows[level][folder+id+" "+name] = string(v.AppendJSON(nil, i))
		}
		vectors = append(vectors, v)
	}
	if vectors != nil {
		m.tables[level] = append(m.tables[level], tables.FromVectors(m.names[level], vectors))
	}
}

// columns are the tables of all levels.
func (m *maker) columns(context.Context, []build.Level) (out []*tables.Table, err error) {
	for _, parts := range m.tables {
		var table *tables.Table
		if parts != nil {
			if table, err = tables.Concat(parts, column.Strict); err != nil {
				return nil, err
			}
		}
		out = append(out, table)
	}
	return out, nil
}

func (m *maker) vector(name string, n int) *tables.Vector {
	nulls := rapid.SliceOfN(rapid.Bool(), n, n).Draw(m.r, "nulls")
	ints := rapid.SliceOfN(rapid.Int64Range(-1<<40, 1<<40), n, n).Draw(m.r, "numbers")
	switch name {
	case "zeta":
		return tables.NewStrings(rapid.SliceOfN(rapid.SampledFrom([]string{"", "é", "b\nc"}), n, n).Draw(m.r, "texts"),
			nulls)
	case "my:list":
		return tables.NewList(tables.NewInts(integers, ints, nil), steps(n), nulls)
	case "stac:time_start":
		return tables.NewInts(tables.Type{Kind: tables.Timestamp}, ints, nulls)
	}
	return tables.NewInts(integers, ints, nulls)
}

// steps returns the offsets of lists of one element each.
func steps(n int) []uint32 {
	offs := make([]uint32, n+1)
	for i := range offs {
		offs[i] = uint32(i)
	}
	return offs
}

func (m *maker) tortilla(level int, folder string, nodes []node) *build.Tortilla {
	t := &build.Tortilla{}
	var ids []string
	for _, n := range nodes {
		s := build.Sample{ID: n.id}
		ids = append(ids, n.id)
		if n.below != nil {
			s.Children = m.tortilla(level+1, folder+n.id+"/", n.below)
		} else {
			m.content(&s, folder+n.id)
		}
		t.Samples = append(t.Samples, s)
	}
	m.table(level, folder, ids)
	return t
}

func (m *maker) content(s *build.Sample, path string) {
	b := rapid.SliceOfN(rapid.Byte(), 0, 40).Draw(m.r, "bytes")
	if b == nil {
		b = []byte{}
	}
	m.leaves[path] = string(b)
	if rapid.Bool().Draw(m.r, "in memory") {
		s.Bytes = b
		return
	}
	s.File = filepath.Join(m.dir, fmt.Sprint("source", len(m.leaves)))
	if err := os.WriteFile(s.File, b, 0o666); err != nil {
		m.r.Fatal(err)
	}
}

func (m *maker) taco() *build.Taco {
	depth := rapid.IntRange(0, 3).Draw(m.r, "depth")
	var below []node
	if depth > 0 {
		below = m.tree(depth - 1)
	}
	var top []node
	for _, id := range m.ids(rapid.IntRange(1, 4).Draw(m.r, "samples")) {
		top = append(top, node{id, below})
	}
	m.tables = nil
	return &build.Taco{Samples: m.tortilla(0, "", top), Columns: m.columns, Collection: collection()}
}

// compare compares a container with what was put into it.
func (m *maker) compare(t testing.TB, path string) {
	t.Helper()
	d, err := taco.Open(t.Context(), &openers.Files{}, []string{path}, taco.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	report, err := d.Verify(t.Context())
	if err != nil || len(report.Notes) > 0 {
		t.Fatalf("verify: %v %q", err, report.Notes)
	}
	got := map[string]string{}
	for e, err := range d.Leaves(t.Context(), false) {
		if err != nil {
			t.Fatal(err)
		}
		b := testfile.Read(t, e.URI)
		if e.Offset != store.Whole {
			b = b[e.Offset : e.Offset+e.Size]
		}
		got[e.Path] = string(b)
	}
	if fmt.Sprint(got) != fmt.Sprint(m.leaves) {
		t.Fatalf("leaves %q, want %q", got, m.leaves)
	}
	for k, want := range m.rows {
		m.compareLevel(t, d, k, want)
	}
	var doc map[string]any
	if err := json.Unmarshal(d.Collection(), &doc); err != nil || doc["description"] != "é <x> & y" ||
		fmt.Sprint(doc["my:note"]) != "map[a:[1 2]]" {
		t.Fatalf("%v %v", err, doc)
	}
}

func (m *maker) compareLevel(t testing.TB, d *taco.Dataset, k int, want map[string]string) {
	t.Helper()
	tab, err := d.Level(t.Context(), k)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, c := range tab.Columns() {
		if c.Name != "id" && c.Name != "type" && !strings.HasPrefix(c.Name, "internal:") {
			names = append(names, c.Name)
		}
	}
	if !slices.Equal(names, m.names[k]) {
		t.Fatalf("level %d has columns %q, want %q", k, names, m.names[k])
	}
	got := map[string]string{}
	for row := range tab.Len() {
		e, err := d.Entry(t.Context(), k, row)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			v, err := tab.Column(t.Context(), name)
			if err != nil {
				t.Fatal(err)
			}
			if e.Padding {
				if !v.Null(row) {
					t.Fatalf("padding has %q", name)
				}
				continue
			}
			got[e.Path+" "+name] = string(v.AppendJSON(nil, row))
		}
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Fatalf("level %d: %v, want %v", k, got, want)
	}
}

// TestWhatIsWrittenIsRead: random datasets, in both forms, are read as what was put into them, and nothing about them
// is to be noted. The reader is held to files of the original writers by its own tests.
func TestWhatIsWrittenIsRead(t *testing.T) {
	race.SkipCovered(t)
	rapid.Check(t, func(r *rapid.T) {
		dir, err := os.MkdirTemp(t.TempDir(), "")
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(dir)
		m := &maker{r: r, dir: dir, leaves: map[string]string{}}
		set := m.taco()
		names := []string{"out.tacozip"}
		// Syncing each file of a folder takes most of the time.
		if rapid.IntRange(0, 7).Draw(r, "form") == 0 {
			names = append(names, "out")
		}
		for _, name := range names {
			path := filepath.Join(dir, name)
			if _, err := build.Create(t.Context(), set, path, build.Options{}); err != nil {
				t.Fatal(err)
			}
			m.compare(t, path)
		}
		m.compareZIP(t, filepath.Join(dir, "out.tacozip"))
	})
}

// compareZIP reads a container by the ZIP's own directory, as programs do that know nothing of TACO.
func (m *maker) compareZIP(t testing.TB, path string) {
	t.Helper()
	z, err := zip.OpenReader(path)
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	got := map[string]string{}
	for _, f := range z.File {
		r, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(r) // checks the CRC-32 too
		if err != nil || f.Method != zip.Store {
			t.Fatalf("%s: %v, method %d", f.Name, err, f.Method)
		}
		if rest, ok := strings.CutPrefix(f.Name, "DATA/"); ok && !strings.HasSuffix(rest, "/__meta__") &&
			!strings.Contains(rest, "__TACOPAD__") {
			got[rest] = string(b)
		}
	}
	if fmt.Sprint(got) != fmt.Sprint(m.leaves) {
		t.Fatalf("the ZIP has %q, want %q", got, m.leaves)
	}
}

// columns returns the columns of each level.
func columns(of ...*tables.Table) build.More {
	return func(context.Context, []build.Level) ([]*tables.Table, error) { return of, nil }
}

// small is a dataset of two samples with two files each, the last content of n bytes.
func small(n int) *build.Taco {
	folder := func(s string) *build.Tortilla {
		return &build.Tortilla{Samples: []build.Sample{{ID: "x", Bytes: []byte(s)}, {ID: "y", Bytes: make([]byte, n)}}}
	}
	return &build.Taco{Collection: collection(), Samples: &build.Tortilla{Samples: []build.Sample{
		{ID: "b", Children: folder("1")}, {ID: "a", Children: folder("2")}}}}
}

// TestTheHeaderOfAZIP: the first entry has the places of the tables and of COLLECTION.json where the specification
// says, by a reading of the bytes that shares nothing with the package.
func TestTheHeaderOfAZIP(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.tacozip")
	if _, err := build.Create(t.Context(), small(5), path, build.Options{}); err != nil {
		t.Fatal(err)
	}
	b := testfile.Read(t, path)
	if string(b[30:41]) != "TACO_HEADER" || b[41] != 3 || !bytes.Equal(b[42:45], []byte{0, 0, 0}) {
		t.Fatalf("it begins with %q", b[:45])
	}
	for i, magic := range []string{"PAR1", "PAR1", "{\n"} {
		off := binary.LittleEndian.Uint64(b[45+16*i:])
		size := binary.LittleEndian.Uint64(b[53+16*i:])
		part := b[off : off+size]
		if !bytes.HasPrefix(part, []byte(magic)) || magic == "PAR1" && !bytes.HasSuffix(part, []byte(magic)) {
			t.Errorf("entry %d is %.20q…", i, part)
		}
	}
}

// TestWorkersChangeNothing: the container is the same byte for byte for any number of workers, and when it is written
// again.
func TestWorkersChangeNothing(t *testing.T) {
	dir := t.TempDir()
	set := &build.Taco{Collection: collection(), Samples: &build.Tortilla{}}
	for i := range 200 {
		name := filepath.Join(dir, fmt.Sprint("f", i))
		testfile.Write(t, name, bytes.Repeat([]byte{byte(i)}, i))
		set.Samples.Samples = append(set.Samples.Samples, build.Sample{ID: fmt.Sprint("s", 500-i),
			Children: &build.Tortilla{Samples: []build.Sample{{ID: "x", File: name}}}})
	}
	var first []byte
	for _, workers := range []int{1, 1, 3, 16} {
		path := filepath.Join(dir, "out.tacozip")
		if _, err := build.Create(t.Context(), set, path, build.Options{Workers: workers}); err != nil {
			t.Fatal(err)
		}
		b := testfile.Read(t, path)
		if first == nil {
			first = b
		} else if !bytes.Equal(b, first) {
			t.Fatalf("%d workers write something else", workers)
		}
	}
}

// TestWhatIsRefused: datasets that the specification does not allow, and ids that would lead out of a folder, are
// refused before anything is written. The message names the sample.
func TestWhatIsRefused(t *testing.T) {
	file := func(id string) build.Sample { return build.Sample{ID: id, Bytes: []byte("x")} }
	folder := func(id string, below ...build.Sample) build.Sample {
		return build.Sample{ID: id, Children: &build.Tortilla{Samples: below}}
	}
	deep := file("f")
	for range 6 {
		deep = folder("d", deep)
	}
	cases := map[string][]build.Sample{
		"has no samples":              {},
		`sample "b/a"`:                {folder("b", file("a"), file("a"))},
		"without samples":             {folder("b")},
		"exactly one":                 {{ID: "a"}},
		"has 2 of":                    {{ID: "a", Bytes: []byte{}, File: "b"}},
		"at most 6 levels":            {deep},
		"PIT-1":                       {folder("a", file("x")), folder("b", file("y"))},
		`"b" is a FILE`:               {folder("a", file("x")), file("b")},
		"has 2 children":              {folder("a", file("x")), folder("b", file("x"), file("y"))},
		`column "id"`:                 {file("a")},
		`column "internal:parent_id"`: {file("a")},
		`column ""`:                   {file("a")},
	}
	for _, id := range []string{"", ".", "..", "a/b", "/etc/passwd", `a\b`, "a:b", "__meta__", "__TACOPAD__1", "a\x00b",
		"new\nline", "\u0085", "\xff"} {
		cases["its id: "+id] = []build.Sample{file(id)}
	}
	for message, samples := range cases {
		message, _, _ = strings.Cut(message, ": ")
		for _, name := range []string{"a.tacozip", "a"} {
			dir := t.TempDir()
			set := &build.Taco{Collection: collection(), Samples: &build.Tortilla{Samples: samples}}
			if column, is := strings.CutPrefix(message, "column "); is {
				set.Columns = columns(tables.FromVectors([]string{strings.Trim(column, `"`)},
					[]*tables.Vector{tables.NewStrings([]string{"x"}, nil)}))
			}
			_, err := build.Create(t.Context(), set, filepath.Join(dir, name), build.Options{})
			k := fault.KindOf(err)
			if k != fault.Unsupported && k != fault.Limit || !strings.Contains(err.Error(), message) {
				t.Errorf("%q: %v", message, err)
			}
			if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
				t.Errorf("%q leaves %v %v", message, left, err)
			}
		}
	}
}

// TestCollections: a description that lacks what the specification requires is refused by name.
func TestCollections(t *testing.T) {
	for member, change := range map[string]func(c *build.Collection){
		"id": func(c *build.Collection) { c.ID = "Upper Case" }, "title": func(c *build.Collection) {
			c.Title = strings.Repeat("é", 251)
		},
		"dataset_version": func(c *build.Collection) { c.DatasetVersion = "" },
		"description":     func(c *build.Collection) { c.Description = "" },
		"licenses":        func(c *build.Collection) { c.Licenses = nil },
		"providers":       func(c *build.Collection) { c.Providers = nil },
		"tasks":           func(c *build.Collection) { c.Tasks = nil },
		"taco_version":    func(c *build.Collection) { c.TacoVersion = "0.2.0" },
		"extent.spatial":  func(c *build.Collection) { c.Extent = &build.Extent{Spatial: []float64{0, 1, 2}} },
		"extent.temporal": func(c *build.Collection) {
			c.Extent = &build.Extent{Spatial: []float64{0, 1, 2, 3}, Temporal: []string{"x"}}
		},
	} {
		set := small(1)
		change(&set.Collection)
		_, err := build.Create(t.Context(), set, filepath.Join(t.TempDir(), "a.tacozip"), build.Options{})
		if fault.KindOf(err) != fault.Unsupported || !strings.Contains(err.Error(), member+" ") {
			t.Errorf("%s: %v", member, err)
		}
	}
}

// TestAFileThatCannotBeRead ends the writing with its name, and leaves what was there.
func TestAFileThatCannotBeRead(t *testing.T) {
	for _, name := range []string{"a.tacozip", "a"} {
		dir := t.TempDir()
		path := filepath.Join(dir, name)
		if name == "a.tacozip" {
			testfile.Write(t, path, []byte("old"))
		}
		set := small(1)
		set.Samples.Samples[1].Children.Samples[0] = build.Sample{ID: "x", File: filepath.Join(dir, "missing.tif")}
		_, err := build.Create(t.Context(), set, path, build.Options{})
		if fault.KindOf(err) != fault.NotFound || !strings.Contains(err.Error(), "missing.tif") {
			t.Errorf("%v", err)
		}
		if b, _ := os.ReadFile(path); name == "a.tacozip" && string(b) != "old" {
			t.Errorf("%s is %q", name, b)
		}
		if left, _ := os.ReadDir(dir); len(left) > 1 || len(left) == 1 && left[0].Name() != "a.tacozip" {
			t.Errorf("left are %v", left)
		}
	}
}

// TestAFolderIsNotReplaced: a folder that is there is left alone, also one that a link leads to.
func TestAFolderIsNotReplaced(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "there"), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("nowhere", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"there", "link"} {
		_, err := build.Create(t.Context(), small(1), filepath.Join(dir, name), build.Options{})
		if fault.KindOf(err) != fault.Unsupported {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestAZIPReplacesOnlyFiles: a folder, a link to one and a socket stay what they are, and are refused before anything
// is written.
func TestAZIPReplacesOnlyFiles(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	if err := os.Mkdir(at("folder"), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("folder", at("link")); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", at("socket"))
	if err != nil {
		t.Skip(err)
	}
	defer l.Close()
	for _, name := range []string{"folder", "link", "socket"} {
		before, err := os.Lstat(at(name))
		if err != nil {
			t.Fatal(err)
		}
		o := build.Options{Form: build.ZIP, Progress: func(int, int) { t.Errorf("%s: it writes", name) }}
		_, err = build.Create(t.Context(), small(1), at(name), o)
		if fault.KindOf(err) != fault.Unsupported || !strings.Contains(err.Error(), "is not a file") {
			t.Errorf("%s: %v", name, err)
		}
		if after, err := os.Lstat(at(name)); err != nil || after.Mode() != before.Mode() {
			t.Errorf("%s was %v and is %v %v", name, before.Mode(), after, err)
		}
	}
}

// TestACancelledRunLeavesNothing: the end of the context ends the writing.
func TestACancelledRunLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	o := build.Options{Progress: func(done, _ int) { cancel() }, Workers: 1}
	set := &build.Taco{Collection: collection(), Samples: &build.Tortilla{}}
	for i := range 100 {
		set.Samples.Samples = append(set.Samples.Samples, build.Sample{ID: fmt.Sprint(i), Bytes: []byte("x")})
	}
	if _, err := build.Create(ctx, set, filepath.Join(dir, "a.tacozip"), o); err == nil {
		t.Error("it was written all the same")
	}
	if left, _ := os.ReadDir(dir); len(left) > 0 {
		t.Errorf("left are %v", left)
	}
}

// TestLargeFilesAreCopiedInPieces: a file beyond what is read whole has its bytes, and its CRC-32 in both places of the
// ZIP, which verify checks.
func TestLargeFilesAreCopiedInPieces(t *testing.T) {
	race.SkipCovered(t)
	dir := t.TempDir()
	big := bytes.Repeat([]byte("0123456789abcdef"), 5<<16) // 5 MiB, more than 4
	name := filepath.Join(dir, "big")
	testfile.Write(t, name, big)
	for _, out := range []string{"a.tacozip", "a"} {
		set := small(1)
		for i := range set.Samples.Samples {
			set.Samples.Samples[i].Children.Samples[0] = build.Sample{ID: "x", File: name}
		}
		path := filepath.Join(dir, out)
		if _, err := build.Create(t.Context(), set, path, build.Options{}); err != nil {
			t.Fatal(err)
		}
		m := &maker{leaves: map[string]string{"a/x": string(big), "b/x": string(big), "a/y": "\x00", "b/y": "\x00"}}
		m.compare(t, path)
		if out == "a.tacozip" {
			m.compareZIP(t, path)
		}
	}
}
