package taco3

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store/taco/internal/model"
	"github.com/chaski-eo/chaski/tools/testkit/corpus"
	"github.com/chaski-eo/chaski/tools/testkit/testfile"
)

// memory opens objects in memory by their names.
type memory map[string][]byte

// Open implements source.Opener.
func (m memory) Open(_ context.Context, uri string) (source.Reader, error) {
	b, ok := m[uri]
	if !ok {
		return nil, fault.New(fault.NotFound, "file", "no such file")
	}
	return &corpus.Mem{B: b}, nil
}

func fixture(t testing.TB, name string) []byte {
	t.Helper()
	b := testfile.Read(t, filepath.Join(corpus.Testdata(t), "taco3", name))
	return b
}

// seal writes the checksum of an archive whose index has n bytes, by the rule of the format: FNV-1a over the index and
// the last 32 KiB, bytes in both once.
func seal(b []byte, n int) []byte {
	sum := fnv.New64a()
	for i, c := range b {
		if i >= 51 && i < 51+n || i >= len(b)-32<<10 && i >= 51 {
			sum.Write([]byte{c})
		}
	}
	binary.LittleEndian.PutUint64(b[43:], sum.Sum64())
	return b
}

func open(t testing.TB, b []byte) (*model.Container, error) {
	t.Helper()
	from := model.Source{Opener: memory{"a.zip": b}, URI: "a.zip", File: &corpus.Mem{B: b}, Head: b[:min(len(b), 256)]}
	return model.Open(t.Context(), from, model.Cozip, OpenZIP)
}

// TestIndex promises that an archive with a wrong header, index or checksum is refused where it is opened, by its kind.
func TestIndex(t *testing.T) {
	whole := fixture(t, "scenes.zip")
	n := int(binary.LittleEndian.Uint32(whole[18:]))
	names := 51 + 11 + 2*5 // of five entries: COLLECTION.json and four tables
	numbers := 51 + n - 5*16
	put := func(at int, v any) func(b []byte) {
		return func(b []byte) {
			if _, err := binary.Encode(b[at:], binary.LittleEndian, v); err != nil {
				t.Fatal(err)
			}
		}
	}
	for name, c := range map[string]struct {
		change func(b []byte)
		kind   fault.Kind
		text   string
	}{
		"as it is":         {func([]byte) {}, 0, ""},
		"encrypted":        {put(6, uint16(1)), fault.Corrupt, "flags"},
		"deflated":         {put(8, uint16(8)), fault.Corrupt, "method 8"},
		"other extra":      {put(39, uint16(1)), fault.Corrupt, "extra field"},
		"sizes differ":     {put(22, uint32(n+1)), fault.Corrupt, "sizes"},
		"a large index":    {put(18, [2]uint32{1 << 31, 1 << 31}), fault.Corrupt, "bytes"},
		"other magic":      {put(51, uint8('c')), fault.Corrupt, "CZIP"},
		"version 2":        {put(55, uint16(2)), fault.Unsupported, "version 2: version 1 is read"},
		"profile 7":        {put(57, uint8(7)), fault.Unsupported, "profile 7"},
		"many entries":     {put(58, uint32(1<<31)), fault.Corrupt, "do not fit"},
		"one entry less":   {put(58, uint32(4)), fault.Corrupt, "do not fill"},
		"a long name":      {put(62, uint16(1<<15)), fault.Corrupt, "do not fill"},
		"a name not ASCII": {put(names, uint8(200)), fault.Corrupt, "has the name"},
		"far offset":       {put(numbers, uint64(1<<63)), fault.Corrupt, "bytes at"},
		"overflow":         {put(numbers+40, uint64(1<<64-1)), fault.Corrupt, "bytes at"},
		"no bytes":         {put(numbers+40, uint64(0)), fault.Corrupt, "bytes at"},
		"in the header":    {put(numbers, uint64(7)), fault.Corrupt, "bytes at"},
	} {
		t.Run(name, func(t *testing.T) {
			b := append([]byte(nil), whole...)
			c.change(b)
			o, err := open(t, seal(b, n))
			if err == nil {
				err = o.Close()
			}
			if fault.KindOf(err) != c.kind || err != nil && !strings.Contains(err.Error(), c.text) {
				t.Errorf("got %v, want kind %v with %q", err, c.kind, c.text)
			}
		})
	}
	for _, at := range []int{43, names + 3, len(whole) - 40, len(whole) - 32<<10} { // without a new checksum
		b := append([]byte(nil), whole...)
		b[at] ^= 4
		if _, err := open(t, b); fault.KindOf(err) != fault.Corrupt || !strings.Contains(err.Error(), "checksum") {
			t.Errorf("byte %d changed: got %v, want a wrong checksum", at, err)
		}
	}
	for _, size := range []int{0, 30, 60, 32818, len(whole) - 1} {
		if _, err := open(t, whole[:size]); fault.KindOf(err) != fault.Corrupt {
			t.Errorf("the first %d bytes: got %v, want corrupt", size, err)
		}
	}
}

// TestStructure promises which paths taco:structure may have, and the levels that they make.
func TestStructure(t *testing.T) {
	for _, c := range []struct {
		paths  []string
		levels string // "" for those that are refused
	}{
		{[]string{"a"}, "sample children"},
		{[]string{"s1/asc/vv.bin", "root.json", "s1/dsc/vv.bin", "s2/b.bin", "s1/meta.txt"},
			"sample children children/s1 children/s2 children/s1/asc children/s1/dsc"},
		{[]string{"img*[1,12].tif", "aux/mask*[2, 03].bin", "aux/part*[1,2]"}, "sample children children/aux"},
		{[]string{"a b/c-d (1)+=,;'@#$%^&~`!.bin"}, "sample children children/a b"},
		{[]string{"a", "A2", "a/"}, ""},
		{nil, ""}, {[]string{""}, ""}, {[]string{"a", "a"}, ""}, {[]string{"a", "A"}, ""}, {[]string{"a", "a/b"}, ""},
		{[]string{"../a"}, ""}, {[]string{"/a"}, ""}, {[]string{"a\\b"}, ""}, {[]string{"a//b"}, ""},
		{[]string{"a__b"}, ""}, {[]string{"a."}, ""}, {[]string{"a /b"}, ""}, {[]string{"é"}, ""},
		{[]string{"a\n"}, ""},
		{[]string{"m*[0,3]"}, ""}, {[]string{"m*[3,1]"}, ""}, {[]string{"*[1,3]"}, ""}, {[]string{"m*[1,3"}, ""},
		{[]string{"m*[1,99999999999999999999999]"}, ""}, {[]string{"m*[1,3]/a"}, ""},
		{[]string{"m*[1,3].b", "m2.b"}, ""}, {[]string{"m*[1,3].b", "m3.b"}, "sample children"},
		{[]string{"m*[1,3].b", "m*[1,3].c"}, ""}, {[]string{"m*[1,30].b", "m1*[1,3].b"}, ""},
	} {
		s, err := NewLayout(c.paths)
		if c.levels == "" {
			if fault.KindOf(err) != fault.Corrupt {
				t.Errorf("%q: got %v, want corrupt", c.paths, err)
			}
		} else if err != nil || strings.Join(s.Levels, " ") != c.levels {
			t.Errorf("%q: got %v %v, want the levels %s", c.paths, s, err, c.levels)
		}
	}
}

// TestLargeStructures promises that a structure of many paths, levels or files costs no more than its text.
func TestLargeStructures(t *testing.T) {
	many := func(n int, path string) (paths []string) {
		for i := range n {
			paths = append(paths, fmt.Sprintf(path, i))
		}
		return paths
	}
	for name, c := range map[string]struct {
		paths []string
		kind  fault.Kind
	}{
		"paths":     {many(maxItems+1, "f%d"), fault.Limit},
		"levels":    {many(maxLevels, "d%d/f"), fault.Limit},
		"parts":     {[]string{strings.Repeat("d/", maxParts) + "f"}, fault.Limit},
		"sequences": {many(maxItems, "s%dx*[1,9]"), 0},
		"files":     {[]string{"s*[999999999,999999999]"}, 0},
	} {
		s, err := NewLayout(c.paths)
		if fault.KindOf(err) != c.kind {
			t.Errorf("%s: got %v, want kind %v", name, err, c.kind)
		}
		if err == nil {
			if n := len((&reader{coll: &collection{structure: s}}).filePaths()); n > maxItems {
				t.Errorf("%s: got %d files, want at most %d", name, n, maxItems)
			}
		}
	}
}

// TestTypes promises the types that taco:metadata may name, in the words of pyarrow.
func TestTypes(t *testing.T) {
	for text, want := range map[string]string{
		"int8": "int8", "float16": "halffloat", "double": "double", "date32": "date32[day]",
		"date64":             "date64[ms]",
		"large_string":       "large_string",
		"timestamp[us, UTC]": "timestamp[us, tz=UTC]", "timestamp[ms]": "timestamp[ms]", "duration[s]": "duration[s]",
		"decimal128(38, 9)": "decimal128(38, 9)", "fixed_size_binary[4]": "fixed_size_binary[4]",
		"list<double?>": "list<double>", "fixed_size_list<double, 3>": "fixed_size_list<double, 3>",
		"map<string, list<int64?>?>":                    "map<string, list<int64>>",
		"struct<x: int64, y: string?>":                  "struct<x: int64, y: string>",
		"struct<x: struct<a: map<string, int8>>, y: b>": "",
		"": "", "int": "", "list": "", "list<>": "", "list<int8": "", "list<int8, int8>": "", "timestamp[y]": "",
		"decimal128(a, 9)": "", "fixed_size_list<double>": "", "map<string>": "", "int8>": "", "struct<x int8>": "",
		strings.Repeat("list<", 100) + "int8" + strings.Repeat(">", 100): "",
	} {
		if got := typeName(text); got != want {
			t.Errorf("%.80q: got %q, want %q", text, got, want)
		}
	}
}

// readAll reads all that a container says, and verifies it. Errors have kinds, and places lie in the archive.
func readAll(t *testing.T, size int64, c *model.Container) {
	t.Helper()
	kinded := func(err error) bool {
		if err != nil && fault.KindOf(err) == 0 {
			t.Fatalf("without a kind: %v", err)
		}
		return err == nil
	}
	for k := range c.Levels() {
		tab, err := c.Table(t.Context(), k)
		if !kinded(err) {
			continue
		}
		parents, err := c.Parents(t.Context(), k)
		if kinded(err) && k > 0 && len(parents) != tab.Len() {
			t.Fatalf("%d parents of %d rows", len(parents), tab.Len())
		}
		for row := range min(tab.Len(), 100) {
			if e, err := c.Entry(t.Context(), k, row); kinded(err) && !e.Folder &&
				(e.Offset < 0 || e.Size < 0 || e.Offset > size || e.Size > size-e.Offset) {
				t.Fatalf("%s has %d bytes at %d of %d", e.ID, e.Size, e.Offset, size)
			}
			_, err := c.Children(t.Context(), k, row)
			kinded(err)
		}
	}
	wide, err := c.Named.Wide(t.Context(), 0, func(uri string) string { return uri })
	if kinded(err) {
		for i := range wide.Columns() {
			_, err := wide.At(t.Context(), i)
			kinded(err)
		}
	}
	kinded(c.Verify(t.Context(), &model.Report{}))
}

// TestDamaged promises that archives with a few other bytes, whose checksum is made right, give errors with a kind and
// places in the archive.
func TestDamaged(t *testing.T) {
	n := 400
	if testing.Short() {
		n = 60
	}
	for k, name := range []string{"scenes.zip", "flat.zip", "parts/p0.zip"} {
		whole := fixture(t, name)
		rng := rand.New(rand.NewPCG(uint64(k), 1))
		index := int(binary.LittleEndian.Uint32(whole[18:]))
		for range n {
			b := append([]byte(nil), whole...)
			for range 1 + rng.IntN(4) {
				at := 51 + rng.IntN(index) // in the index, or in the tables and COLLECTION.json at the end
				if rng.IntN(3) > 0 {
					at = len(b) - 1 - rng.IntN(20_000)
				}
				b[at] = [...]byte{b[at] ^ 1<<rng.IntN(8), 0, 0xFF, byte(rng.Uint32())}[rng.IntN(4)]
			}
			c, err := open(t, seal(b, index))
			if err != nil {
				if fault.KindOf(err) == 0 {
					t.Fatalf("without a kind: %v", err)
				}
				continue
			}
			readAll(t, int64(len(b)), c)
			if err := c.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}

// FuzzIndex parses any index: the places lie in the archive.
func FuzzIndex(f *testing.F) {
	for _, name := range []string{"scenes.zip", "flat.zip"} {
		b := fixture(f, name)
		f.Add(b[51:51+binary.LittleEndian.Uint32(b[18:])], int64(len(b)))
	}
	f.Fuzz(func(t *testing.T, b []byte, total int64) {
		x, err := parseIndex(b, max(total, 0))
		if err != nil {
			if fault.KindOf(err) == 0 {
				t.Fatalf("without a kind: %v", err)
			}
			return
		}
		for name, s := range x.spans {
			if s.Off < x.end || s.Size < 1 || s.Off > total || s.Size > total-s.Off {
				t.Fatalf("%q has %d bytes at %d of %d", name, s.Size, s.Off, total)
			}
		}
	})
}

// FuzzCollection parses any document: what is accepted has a level for every table that it declares.
func FuzzCollection(f *testing.F) {
	f.Add(fixture(f, "scenes/COLLECTION.json"))
	f.Add(fixture(f, "parts/.tacocat/COLLECTION.json"))
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := parseCollection(b)
		if err != nil {
			if fault.KindOf(err) == 0 {
				t.Fatalf("without a kind: %v", err)
			}
			return
		}
		if !json.Valid(c.raw) || len(c.metadata) != len(c.structure.Levels) {
			t.Fatalf("%d levels in taco:metadata, %d in taco:structure", len(c.metadata), len(c.structure.Levels))
		}
	})
}
