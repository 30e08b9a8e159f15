package tortilla

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/store"
	"github.com/chaski-eo/chaski/store/taco/internal/model"
	"github.com/chaski-eo/chaski/tools/testkit/corpus"
	"github.com/chaski-eo/chaski/tools/testkit/race"
	"github.com/chaski-eo/chaski/tools/testkit/testfile"
)

// TestHeader: what a header may say.
func TestHeader(t *testing.T) {
	const size = 1000
	for name, c := range map[string]struct {
		b    []byte
		kind fault.Kind
	}{
		"Tortilla":                   {head("#y", 200, 800, 1, 0, 0), 0},
		"TACO":                       {head("WX", 300, 100, 1, 900, 100), 0},
		"a Tortilla has no CO":       {head("#y", 200, 800, 1, 7, math.MaxUint64), 0},
		"a part":                     {head("#y", 200, 800, 4, 0, 0), 0},
		"magic":                      {head("#z", 200, 800, 1, 0, 0), fault.Corrupt},
		"nothing":                    {nil, fault.Corrupt},
		"cut":                        {head("#y", 200, 800, 1, 0, 0)[:199], fault.Corrupt},
		"no footer":                  {head("#y", 200, 0, 1, 0, 0), fault.Corrupt},
		"footer in the header":       {head("#y", 199, 100, 1, 0, 0), fault.Corrupt},
		"footer past the end":        {head("#y", 200, 801, 1, 0, 0), fault.Corrupt},
		"footer wraps":               {head("#y", math.MaxUint64-10, 100, 1, 0, 0), fault.Corrupt},
		"footer of a negative size":  {head("#y", 200, 1<<63, 1, 0, 0), fault.Corrupt},
		"footer of a huge size":      {head("#y", 200, math.MaxInt64, 1, 0, 0), fault.Corrupt},
		"no collection":              {head("WX", 200, 100, 1, 0, 0), fault.Corrupt},
		"collection past the end":    {head("WX", 200, 100, 1, 1001, 1), fault.Corrupt},
		"collection of a huge size":  {head("WX", 200, 100, 1, 900, math.MaxUint64), fault.Corrupt},
		"collection at the very end": {head("WX", 200, 100, 1, 1000, 0), fault.Corrupt},
	} {
		h, err := ParseHeader(c.b, size)
		if fault.KindOf(err) != c.kind {
			t.Errorf("%s: %v", name, err)
		}
		if err == nil && (!h.Footer.In(HeaderSize, size) || h.TACO && !h.Collection.In(HeaderSize, size)) {
			t.Errorf("%s: %+v", name, h)
		}
	}
}

// TestPointer: the forms of a pointer that the specification allows, and what is none.
func TestPointer(t *testing.T) {
	for text, want := range map[string]span{
		"OFFSETLENGTH(12, 345)": {Off: 12, Size: 345}, "OFFSETLENGTH(12,345)": {Off: 12, Size: 345},
		`"OFFSETLENGTH(12, 345)"`:              {Off: 12, Size: 345},
		" OFFSETLENGTH( 12 ,  345 ) ":          {Off: 12, Size: 345},
		"OFFSETLENGTH(0, 9223372036854775807)": {Off: 0, Size: math.MaxInt64},
		"NULL":                                 {}, `"NULL"`: {}, "null": {}, " NULL\n": {},
	} {
		got, more, err := parsePointer(text)
		if err != nil || got != want || more != (want != span{}) {
			t.Errorf("%q: %v, %v, %v", text, got, more, err)
		}
	}
	for _, text := range []string{"", `""`, "OFFSETLENGTH", "OFFSETLENGTH()", "OFFSETLENGTH(1)",
		"OFFSETLENGTH(1,2,3)", "OFFSETLENGTH(-1, 2)",
		"OFFSETLENGTH(1, -2)", "OFFSETLENGTH(9223372036854775808, 1)", "OFFSETLENGTH(1e3, 1)",
		"OFFSETLENGTH(0x10, 1)", "OFFSETLENGTH(1, 2) NULL",
		`"OFFSETLENGTH(1, 2)`, `{"pointer":"NULL"}`, "offsetlength(1, 2)", "OFFSETLENGTH(+1, 2)",
		strings.Repeat("(", 1<<20)} {
		if got, _, err := parsePointer(text); fault.KindOf(err) != fault.Corrupt {
			t.Errorf("%.30q: %v, %v", text, got, err)
		}
	}
}

func openBytes(ctx context.Context, b []byte) (*model.Container, *corpus.Mem, error) {
	r := &corpus.Mem{B: b}
	from := model.Source{URI: "x", File: r, Head: b[:min(len(b), 256)]}
	c, err := model.Open(ctx, from, model.TortillaFile, Open)
	return c, r, err
}

// paths returns the paths of all samples with bytes and their places, depth first.
func paths(ctx context.Context, c *model.Container) (list []string, err error) {
	var walk func(level int, rows []int32, above string) error
	walk = func(level int, rows []int32, above string) error {
		for _, row := range rows {
			e, err := c.Entry(ctx, level, int(row))
			if err != nil {
				return err
			}
			path := above + e.ID
			if !e.Folder {
				list = append(list, fmt.Sprintf("%s %d+%d", path, e.Offset, e.Size))
				continue
			}
			kids, err := c.Children(ctx, level, int(row))
			if err != nil {
				return err
			}
			if err := walk(level+1, kids, path+"/"); err != nil {
				return err
			}
		}
		return nil
	}
	top, err := c.Table(ctx, 0)
	if err != nil {
		return nil, err
	}
	rows := make([]int32, top.Len())
	for i := range rows {
		rows[i] = int32(i)
	}
	return list, walk(0, rows, "")
}

// TestUnevenDepth: where only later samples are nested deeply, every one is found all the same, before
// and after all footers were read.
func TestUnevenDepth(t *testing.T) {
	b := buildTortilla(t, []sample{
		blobOf("a", 3), folder("b", blobOf("x", 1)),
		folder("c", folder("d", folder("e", blobOf("y", 2)), blobOf("z", 0)), blobOf("x", 5)),
		folder("f", []sample{}...),
	}[:3])
	c, _, err := openBytes(t.Context(), b)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if c.Levels() != 2 {
		t.Errorf("%d levels by the first ones, want 2", c.Levels())
	}
	before, err := paths(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Deepen(t.Context()); err != nil || c.Levels() != 4 {
		t.Errorf("%d levels, %v", c.Levels(), err)
	}
	after, err := paths(t.Context(), c)
	if err != nil || !slices.Equal(before, after) || len(after) != 5 {
		t.Errorf("%q, then %q, %v", before, after, err)
	}
	for _, p := range after {
		var path string
		var off, size int
		if _, err := fmt.Sscanf(p, "%s %d+%d", &path, &off, &size); err != nil {
			t.Fatal(err)
		}
		if strings.Trim(string(b[off:off+size]), path[len(path)-1:]) != "" {
			t.Errorf("%s holds %q", p, b[off:off+size])
		}
	}
	if err := c.Verify(t.Context(), &model.Report{}); err != nil {
		t.Error(err)
	}
}

// TestNestedRows: a row below level 0 has its parent, and a row that does not exist is not found.
func TestNestedRows(t *testing.T) {
	b := buildTortilla(t, []sample{folder("a", blobOf("x", 1), blobOf("y", 2)), folder("b", blobOf("x", 3)),
		folder("n", []sample{}...), folder("c", blobOf("x", 4), blobOf("y", 5))})
	c, _, err := openBytes(t.Context(), b)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	kids, err := c.Children(t.Context(), 0, 3)
	if err != nil || !slices.Equal(kids, []int32{3, 4}) {
		t.Fatal(kids, err)
	}
	e, err := c.Entry(t.Context(), 1, int(kids[1]))
	if err != nil || e.ID != "y" || e.Size != 5 {
		t.Fatal(e, err)
	}
	parents, err := c.Parents(t.Context(), 1)
	if err != nil || !slices.Equal(parents, []int32{0, 0, 1, 3, 3}) {
		t.Error(parents, err)
	}
	for _, row := range []int{-1, 5, math.MaxInt32} {
		if _, err := c.Entry(t.Context(), 1, row); fault.KindOf(err) != fault.NotFound {
			t.Errorf("row %d: %v", row, err)
		}
	}
}

// tree has equal ids below different parents at every level.
func tree() []sample {
	return []sample{
		folder("p", folder("t0", blobOf("img", 10), blobOf("lab", 4)),
			folder("t1", blobOf("img", 20), blobOf("lab", 6))),
		folder("q", folder("t0", blobOf("img", 30), blobOf("lab", 8)),
			folder("t1", blobOf("img", 40), blobOf("lab", 2))),
	}
}

// TestRoots: rows find their parents, and chunks their samples, by either convention of tortilla:root,
// whatever form the pointers have, even where ids repeat below one sample of level 0.
func TestRoots(t *testing.T) {
	bare := func(off, size int) string { return fmt.Sprintf("OFFSETLENGTH(%d,%d)", off, size) }
	quoted := func(off, size int) string { return fmt.Sprintf(`"OFFSETLENGTH(%d, %d)"`, off, size) }
	for i, form := range []func(off, size int) string{nil, bare, quoted} {
		for _, byTop := range []bool{false, true} {
			levels, data := levelsOf(tree(), byTop)
			b := buildStream(t, append(slices.Clone(levels), chunksOf(levels)), data, form)
			c, _, err := openBytes(t.Context(), b)
			if err != nil {
				t.Fatal(i, byTop, err)
			}
			defer c.Close()
			got, err := paths(t.Context(), c)
			if err != nil {
				t.Fatal(i, byTop, err)
			}
			want := []string{"p/t0/img 208+10", "p/t0/lab 218+4", "p/t1/img 230+20", "p/t1/lab 250+6",
				"q/t0/img 272+30", "q/t0/lab 302+8", "q/t1/img 318+40", "q/t1/lab 358+2"}
			if !slices.Equal(got, want) {
				t.Errorf("form %d, byTop %t: %q", i, byTop, got)
			}
			s := c.Reader.(*stream)
			for row, size := range []int64{10, 4, 20, 6, 30, 8, 40, 2} {
				for k := range 2 {
					e, err := s.chunkOf(t.Context(), 2, row, fmt.Sprint(k))
					if err != nil || e.Size != size/2 || e.Number != k || e.Of.Row != row {
						t.Errorf("byTop %t row %d chunk %d: %+v, %v", byTop, row, k, e, err)
					}
				}
				if _, err := s.chunkOf(t.Context(), 2, row, "2"); fault.KindOf(err) != fault.NotFound {
					t.Error(err)
				}
			}
			if err := c.Verify(t.Context(), &model.Report{}); err != nil {
				t.Errorf("form %d, byTop %t: %v", i, byTop, err)
			}
		}
	}
}

// TestBadStreams: chains and rows that contradict themselves.
func TestBadStreams(t *testing.T) {
	good, data := levelsOf(tree(), false)
	chunks := chunksOf(good)
	for name, c := range map[string]struct {
		change func(levels [][]rootedRow, chunks []rootedRow)
		form   func(off, size int) string
		kind   fault.Kind
	}{
		"nothing": {func([][]rootedRow, []rootedRow) {}, nil, 0},
		"no parent": {func(l [][]rootedRow, _ []rootedRow) {
			l[1][0].Root = "none"
		}, nil, fault.Corrupt},
		"a parent without samples": {func(l [][]rootedRow, _ []rootedRow) {
			l[0][0].Format = "BYTES"
		}, nil, fault.Corrupt},
		"equal ids": {func(l [][]rootedRow, _ []rootedRow) {
			l[2][1].ID = "img"
		}, nil, fault.Corrupt},
		"an empty id": {func(l [][]rootedRow, _ []rootedRow) { l[2][1].ID = "" }, nil, fault.Corrupt},
		"samples below the last": {func(l [][]rootedRow, _ []rootedRow) {
			l[2][1].Format = nested
		}, nil, fault.Corrupt},
		"bytes past the end": {func(l [][]rootedRow, _ []rootedRow) {
			l[2][1].Length = 1 << 40
		}, nil, fault.Corrupt},
		"bytes before the start": {func(l [][]rootedRow, _ []rootedRow) {
			l[2][1].Offset = 100
		}, nil, fault.Corrupt},
		"bytes that wrap": {func(l [][]rootedRow, _ []rootedRow) {
			l[2][1].Offset, l[2][1].Length = math.MaxInt64, math.MaxInt64
		}, nil, fault.Corrupt},
		"a chunk of nothing": {func(_ [][]rootedRow, c []rootedRow) {
			c[3].ID = "none::1"
		}, nil, fault.Corrupt},
		"a chunk without number":     {func(_ [][]rootedRow, c []rootedRow) { c[3].ID = "img" }, nil, fault.Corrupt},
		"a chunk outside of its own": {func(_ [][]rootedRow, c []rootedRow) { c[0].Offset = 300 }, nil, fault.Corrupt},
		"a chunk twice":              {func(_ [][]rootedRow, c []rootedRow) { c[1] = c[0] }, nil, fault.Corrupt},
		"a pointer into the header": {func([][]rootedRow, []rootedRow) {}, func(_, size int) string {
			return fmt.Sprintf("OFFSETLENGTH(0, %d)", size)
		}, fault.Corrupt},
		"a pointer of no size": {func([][]rootedRow, []rootedRow) {}, func(off, _ int) string {
			return fmt.Sprintf("OFFSETLENGTH(%d, 0)", off)
		}, fault.Corrupt},
		"a pointer to data": {func([][]rootedRow, []rootedRow) {}, func(_, size int) string {
			return fmt.Sprintf("OFFSETLENGTH(200, %d)", min(size, 100))
		}, fault.Corrupt},
		"a pointer that wraps": {func([][]rootedRow, []rootedRow) {}, func(int, int) string {
			return "OFFSETLENGTH(9223372036854775807, 9223372036854775807)"
		}, fault.Corrupt},
		"a pointer that says nothing": {func([][]rootedRow, []rootedRow) {}, func(int, int) string {
			return ""
		}, fault.Corrupt}, // a plain TACO, whose nested samples are no Tortillas
	} {
		levels := make([][]rootedRow, len(good))
		for k := range good {
			levels[k] = slices.Clone(good[k])
		}
		last := slices.Clone(chunks)
		c.change(levels, last)
		container, _, err := openBytes(t.Context(), buildStream(t, append(levels, last), data, c.form))
		if err == nil {
			err = container.Verify(t.Context(), &model.Report{})
			if cerr := container.Close(); cerr != nil {
				t.Error(cerr)
			}
		}
		if fault.KindOf(err) != c.kind {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestEndlessChains: chains that come back to a table, and those of more tables than any tree has levels.
func TestEndlessChains(t *testing.T) {
	levels, data := levelsOf(tree(), false)
	for back := range 3 {
		// Every pointer has the same length, so that it can be changed in the file.
		form := func(off, size int) string { return fmt.Sprintf("OFFSETLENGTH(%08d, %08d)", off, size) }
		b := buildStream(t, append(slices.Clone(levels), chunksOf(levels)), data, form)
		c, _, err := openBytes(t.Context(), b)
		if err != nil {
			t.Fatal(err)
		}
		chain := c.Reader.(*stream).chain
		for from := back; from < 3; from++ {
			bad := []byte(strings.Replace(string(b), form(int(chain[from+1].Off), int(chain[from+1].Size)),
				form(int(chain[back].Off), int(chain[back].Size)), 1))
			if _, _, err := openBytes(t.Context(), bad); fault.KindOf(err) != fault.Corrupt ||
				!strings.Contains(err.Error(), "overlap") {
				t.Errorf("table %d points to %d: %v", from, back, err)
			}
		}
	}
	many := slices.Repeat([][]rootedRow{{}}, maxTables+1)
	if _, _, err := openBytes(t.Context(), buildStream(t, many, nil, nil)); fault.KindOf(err) != fault.Limit {
		t.Errorf("%d tables: %v", len(many), err)
	}
}

// TestBombs promises that few bytes never claim many rows, levels or paths.
func TestBombs(t *testing.T) {
	race.SkipCovered(t)
	deep := []sample{blobOf("x", 1)}
	for range maxDepth {
		deep = []sample{folder("d", deep...)}
	}
	inner := buildTortilla(t, []sample{blobOf("x", 1)})
	shared := append(head(MagicTortilla, 0, 0, 1, 0, 0), inner...)
	rows := writeTable(t, []row{{"a", nested, HeaderSize, int64(len(inner))},
		{"b", nested, HeaderSize, int64(len(inner))}}, "")
	copy(shared, head(MagicTortilla, uint64(len(shared)), uint64(len(rows)), 1, 0, 0))
	shared = append(shared, rows...)
	same := writeTable(t, make([]smallRow, 3<<20), "")
	flat := append(head(MagicTortilla, HeaderSize, uint64(len(same)), 1, 0, 0), same...)
	// One long id at level 0 is a part of the path of each sample below.
	long := strings.Repeat("i", 1<<15)
	levels := [][]rootedRow{{{row{long, nested, 200, 100}, long}}, nil, {}}
	for i := range 3000 {
		levels[1] = append(levels[1], rootedRow{row{fmt.Sprint(i), nested, 200, 100}, long})
	}
	for name, c := range map[string]struct {
		b    []byte
		kind fault.Kind
	}{
		"levels":       {buildTortilla(t, deep), fault.Limit},
		"shared bytes": {shared, fault.Corrupt},
		"rows":         {flat, fault.Limit},
		"no bomb":      {inner, 0},
		"paths":        {buildStream(t, append(levels, []rootedRow{}), make([]byte, 100), nil), fault.Limit},
		"a deep JSON": {withCollection(t, strings.Repeat(`{"a":`, 20000)+"1"+strings.Repeat("}", 20000)),
			fault.Limit},
		"JSON in UTF-16":   {withCollection(t, "\xff\xfe{\x00}\x00"), fault.Corrupt},
		"JSON that is cut": {withCollection(t, `{"id":`), fault.Corrupt},
		"an array":         {withCollection(t, `[{}]`), fault.Corrupt},
	} {
		container, _, err := openBytes(t.Context(), c.b)
		if err == nil {
			err = container.Verify(t.Context(), &model.Report{})
		}
		if fault.KindOf(err) != c.kind {
			t.Errorf("%s (%d bytes): %v", name, len(c.b), err)
		}
	}
}

// withCollection is a TACO with a document about it.
func withCollection(t *testing.T, doc string) []byte {
	b := buildTortilla(t, []sample{blobOf("x", 1)})
	h, err := ParseHeader(b, int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	copy(b, head(MagicTACO, uint64(h.Footer.Off), uint64(h.Footer.Size), 1, uint64(len(b)), uint64(len(doc))))
	return append(b, doc...)
}

// walk verifies a container and reads everything of many rows. Every entry must be inside its file.
func walk(t testing.TB, b []byte) error {
	ctx := context.Background()
	c, _, err := openBytes(ctx, b)
	if err != nil {
		return err
	}
	check := func(e store.Entry) {
		if !(span{Off: e.Offset, Size: e.Size}).In(HeaderSize, int64(len(b))) {
			t.Errorf("%q: %d bytes at %d of %d", e.ID, e.Size, e.Offset, len(b))
		}
	}
	_, perr := paths(ctx, c)
	errs := []error{perr, c.Verify(ctx, &model.Report{})}
	for k := 0; k < c.Levels(); k++ {
		tab, err := c.Table(ctx, k)
		if err != nil {
			return errors.Join(append(errs, err)...)
		}
		if parents, err := c.Parents(ctx, k); err == nil && k > 0 && len(parents) != tab.Len() {
			t.Errorf("level %d: %d parents of %d rows", k, len(parents), tab.Len())
		}
		for row := range min(tab.Len(), 200) {
			e, err := c.Entry(ctx, k, row)
			errs = append(errs, err)
			if err != nil {
				continue
			}
			check(e)
			_, err = c.Children(ctx, k, row)
			errs = append(errs, err)
			if s := c.Chunks; s != nil {
				if e, err := s.Of(ctx, k, row, "1"); err == nil {
					check(e)
				}
				if e, err := s.Named(ctx, e.ID, e.ID+"::0"); err == nil {
					check(e)
				}
			}
		}
	}
	return errors.Join(append(errs, c.Close())...)
}

// seeds returns real containers and built ones.
func seeds(t testing.TB) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	root := filepath.Join(corpus.Testdata(t), "containers")
	for _, dir := range []string{"tortilla", "taco-v1", "bad"} {
		for _, ext := range []string{"*.taco", "*.tortilla"} {
			names, err := filepath.Glob(filepath.Join(root, dir, ext))
			if err != nil {
				t.Fatal(err)
			}
			for _, name := range names {
				b := testfile.Read(t, name)
				files[dir+"/"+filepath.Base(name)] = b
			}
		}
	}
	if len(files) < 10 {
		t.Fatalf("%d files", len(files))
	}
	for _, c := range corpus.Containers(t) { // more of them where the corpus is
		for _, name := range c.At() {
			ext := filepath.Ext(name)
			if st, err := os.Stat(name); err != nil || ext != ".taco" && ext != ".tortilla" || st.Size() > 100000 {
				continue
			}
			b := testfile.Read(t, name)
			files[c.Path[0]] = b
		}
	}
	for _, byTop := range []bool{false, true} {
		levels, data := levelsOf(tree(), byTop)
		files[fmt.Sprint("stream", byTop)] = buildStream(t, append(slices.Clone(levels), chunksOf(levels)), data, nil)
	}
	files["nested"] = buildTortilla(t, tree())
	return files
}

// TestChangedBytes: every fault of a container with some bytes changed has a kind.
func TestChangedBytes(t *testing.T) {
	race.SkipCovered(t)
	all := seeds(t)
	for _, name := range []string{"tortilla/compiled_bytes.tortilla", "taco-v1/bytes.taco", "nested", "streamtrue"} {
		good := all[name]
		if err := walk(t, good); err != nil {
			t.Fatal(name, err)
		}
		rng := rand.New(rand.NewPCG(1, uint64(len(good))))
		for range 300 {
			b := slices.Clone(good)
			for range 1 + rng.IntN(3) {
				at := rng.IntN(len(b))
				if rng.IntN(2) == 0 {
					at = rng.IntN(50) // the header
				}
				b[at] ^= byte(1 << rng.IntN(8))
			}
			if rng.IntN(4) == 0 {
				b = b[:rng.IntN(len(b))]
			}
			if err := walk(t, b); err != nil && fault.KindOf(err) == 0 {
				t.Fatalf("%s: %v", name, err)
			}
		}
	}
}

// FuzzHeader: a header that is accepted names places in the file.
func FuzzHeader(f *testing.F) {
	for _, b := range seeds(f) {
		f.Add(b[:min(len(b), 256)], int64(len(b)))
	}
	f.Fuzz(func(t *testing.T, b []byte, size int64) {
		h, err := ParseHeader(b, size)
		switch {
		case err != nil && fault.KindOf(err) != fault.Corrupt:
			t.Fatal(err)
		case err == nil && (!h.Footer.In(HeaderSize, size) || h.TACO && !h.Collection.In(HeaderSize, size)):
			t.Fatalf("%+v of %d bytes", h, size)
		}
	})
}

// FuzzPointer: a pointer that is accepted is one that can be written again and read as the same.
func FuzzPointer(f *testing.F) {
	for _, s := range []string{"OFFSETLENGTH(12, 345)", "OFFSETLENGTH(12,345)", `"OFFSETLENGTH(12, 345)"`, "NULL",
		`"NULL"`, "OFFSETLENGTH(-1, 2)", `"\u004eULL"`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, more, err := parsePointer(text)
		if err != nil {
			if fault.KindOf(err) != fault.Corrupt {
				t.Fatal(err)
			}
			return
		}
		if s.Off < 0 || s.Size < 0 || !more && s != (span{}) {
			t.Fatalf("%q: %v, %v", text, s, more)
		}
		if !more {
			return
		}
		if again, _, err := parsePointer(fmt.Sprintf("OFFSETLENGTH(%d, %d)", s.Off, s.Size)); err != nil || again != s {
			t.Fatalf("%q: %v, again %v, %v", text, s, again, err)
		}
	})
}

// FuzzChain: whatever the pointers say, the chain ends, and its tables lie in the file, apart from each
// other.
func FuzzChain(f *testing.F) {
	levels, data := levelsOf(tree(), false)
	tables := append(levels, chunksOf(levels))
	for i := range 3 {
		p := []string{"", "", ""} // as they are built
		p[i] = "OFFSETLENGTH(500, 900)"
		f.Add(p[0], p[1], p[2])
		p[i] = "NULL"
		f.Add(p[0], p[1], p[2])
	}
	f.Add("", "", "")
	f.Fuzz(func(t *testing.T, a, b, c string) {
		texts := []string{c, b, a} // the last table is built first
		file := buildStream(t, tables, data, func(off, size int) string {
			text := ""
			if len(texts) > 0 {
				text, texts = texts[0], texts[1:]
			}
			if text == "" {
				text = fmt.Sprintf("OFFSETLENGTH(%d, %d)", off, size)
			}
			return text
		})
		container, _, err := openBytes(t.Context(), file)
		if err != nil {
			if fault.KindOf(err) == 0 {
				t.Fatal(err)
			}
			return
		}
		defer container.Close()
		s, ok := container.Reader.(*stream)
		if !ok {
			t.Fatalf("a %T", container)
		}
		for i, at := range s.chain {
			for _, o := range s.chain[:i] {
				if at.Off < o.End() && o.Off < at.End() || !at.In(HeaderSize, int64(len(file))) {
					t.Fatalf("chain %v of %d bytes", s.chain, len(file))
				}
			}
		}
	})
}

// FuzzContainer: whatever header, footers and chain say, all of it is asked for without a panic, and no
// entry lies outside.
func FuzzContainer(f *testing.F) {
	for _, b := range seeds(f) {
		if len(b) < 40000 {
			f.Add(b)
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if err := walk(t, b); err != nil && fault.KindOf(err) == 0 {
			t.Fatal(err)
		}
	})
}
