package taco2

import (
	"bytes"
	"context"
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
	"github.com/chaski-eo/chaski/format/tables"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/source/zipdir"
	"github.com/chaski-eo/chaski/store/taco/internal/model"
	"github.com/chaski-eo/chaski/tools/testkit/corpus"
)

// header is a TACO_HEADER entry with pairs of offset and size.
func header(pairs ...uint64) []byte {
	b := make([]byte, zipDataAt)
	copy(b, localSignature)
	binary.LittleEndian.PutUint16(b[26:], uint16(len(HeaderName)))
	copy(b[30:], HeaderName)
	b[HeaderAt] = byte(len(pairs) / 2)
	for i, v := range pairs {
		if i < 2*HeaderPairs {
			binary.LittleEndian.PutUint64(b[HeaderAt+4+8*i:], v)
		}
	}
	return b
}

func TestHeader(t *testing.T) {
	const total = 1000
	levels, coll, err := parseHeader(header(157, 100, 300, 50, 400, 600), total)
	want := [2]span{{Off: 300, Size: 50}, {Off: 400, Size: 600}}
	if err != nil || len(levels) != 2 || levels[1] != want[0] || coll != want[1] {
		t.Fatal(levels, coll, err)
	}
	set := func(at int, v byte) []byte {
		b := header(157, 100, 300, 50)
		b[at] = v
		return b
	}
	for name, b := range map[string][]byte{
		"nothing": nil, "cut": header(157, 1, 158, 1)[:100], "signature": set(0, 'Q'), "name": set(31, 'X'),
		"length of the name": set(26, 12),
		"extra field":        set(28, 4), "deflate": set(8, 8), "no entry": header(), "one entry": header(157, 5),
		"count 255":      set(HeaderAt, 255),
		"count 8":        header(157, 1, 157, 1, 157, 1, 157, 1, 157, 1, 157, 1, 157, 1, 157, 1),
		"in the header":  header(156, 10, 300, 50),
		"past the end":   header(157, 10, 990, 11),
		"offset past":    header(1001, 0, 300, 50),
		"wraps":          header(200, math.MaxUint64-100, 300, 50),
		"negative":       header(1<<63, 10, 300, 50),
		"an empty level": header(157, 0, 300, 50),
	} {
		want := fault.Corrupt
		if strings.Contains(name, "name") {
			want = fault.Unsupported
		}
		if _, _, err := parseHeader(b, total); fault.KindOf(err) != want {
			t.Errorf("%s: %v, want %v", name, err, want)
		}
	}
}

// catHeader is the header of a __TACOCAT__ whose deepest level is deepest.
func catHeader(deepest uint32, pairs ...uint64) []byte {
	b := make([]byte, catDataAt)
	copy(b, catMagic)
	binary.LittleEndian.PutUint32(b[8:], 1)
	binary.LittleEndian.PutUint32(b[12:], deepest)
	for i, v := range pairs {
		binary.LittleEndian.PutUint64(b[16+8*i:], v)
	}
	return b
}

func TestTacocatHeader(t *testing.T) {
	all := []uint64{128, 100, 228, 50, 0, 0, 0, 0, 0, 0, 0, 0, 300, 20}
	levels, coll, err := parseTacocat(catHeader(1, all...), 320)
	want := [2]span{{Off: 228, Size: 50}, {Off: 300, Size: 20}}
	if err != nil || len(levels) != 2 || levels[1] != want[0] || coll != want[1] {
		t.Fatal(levels, coll, err)
	}
	version := catHeader(1, all...)
	version[8] = 2
	for name, c := range map[string]struct {
		b    []byte
		kind fault.Kind
	}{
		"nothing": {nil, fault.Corrupt}, "cut": {catHeader(1, all...)[:127], fault.Corrupt},
		"version":  {version, fault.Unsupported},
		"too deep": {catHeader(6, all...), fault.Corrupt}, "a level is missing": {catHeader(2, all...), fault.Corrupt},
		"a level below the deepest": {catHeader(0, all...), fault.Corrupt},
		"no collection":             {catHeader(1, all[:12]...), fault.Corrupt},
		"in the header":             {catHeader(0, 127, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 300, 20), fault.Corrupt},
		"past the end":              {catHeader(0, 128, 193, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 300, 20), fault.Corrupt},
	} {
		if _, _, err := parseTacocat(c.b, 320); fault.KindOf(err) != c.kind {
			t.Errorf("%s: %v, want %v", name, err, c.kind)
		}
	}
}

func TestNames(t *testing.T) {
	for _, id := range []string{"a", "roi 1", "ñandú", "a.b", "...", "_x", "__TACOPAD__0", "__TACOPAD__12"} {
		if what := BadID(id); what != "" {
			t.Errorf("%q %s", id, what)
		}
	}
	for _, id := range []string{"", ".", "..", "a/b", `a\b`, "C:x", "a\x00", "__x", "__meta__", "__TACOPAD__",
		"__TACOPAD__x", "\xff"} {
		if BadID(id) == "" {
			t.Errorf("%q is taken", id)
		}
	}
	for path, want := range map[string]bool{"a": false, "a/b": false, "a/b/": false, "a b": false, "": true,
		"/a": true, "../a": true, "a/../b": true,
		"a/./b": true, "a//b": true, `a\b`: true, "c:/x": true, "a/..": true, "/": true, "a//": true} {
		if model.Climbs(path) != want {
			t.Errorf("model.Climbs(%q) is not %v", path, want)
		}
	}
	for name, want := range map[string]bool{"part0.tacozip": false, "sub/part0.tacozip": false,
		"t_10:30.tacozip": false, "../x": true, "/etc/passwd": true,
		"a/": true, "s3://b/k": true, "": true} {
		if model.BadSource(name) != want {
			t.Errorf("model.BadSource(%q) is not %v", name, want)
		}
	}
}

func TestCollection(t *testing.T) {
	c, err := parseCollection(
		[]byte(` {"id":"a","taco:pit_schema":{"root":{"n":2,"type":"FOLDER"},"hierarchy":{"1":[{"n":4,"type":["FILE","FILE"],"id":["x","y"]}]}},
		"taco:field_schema":{"level0":[["id","string"],["q","int64"]]}}`), "COLLECTION.json", 0)
	if err != nil || c.Tree.Levels() != 2 || fmt.Sprint(c.Columns(0), c.Columns(1)) != "[id q] []" {
		t.Fatal(c, err)
	}
	other := *c.Tree
	other.Root.N = 99
	if !c.Tree.Same(&other) {
		t.Error("counts make trees differ")
	}
	other.Hierarchy = map[string][]model.TreeFolder{"1": {
		{N: 4, Type: []string{"FILE", "FILE"}, ID: []string{"y", "x"}}}}
	if c.Tree.Same(&other) {
		t.Error("trees of other ids are the same")
	}
	for name, text := range map[string]string{
		"nothing": "", "an array": "[]", "no JSON": "{", "no id": "{}", "an empty id": `{"id":""}`,
		"another id": `{"id":3}`,
		"not UTF-8":  "{\"id\":\"\xff\"}",
		"tree":       `{"id":"a","taco:pit_schema":[1]}`, "more after it": `{"id":"a"}{}`,
	} {
		if _, err := parseCollection([]byte(text), "COLLECTION.json", 7); fault.KindOf(err) != fault.Corrupt {
			t.Errorf("%s: %v", name, err)
		}
	}
	deep := `{"id":"a","x":` + strings.Repeat("[", 20000) + strings.Repeat("]", 20000) + "}"
	if _, err := parseCollection([]byte(deep), "COLLECTION.json", 7); fault.KindOf(err) != fault.Limit {
		t.Errorf("deep: %v", err)
	}
	for _, text := range []string{`{"id":"a"}`, `{"id":"a","taco:sources":{"files":[]}}`,
		`{"id":"a","taco:sources":{"files":["../b"]}}`} {
		if _, err := ReadTacollection(t.Context(), &corpus.Mem{B: []byte(text)}); fault.KindOf(err) != fault.Corrupt {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// memory is an opener of objects in memory.
type memory map[string][]byte

func (m memory) Open(_ context.Context, uri string) (source.Reader, error) {
	b, ok := m[uri]
	if !ok {
		return nil, fault.WithFile(fault.New(fault.NotFound, "file", "is not there"), uri)
	}
	return &corpus.Mem{B: b}, nil
}

// openBytes opens a container in memory. The magic number selects its kind.
func openBytes(ctx context.Context, b []byte) (*model.Container, error) {
	m := memory{"x": b}
	r, err := m.Open(ctx, "x")
	if err != nil {
		return nil, err
	}
	from := model.Source{Opener: m, URI: "x", File: r, Head: b[:min(len(b), 256)]}
	if strings.HasPrefix(string(from.Head), catMagic) {
		return model.Open(ctx, from, model.TacocatFile, OpenTacocat)
	}
	return model.Open(ctx, from, model.ZIP, OpenZIP)
}

// walk verifies a container and reads everything of every row. Every entry must be inside its file.
func walk(t testing.TB, b []byte) error {
	ctx := context.Background()
	c, err := openBytes(ctx, b)
	if err != nil {
		return err
	}
	errs := []error{c.Verify(ctx, &model.Report{})}
	for k := range c.Levels() {
		tab, err := c.Table(ctx, k)
		if err != nil {
			return errors.Join(append(errs, err)...)
		}
		for row := range min(tab.Len(), 1000) {
			e, err := c.Entry(ctx, k, row)
			errs = append(errs, err)
			if err == nil && e.URI == "x" && !(span{Off: e.Offset, Size: e.Size}).In(0, int64(len(b))) {
				t.Errorf("level %d row %d: %d bytes at %d of %d", k, row, e.Size, e.Offset, len(b))
			}
			_, err = c.Children(ctx, k, row)
			errs = append(errs, err)
		}
	}
	return errors.Join(append(errs, c.Close())...)
}

func containers(t testing.TB) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	root := filepath.Join(corpus.Testdata(t), "containers")
	err := filepath.WalkDir(root, func(p string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(p) != ".tacozip" && d.Name() != "__TACOCAT__" {
			return err
		}
		b, err := os.ReadFile(p)
		rel, _ := filepath.Rel(root, p)
		files[filepath.ToSlash(rel)] = b
		return err
	})
	if err != nil || len(files) < 10 {
		t.Fatal(len(files), err)
	}
	return files
}

// TestChangedBytes: every fault of a container with some bytes changed has a kind.
func TestChangedBytes(t *testing.T) {
	b := containers(t)["taco-v2/spec200/concat_a.tacozip"]
	if err := walk(t, b); err != nil {
		t.Fatal(err)
	}
	for at := 0; at < len(b); at += 7 {
		c := append([]byte(nil), b...)
		c[at] ^= 0x41
		if err := walk(t, c); err != nil && fault.KindOf(err) == 0 {
			t.Fatalf("byte %d: an error without a kind: %v", at, err)
		}
	}
	directory := strings.Index(string(b), zipdir.Signature)
	for cut := 0; cut < directory; cut += 97 {
		if err := walk(t, b[:cut]); fault.KindOf(err) == 0 {
			t.Errorf("cut at %d: %v", cut, err)
		}
	}
	c, err := openBytes(t.Context(), b[:directory+50])
	if err != nil {
		t.Fatal(err)
	}
	var r model.Report
	if err := c.Verify(t.Context(), &r); err != nil || len(r.Notes) != 1 || !strings.Contains(r.Notes[0], "directory") {
		t.Errorf("without the directory: %v, %q", err, r.Notes)
	}
}

// catRow is a row of a catalog.
type catRow struct {
	ID     string `parquet:"id,dict"`
	Type   string `parquet:"type,dict"`
	Parent int64  `parquet:"internal:parent_id"`
	Off    int64  `parquet:"internal:offset"`
	Size   int64  `parquet:"internal:size"`
	Source string `parquet:"internal:source_file,dict"`
}

// catalogOf makes a __TACOCAT__ over one ZIP under several names, as the writers do: METADATA as it is.
func catalogOf(t *testing.T, b []byte, names ...string) []byte {
	t.Helper()
	c, err := openBytes(t.Context(), b)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	of := c.Reader.(*reader)
	var body []byte
	var pairs []uint64
	for k := range c.Levels() {
		if _, err := c.Table(t.Context(), k); err != nil {
			t.Fatal(err)
		}
		l := of.levels[k]
		var v [3]*tables.Vector
		for i, name := range []string{model.ColumnParent, model.ColumnOffset, model.ColumnSize} {
			if v[i], err = l.Table.Column(t.Context(), name); err != nil {
				t.Fatal(err)
			}
		}
		var rows []catRow
		for _, name := range names {
			for i := range l.Table.Len() {
				rows = append(rows, catRow{l.IDs.Str(i), l.types.Str(i), v[0].Int(i), v[1].Int(i), v[2].Int(i), name})
			}
		}
		var out bytes.Buffer
		w := parquet.NewGenericWriter[catRow](&out)
		if _, err := w.Write(rows); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		pairs = append(pairs, uint64(catDataAt+len(body)), uint64(out.Len()))
		body = append(body, out.Bytes()...)
	}
	for len(pairs) < 2*catLevels {
		pairs = append(pairs, 0)
	}
	pairs = append(pairs, uint64(catDataAt+len(body)), uint64(len(c.Document)))
	return append(append(catHeader(uint32(c.Levels()-1), pairs...), body...), c.Document...)
}

// TestMisplacedOffsets: where the writer gave rows the places of others, each sample is found under its
// own name, in a ZIP and in a catalog, which inherits the fault. Of a source file that is not there,
// nothing can be known.
func TestMisplacedOffsets(t *testing.T) {
	for _, name := range []string{"taco-v2/spec200/unsorted_two_level.tacozip",
		"taco-v2/spec200/unsorted_three_level.tacozip", "taco-v2/current/unsorted_two_level.tacozip"} {
		b := containers(t)[name]
		cat := catalogOf(t, b, "a.tacozip", "absent.tacozip", "b.tacozip")
		m := memory{"z.tacozip": b, "dir/a.tacozip": b, "dir/b.tacozip": b}
		from := model.Source{Opener: m, URI: "z.tacozip", File: &corpus.Mem{B: b}, Head: b[:256]}
		zip, err := model.Open(t.Context(), from, model.ZIP, OpenZIP)
		if err != nil {
			t.Fatal(err)
		}
		from = model.Source{Opener: m, URI: "x", Base: "dir/", File: &corpus.Mem{B: cat}, Head: cat[:256]}
		all, err := model.Open(t.Context(), from, model.TacocatFile, OpenTacocat)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range []*model.Container{zip, all} {
			if wrong := misplaced(t, c, m); wrong == 0 {
				t.Errorf("%s: no offset of METADATA is wrong", name)
			}
			var r model.Report
			if err := c.Verify(t.Context(), &r); err != nil ||
				!strings.Contains(strings.Join(r.Notes, " "), "of another sample") {
				t.Errorf("%s: %v, %q", name, err, r.Notes)
			}
			if (c == all) != (len(r.Absent) == 1) {
				t.Errorf("%s: absent files %q", name, r.Absent)
			}
			if err := c.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestManyRowsInFewBytes: rows that are all equal take next to nothing in a file, and are not believed.
func TestManyRowsInFewBytes(t *testing.T) {
	rows := slices.Repeat([]catRow{{ID: "a", Type: "FILE", Off: 1, Size: 1, Source: "a.tacozip"}}, 2_000_000)
	var out bytes.Buffer
	w := parquet.NewGenericWriter[catRow](&out, parquet.Compression(&parquet.Zstd))
	if _, err := w.Write(rows); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	coll := `{"id":"a"}`
	pairs := append([]uint64{catDataAt, uint64(out.Len())}, make([]uint64, 10)...)
	pairs = append(pairs, uint64(catDataAt+out.Len()), uint64(len(coll)))
	b := append(append(catHeader(0, pairs...), out.Bytes()...), coll...)
	if model.RowLimit(int64(len(b))) > int64(len(rows)/2) {
		t.Skipf("%d bytes: the writer does not make it small enough", len(b))
	}
	if err := walk(t, b); fault.KindOf(err) != fault.Limit {
		t.Errorf("%d rows in %d bytes: %v", len(rows), len(b), err)
	}
}

// misplaced checks that every sample lies under its own name, and counts those whose row says other.
func misplaced(t *testing.T, c *model.Container, m memory) (wrong int) {
	t.Helper()
	for k := range c.Levels() {
		tab, err := c.Table(t.Context(), k)
		if err != nil {
			t.Fatal(err)
		}
		for row := range tab.Len() {
			e, err := c.Entry(t.Context(), k, row)
			if err != nil {
				t.Fatal(err)
			}
			path, err := c.Reader.(*reader).path(t.Context(), k, row)
			if err != nil {
				t.Fatal(err)
			}
			name := "DATA/" + path
			if e.Folder {
				name += "/" + MetaName
			}
			b := m[e.URI]
			if b == nil {
				continue
			}
			if at := e.Offset - int64(len(name)); string(b[at:e.Offset]) != name ||
				int64(binary.LittleEndian.Uint32(b[at-8:])) != e.Size {
				t.Errorf("%s: %s is not at %d, or has not %d bytes", e.URI, path, e.Offset, e.Size)
			}
			if c.Reader.(*reader).levels[k].Offsets.Int(row) != e.Offset {
				wrong++
			}
		}
	}
	return wrong
}

func FuzzHeader(f *testing.F) {
	for _, b := range containers(f) {
		f.Add(b[:min(len(b), 256)], int64(len(b)))
	}
	f.Fuzz(func(t *testing.T, b []byte, total int64) {
		for _, parse := range []func([]byte, int64) ([]span, span, error){parseHeader, parseTacocat} {
			levels, coll, err := parse(b, total)
			if err != nil {
				if fault.KindOf(err) == 0 {
					t.Fatal(err)
				}
				continue
			}
			for _, s := range append(levels, coll) {
				if !s.In(0, total) || s.Size == 0 || s.Off < 128 {
					t.Fatalf("%v of %d", s, total)
				}
			}
		}
	})
}

func FuzzCollection(f *testing.F) {
	f.Add([]byte(`{"id":"a","taco:pit_schema":{"root":{"n":2,"type":"FOLDER"},` +
		`"hierarchy":{"1":[{"n":4,"type":["FILE"],"id":["x"]}]}},` +
		`"taco:sources":{"files":["a"],"extents":[{"file":"a"}]}}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := parseCollection(b, "COLLECTION.json", 0)
		if err != nil {
			if fault.KindOf(err) == 0 {
				t.Fatal(err)
			}
			return
		}
		if c.Tree != nil && (!c.Tree.Same(c.Tree) || c.Tree.Levels() > len(b)) {
			t.Fatal(c.Tree)
		}
		c.Columns(0)
	})
}

// FuzzContainer promises that whatever a file claims can be read without a panic, and that no entry is outside the
// file.
func FuzzContainer(f *testing.F) {
	for _, b := range containers(f) {
		if len(b) < 30000 {
			f.Add(b)
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if err := walk(t, b); err != nil && fault.KindOf(err) == 0 {
			t.Fatal(err)
		}
	})
}
