package shards

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store/taco/internal/model"
	"github.com/chaski-eo/chaski/tables"
)

// memory opens files by name.
type memory map[string][]byte

// Open implements source.Opener.
func (m memory) Open(_ context.Context, uri string) (source.Reader, error) {
	b, ok := m[uri]
	if !ok {
		return nil, fault.New(fault.NotFound, "file", fault.NoOffset, "no such file")
	}
	return held(b), nil
}

type held []byte

func (h held) Size() int64  { return int64(len(h)) }
func (h held) Close() error { return nil }
func (h held) ReadAt(_ context.Context, p []byte, off int64) error {
	if off < 0 || off > int64(len(h)) || int64(len(p)) > int64(len(h))-off {
		return fault.New(fault.Corrupt, "byte range", off, "%d bytes in %d", len(p), len(h))
	}
	copy(p, h[off:])
	return nil
}

// fixture returns the files that the original writers made: see testdata/shards/make.py.
func fixture(t testing.TB, name string) memory {
	m := memory{}
	paths, err := filepath.Glob("../../../../testdata/shards/" + name + "/*")
	if err != nil || len(paths) == 0 {
		t.Fatal(paths, err)
	}
	for _, p := range paths {
		b, err := os.ReadFile(p)
		if err != nil {
			t.Fatal(err)
		}
		m[name+"/"+filepath.Base(p)] = b
	}
	return m
}

// walk reads what a container has, and checks that all files lie in their shards.
func walk(t testing.TB, m memory, c *model.Container) (files int) {
	ctx := context.Background()
	for level := range c.Levels() {
		table, err := c.Table(ctx, level)
		if err != nil {
			t.Fatal(err)
		}
		for i := range table.Columns() {
			if v, err := table.At(ctx, i); err != nil || v.Len() != table.Len() {
				t.Fatal(err, v.Len(), table.Len())
			}
		}
		for row := range table.Len() {
			e, err := c.Entry(ctx, level, row)
			if err != nil {
				t.Fatal(err)
			}
			if e.Kind == model.Folder {
				continue
			}
			if size := int64(len(m[e.URI])); e.Offset < 0 || e.Size < 0 || e.Offset+e.Size > size {
				t.Fatalf("%s/%d: %d bytes at %d of %d", e.ID, row, e.Size, e.Offset, size)
			}
			files++
		}
	}
	return files
}

// TestHostileMDS changes one thing of good shards at a time.
func TestHostileMDS(t *testing.T) {
	replace := func(from, to string) func(m memory) {
		return func(m memory) {
			m["mds/index.json"] = []byte(strings.Replace(string(m["mds/index.json"]), from, to, 1))
		}
	}
	shard := func(off int, v uint32) func(m memory) {
		return func(m memory) { binary.LittleEndian.PutUint32(m["mds/shard.00000.mds"][off:], v) }
	}
	first := func(m memory) int { return int(binary.LittleEndian.Uint32(m["mds/shard.00000.mds"][4:])) }
	rename := func(to string) func(m memory) { return replaceAll(`"array", "count"`, `"`+to+`", "count"`) }
	for name, c := range map[string]struct {
		change func(m memory)
		kind   fault.Kind
		want   string
	}{
		"climbing": {replace(`"shard.00000.mds"`, `"../shard.mds"`), fault.Corrupt, "below the directory"},
		"absolute": {replace(`"shard.00000.mds"`, `"/etc/passwd"`), fault.Corrupt, "below the directory"},
		"no shards": {func(m memory) { m["mds/index.json"] = []byte(`{"shards": []}`) }, fault.Corrupt,
			"no shards"},
		"not JSON": {func(m memory) { m["mds/index.json"] = []byte(`{"shards": [`) }, fault.Corrupt, ""},
		"version":  {replace(`"version": 2`, `"version": 3`), fault.Unsupported, "version 3"},
		"columns":  {replace(`"array", "count"`, `"array", "array"`), fault.Unsupported, "different columns"},
		"dots":     {rename(".."), fault.Corrupt, "only dots"},
		"no name":  {rename(""), fault.Corrupt, "empty"},
		"encoding": {replaceAll(`"str_int"`, `"thing"`), fault.Unsupported, "thing"},
		"size":     {replaceAll(`288`, `289`), fault.Corrupt, "in 289 bytes"},
		"huge shape": {replaceAll(`2,8,9`, `2000000000,2000000000,2000000000`), fault.Corrupt,
			"in 288 bytes"},
		"samples":       {replace(`"samples": `, `"samples": 1`), fault.Corrupt, "samples"},
		"huge samples":  {shard(0, 1<<31), fault.Corrupt, "samples"},
		"shard missing": {func(m memory) { delete(m, "mds/shard.00000.mds") }, fault.NotFound, ""},
		"cut": {func(m memory) { m["mds/shard.00000.mds"] = m["mds/shard.00000.mds"][:40] }, fault.Corrupt,
			""},
		"offset back":   {shard(8, 3), fault.Corrupt, "sample 1 is at 3"},
		"offset beyond": {shard(8, 1<<31), fault.Corrupt, "sample 1 is at"},
		"huge column":   {func(m memory) { shard(first(m), 1<<31)(m) }, fault.Corrupt, "sizes"},
		"no column":     {func(m memory) { shard(first(m), 0)(m) }, fault.Corrupt, "mask"},
	} {
		m := fixture(t, "mds")
		c.change(m)
		_, err := OpenMDS(t.Context(), model.Source{Opener: m, URI: "mds"})
		if fault.KindOf(err) != c.kind || !strings.Contains(fmt.Sprint(err), c.want) {
			t.Errorf("%s: %v, want %v about %q", name, err, c.kind, c.want)
		}
	}
}

func replaceAll(from, to string) func(m memory) {
	return func(m memory) {
		m["mds/index.json"] = []byte(strings.ReplaceAll(string(m["mds/index.json"]), from, to))
	}
}

// TestCompressedShards: the samples of a shard that is compressed as a whole have no byte ranges.
func TestCompressedShards(t *testing.T) {
	m := fixture(t, "mds")
	m["mds/index.json"] = []byte(strings.ReplaceAll(string(m["mds/index.json"]), `"zip_data": null`,
		`"zip_data": {"basename": "shard.mds.zstd", "bytes": 9, "hashes": {}}`))
	if _, err := OpenMDS(t.Context(), model.Source{Opener: m, URI: "mds"}); err != nil {
		t.Error("the raw shards are there:", err)
	}
	delete(m, "mds/shard.00001.mds")
	_, err := OpenMDS(t.Context(), model.Source{Opener: m, URI: "mds"})
	if fault.KindOf(err) != fault.Unsupported || !strings.Contains(err.Error(), "decompress each beside itself") {
		t.Error(err)
	}
}

// member is one of a tar file.
type member struct {
	name string
	body string
	h    tar.Header
}

func tarOf(t testing.TB, members ...member) []byte {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, m := range members {
		h := m.h
		h.Name, h.Mode = m.name, 0o644
		if h.Typeflag == 0 {
			h.Typeflag, h.Size = tar.TypeReg, int64(len(m.body))
		}
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, m.body); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestHostileTars(t *testing.T) {
	long := strings.Repeat("n", 300) // a name for which the writer makes a PAX record
	for name, c := range map[string]struct {
		tar  []byte
		kind fault.Kind // 0: it is read
		want string
	}{
		"good":       {tarOf(t, member{name: "a/b.png", body: "p"}, member{name: "a/b.cls", body: "3"}), 0, ""},
		"long names": {tarOf(t, member{name: long + ".png", body: "p"}), 0, ""},
		"directories": {tarOf(t, member{name: "a/", h: tar.Header{Typeflag: tar.TypeDir}}, member{name: "a/b.png"}),
			0, ""},
		"link": {tarOf(t, member{name: "a.png", h: tar.Header{Typeflag: tar.TypeSymlink, Linkname: "/etc/passwd"}}),
			fault.Unsupported, "link to"},
		"hard link": {tarOf(t, member{name: "a.png", h: tar.Header{Typeflag: tar.TypeLink, Linkname: "b"}}),
			fault.Unsupported, "link to"},
		"device": {tarOf(t, member{name: "a.png", h: tar.Header{Typeflag: tar.TypeChar}}),
			fault.Unsupported, "of type"},
		"pipe": {tarOf(t, member{name: "a.png", h: tar.Header{Typeflag: tar.TypeFifo}}),
			fault.Unsupported, "of type"},
		"twice": {tarOf(t, member{name: "a.png"}, member{name: "a.PNG"}), fault.Corrupt, "two members"},
		"apart": {tarOf(t, member{name: "a.png"}, member{name: "b.png"}, member{name: "a.cls", body: "1"}),
			fault.Unsupported, "two places"},
		"bad JSON": {tarOf(t, member{name: "a.json", body: "{"}), fault.Corrupt, "not JSON"},
		"bad text": {tarOf(t, member{name: "a.txt", body: "\xff"}), fault.Corrupt, "UTF-8"},
		"huge":     {patched(tarOf(t, member{name: "a.png", body: "p"}), 124, "77777777777\x00"), fault.Corrupt, ""},
		"base 256": {patched(tarOf(t, member{name: "a.png", body: "p"}), 124, "\x80\x00\x00\x00\x7f"),
			fault.Corrupt, ""},
		"cut":        {tarOf(t, member{name: "a.png", body: strings.Repeat("p", 2000)})[:1100], fault.Corrupt, ""},
		"huge PAX":   {patched(tarOf(t, member{name: long + ".png"}), 124, "77777777777\x00"), fault.Corrupt, ""},
		"GNU sparse": {patched(tarOf(t, member{name: "a.png", body: "p"}), 156, "S"), 0, ""},
	} {
		m := memory{"x.tar": c.tar}
		got, err := openTars(t.Context(), m, "x.tar", []string{"x.tar"})
		if name == "GNU sparse" { // refused by its type, or by the standard library by its map
			if k := fault.KindOf(err); k != fault.Unsupported && k != fault.Corrupt {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if fault.KindOf(err) != c.kind || !strings.Contains(fmt.Sprint(err), c.want) {
			t.Errorf("%s: %v, want %v about %q", name, err, c.kind, c.want)
		}
		if err == nil && walk(t, m, got) != 1 {
			t.Errorf("%s: %d files", name, walk(t, m, got))
		}
	}
}

// patched changes bytes of the first header of a tar file, and its checksum.
func patched(b []byte, at int, s string) []byte {
	copy(b[at:], s)
	copy(b[148:156], "        ")
	sum := 0
	for _, c := range b[:TarBlock] {
		sum += int(c)
	}
	copy(b[148:], fmt.Sprintf("%06o\x00", sum))
	return b
}

// TestNamesOfMembers: the keys are those that base_plus_ext of webdataset 1.0.2 gives.
func TestNamesOfMembers(t *testing.T) {
	for name, want := range map[string][2]string{
		"a.png": {"a", "png"}, "d/a.seg.PNG": {"d/a", "seg.png"}, "./a.png": {"a", "png"},
		"d.e/a.png":  {"d.e/a", "png"},
		"__a__b.png": {"__a__b", "png"}, "__index__.json": {"__index__", "json"},
		"a.": {}, "a..": {}, // a file without a name, or called "."
		"a": {}, ".hidden": {}, "__index__": {}, "__meta__/a.png": {}, "d/a": {},
	} {
		key, ext, ok := tarName(name)
		if [2]string{key, ext} != want || ok != (want[0] != "") {
			t.Errorf("%s: %q %q %t", name, key, ext, ok)
		}
	}
}

// TestPythonNumbers: json.dumps writes numbers that JSON lacks.
func TestPythonNumbers(t *testing.T) {
	m := memory{"x.tar": tarOf(t, member{name: "a.json", body: `{"c": NaN, "d": -Infinity, "e": "\"NaN", "f": [NaN]}`},
		member{name: "b.json", body: `{"c": 0.5, "d": 1.5, "e": "", "f": []}`})}
	c, err := openTars(t.Context(), m, "x.tar", []string{"x.tar"})
	if err != nil {
		t.Fatal(err)
	}
	table, err := c.Table(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for i := 2; i < len(table.Columns()); i++ {
		v, err := table.At(t.Context(), i)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, string(v.AppendJSON(nil, 0)))
	}
	if want := []string{"null", `"-Infinity"`, `"\"NaN"`, `"[null]"`}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestRenamedColumns: a column is renamed to a name that no other has.
func TestRenamedColumns(t *testing.T) {
	p := &part{ids: []string{"a"}}
	for _, name := range []string{"type", "source:type", "id"} {
		p.column(name, tables.Type{}).add(0, `"`+name+`"`)
	}
	c := &reader{}
	if err := c.join(p); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, c := range c.levels[0].Table.Columns() {
		got = append(got, c.Name)
	}
	if want := []string{"id", "type", "source:type", "source:source:type", "source:id"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// missing has no file, and counts those that it is asked for.
type missing struct{ opened atomic.Int64 }

// Open implements source.Opener.
func (m *missing) Open(ctx context.Context, uri string) (source.Reader, error) {
	m.opened.Add(1)
	return memory{}.Open(ctx, uri)
}

// TestMissingShards: after an error no further shard is opened.
func TestMissingShards(t *testing.T) {
	o := &missing{}
	uris := make([]string, 1000)
	for i := range uris {
		uris[i] = fmt.Sprintf("%d.tar", i)
	}
	_, err := openTars(t.Context(), o, "x.tar", uris)
	if fault.KindOf(err) != fault.NotFound || !strings.HasPrefix(err.Error(), "0.tar: ") || o.opened.Load() > 500 {
		t.Error(err, o.opened.Load())
	}
}

// TestIndexMemory: an index of wrong shards ends at the first, before each of the others takes a hundred bytes for two.
func TestIndexMemory(t *testing.T) {
	const n = 1 << 20
	for name, c := range map[string]struct {
		shards string
		kind   fault.Kind
	}{
		"shards":  {strings.Repeat("{},", n) + "{}", fault.Unsupported},
		"columns": {`{"column_sizes":[` + strings.Repeat("1,", n) + "1]}", fault.Limit},
	} {
		b := held(`{"version": 2, "shards": [` + c.shards + "]}")
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := readIndex(t.Context(), b)
		runtime.ReadMemStats(&after)
		// The bytes of the index and those of a shard, whose buffer doubles until it holds them.
		if made := after.TotalAlloc - before.TotalAlloc; fault.KindOf(err) != c.kind || made > 8*uint64(len(b)) {
			t.Errorf("%s: %v, %d bytes for %d", name, err, made, len(b))
		}
	}
}

// TestOtherIndex: an index of shards that are not read says so, and one of something else is none.
func TestOtherIndex(t *testing.T) {
	for text, want := range map[string]bool{
		`{"shards": [{"format": "jsonl", "version": 2}]}`: true, `{"shards": [{}]}`: false, `{"shards": {}}`: false,
		`{"shards": [null]}`: false, `[]`: false, ``: false,
	} {
		if got := IsMDS(t.Context(), held(text)); got != want {
			t.Errorf("%s: %t", text, got)
		}
	}
	m := memory{"d/index.json": []byte(`{"shards": [{"format": "jsonl", "version": 2}]}`)}
	_, err := OpenMDS(t.Context(), model.Source{Opener: m, URI: "d"})
	if fault.KindOf(err) != fault.Unsupported || !strings.Contains(err.Error(), `"jsonl"`) {
		t.Error(err)
	}
}

func FuzzMDS(f *testing.F) {
	m := fixture(f, "mds")
	f.Add(m["mds/index.json"], m["mds/shard.00000.mds"], m["mds/shard.00001.mds"])
	f.Fuzz(func(t *testing.T, index, a, b []byte) {
		m := memory{"mds/index.json": index, "mds/shard.00000.mds": a, "mds/shard.00001.mds": b}
		c, err := OpenMDS(t.Context(), model.Source{Opener: m, URI: "mds"})
		if err != nil {
			if fault.KindOf(err) == 0 {
				t.Fatalf("without a kind: %v", err)
			}
			return
		}
		walk(t, m, c)
	})
}

func FuzzTar(f *testing.F) {
	// Small ones: the fuzzer would minimize one of 30 KB for a minute.
	f.Add(tarOf(f, member{name: "a/b.npy", body: "p"}, member{name: "a/b.cls", body: "3"},
		member{name: "c.seg.png", body: "q"}, member{name: "c.txt", body: "é"}))
	f.Add(tarOf(f, member{name: strings.Repeat("n", 300) + ".json", body: `{"a": 1.5, "b": [null]}`}))
	f.Fuzz(func(t *testing.T, b []byte) {
		m := memory{"x.tar": b}
		c, err := openTars(t.Context(), m, "x.tar", []string{"x.tar"})
		if err != nil {
			if fault.KindOf(err) == 0 {
				t.Fatalf("without a kind: %v", err)
			}
			return
		}
		walk(t, m, c)
	})
}
