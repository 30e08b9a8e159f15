package parquet

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/parquet-go/parquet-go"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/tools/testkit/corpus"
	"github.com/chaski-eo/chaski/tools/testkit/testfile"
)

// memory is a source.Reader over bytes.
type memory []byte

func (m memory) Size() int64  { return int64(len(m)) }
func (m memory) Close() error { return nil }
func (m memory) ReadAt(_ context.Context, p []byte, off int64) error {
	if off < 0 || off > int64(len(m)) || int64(len(p)) > int64(len(m))-off {
		return fault.At(fault.Corrupt, "byte range", off, "past the end")
	}
	copy(p, m[off:])
	return nil
}

// readColumn reads a whole column: "null", or its value printed.
func readColumn(t testing.TB, f *File, name string) []string {
	t.Helper()
	c := f.Column(name)
	if c < 0 {
		t.Fatal(f.NoColumn(name))
	}
	var out []string
	for v := range pagesOf(t, f, c) {
		for r := range v.Len() {
			out = append(out, show(&f.Columns[c], v, r))
		}
	}
	return out
}

// pagesOf yields the pages of a column at the top of the schema.
func pagesOf(t testing.TB, f *File, c int) iter.Seq[*Values] {
	return func(yield func(*Values) bool) {
		t.Helper()
		for g := range f.Groups {
			pages, err := f.Pages(t.Context(), g, c)
			if err != nil {
				t.Fatal(err)
			}
			dict, err := f.Dictionary(t.Context(), g, c, pages)
			if err != nil {
				t.Fatal(err)
			}
			for i := range pages.Pages {
				v, err := f.Read(t.Context(), g, c, pages, i, dict)
				if err != nil {
					t.Fatal(err)
				}
				if !yield(v) {
					return
				}
			}
		}
	}
}

func show(c *Column, v *Values, r int) string {
	if v.Null(r) {
		return "null"
	}
	switch c.Type {
	case ByteArray, FixedLenByteArray:
		return fmt.Sprintf("%q", v.Raw(r))
	case Float, Double:
		return fmt.Sprint(v.Float(r))
	}
	n, ok := v.Int(r)
	return fmt.Sprint(n, ok)
}

// arrowRow is row() of testdata/make.py, printed as show does.
func arrowRow(i int, column string) string {
	null := i%7 == 3
	quiet := func(null bool, s string) string {
		if null {
			return "null"
		}
		return s
	}
	switch column {
	case "path":
		return fmt.Sprintf("%q", fmt.Sprintf("images/%d/tile_%04d.tif", i/100, i))
	case "id":
		return fmt.Sprint(i*i-500*i, true)
	case "small":
		return fmt.Sprint(i*37%251-125, true)
	case "count":
		return quiet(null, fmt.Sprint(i*4_000_000, true))
	case "weight":
		return quiet(null, fmt.Sprint(float64(i)/8-3))
	case "ratio":
		return fmt.Sprint(float64(i) * 0.25)
	case "flag":
		n := 0
		if i%3 == 0 {
			n = 1
		}
		return quiet(i%5 == 0, fmt.Sprint(n, true))
	case "class":
		return quiet(null, fmt.Sprintf("%q", []string{"water", "forest", "", "città"}[i%4]))
	}
	b := make([]byte, i%40)
	for k := range b {
		b[k] = byte(i + k)
	}
	return quiet(i%2 == 1, fmt.Sprintf("%q", b))
}

func arrowFiles(t testing.TB) map[string][]byte {
	names, err := filepath.Glob("../../../store/catalog/testdata/*.parquet")
	if err != nil || len(names) < 6 {
		t.Fatalf("test data: %d files, %v", len(names), err)
	}
	files := map[string][]byte{}
	for _, n := range names {
		b := testfile.Read(t, n)
		files[filepath.Base(n)] = b
	}
	return files
}

// TestArrowFiles promises that files of parquet-cpp in all encodings, codecs and both page versions give the values
// that were written.
func TestArrowFiles(t *testing.T) {
	for name, b := range arrowFiles(t) {
		t.Run(name, func(t *testing.T) {
			f, err := Open(t.Context(), memory(b))
			if err != nil {
				t.Fatal(err)
			}
			if f.Rows != 1000 || len(f.Groups) != 4 || len(f.Columns) != 9 {
				t.Fatalf("%d rows, %d groups, %d columns", f.Rows, len(f.Groups), len(f.Columns))
			}
			for _, c := range f.Columns {
				got := readColumn(t, f, c.Name)
				if len(got) != 1000 {
					t.Fatalf("%s: %d values", c.Name, len(got))
				}
				for i, g := range got {
					if want := arrowRow(i, c.Name); g != want {
						t.Fatalf("%s row %d: %s, want %s", c.Name, i, g, want)
					}
				}
			}
		})
	}
}

// TestPagesByIndexAndByWalk promises the same pages with and without the offset index.
func TestPagesByIndexAndByWalk(t *testing.T) {
	seen := false
	for name, b := range arrowFiles(t) {
		f, err := Open(t.Context(), memory(b))
		if err != nil {
			t.Fatal(err)
		}
		for g := range f.Groups {
			for c := range f.Columns {
				byIndex, err := f.Pages(t.Context(), g, c)
				if err != nil {
					t.Fatal(err)
				}
				if f.Groups[g].chunks[c].indexOff == 0 {
					continue
				}
				seen = true
				f.Groups[g].chunks[c].indexOff = 0
				byWalk, err := f.Pages(t.Context(), g, c)
				if err != nil {
					t.Fatal(err)
				}
				if fmt.Sprint(byIndex) != fmt.Sprint(byWalk) {
					t.Fatalf("%s group %d column %d:\n%v\n%v", name, g, c, byIndex, byWalk)
				}
			}
		}
	}
	if !seen {
		t.Fatal("no file has an offset index")
	}
}

// TestUnmentionedDictionary finds a dictionary that the footer does not mention, with the offset index and without.
func TestUnmentionedDictionary(t *testing.T) {
	type rec struct {
		S string `parquet:"s,dict"`
	}
	var buf bytes.Buffer
	w := parquet.NewGenericWriter[rec](&buf, parquet.PageBufferSize(64))
	var want []string
	for i := range 500 {
		r := rec{S: fmt.Sprint("class ", i%9)}
		want = append(want, fmt.Sprintf("%q", r.S))
		if _, err := w.Write([]rec{r}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	for _, indexed := range []bool{true, false} {
		f, err := Open(t.Context(), memory(buf.Bytes()))
		if err != nil {
			t.Fatal(err)
		}
		c := &f.Groups[0].chunks[0]
		if c.dictOff == 0 || c.indexOff == 0 || c.start != c.dictOff {
			t.Fatalf("the file has another form: %+v", c)
		}
		c.dictOff, c.dataOff = 0, c.start
		if !indexed {
			c.indexOff = 0
		}
		if got := readColumn(t, f, "s"); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("index %v:\n%v\n%v", indexed, got, want)
		}
	}
}

type nested struct {
	Name  string   `parquet:"name,optional,delta"`
	Tags  []string `parquet:"tags,list"`
	Inner *struct {
		Deep *struct {
			N *int32 `parquet:"n,optional"`
		} `parquet:"deep,optional"`
		U uint64 `parquet:"u"`
	} `parquet:"inner,optional"`
	Big uint64 `parquet:"big"`
}

// TestNestedColumns promises that nested optional groups give nulls at every level, that Read refuses lists, and that
// columns are named by their paths.
func TestNestedColumns(t *testing.T) {
	var buf bytes.Buffer
	w := parquet.NewGenericWriter[nested](&buf, parquet.PageBufferSize(64))
	var want []string
	for i := range 500 {
		var r nested
		r.Big = uint64(i)
		s := "null"
		if i%2 == 0 {
			r.Inner = new(struct {
				Deep *struct {
					N *int32 `parquet:"n,optional"`
				} `parquet:"deep,optional"`
				U uint64 `parquet:"u"`
			})
			if i%4 == 0 {
				r.Inner.Deep = new(struct {
					N *int32 `parquet:"n,optional"`
				})
				if i%8 == 0 {
					n := int32(-i)
					r.Inner.Deep.N = &n
					s = fmt.Sprint(n, true)
				}
			}
		}
		want = append(want, s)
		if _, err := w.Write([]nested{r}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	f, err := Open(t.Context(), memory(buf.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	if got := readColumn(t, f, "inner.deep.n"); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("inner.deep.n:\n%v\n%v", got, want)
	}
	if c := f.Column("tags"); c < 0 || !f.Columns[c].Repeated {
		t.Fatalf("columns %+v", f.Columns)
	}
}

// TestBrokenFiles promises values or an error with a kind for every cut and every flipped byte of a file.
func TestBrokenFiles(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for name, b := range arrowFiles(t) {
		for k := range 400 {
			if err := readEverything(t.Context(), corpus.DamageParquet(rng, b, k)); err != nil &&
				fault.KindOf(err) == 0 {
				t.Fatalf("%s: %v has no kind", name, err)
			}
		}
	}
}

// readEverything reads every value of a file and returns the first error.
func readEverything(ctx context.Context, b []byte) error {
	f, err := Open(ctx, memory(b))
	if err != nil {
		return err
	}
	var first error
	touched := 0
	keep := func(err error) bool {
		if err != nil && first == nil {
			first = err
		}
		return err == nil
	}
	for g := range f.Groups {
		for c := range f.Columns {
			if f.Columns[c].Repeated {
				keep(readLists(ctx, f, g, c))
				continue
			}
			pages, err := f.Pages(ctx, g, c)
			if !keep(err) {
				continue
			}
			dict, err := f.Dictionary(ctx, g, c, pages)
			if !keep(err) {
				continue
			}
			for i := range min(len(pages.Pages), 64) {
				if few, err := f.ReadFew(ctx, g, c, pages, i, just(dict)); keep(err) {
					keep(firstFault(few, pages.Rows(i)))
				}
				v, err := f.Read(ctx, g, c, pages, i, dict)
				if !keep(err) {
					break
				}
				for r := range v.Len() {
					if !v.Null(r) {
						touched += len(v.Raw(r))
					}
				}
			}
		}
	}
	if touched < 0 {
		return errors.New("unreachable")
	}
	return first
}

// readLists reads the first pages of a column of lists.
func readLists(ctx context.Context, f *File, group, column int) error {
	if f.Columns[column].repLevel != 1 {
		return nil
	}
	pages, err := f.Pages(ctx, group, column)
	if err != nil {
		return err
	}
	dict, err := f.Dictionary(ctx, group, column, pages)
	if err != nil {
		return err
	}
	for i := range min(len(pages.Pages), 64) {
		lists, err := f.ReadFew(ctx, group, column, pages, i, just(dict))
		if err != nil {
			return err
		}
		if number := f.Columns[column].Type; number != Double && number != Float {
			continue
		}
		for row := -1; row < lists.Lists(); row++ {
			lo, hi, _ := lists.List(row)
			for i := lo; i < min(hi, lo+8); i++ {
				values, k, err := lists.Find(i)
				if err != nil {
					return err
				}
				if !values.Null(k) {
					values.Float(k)
				}
			}
		}
	}
	return nil
}

func FuzzFile(f *testing.F) {
	seeds, err := filepath.Glob("testdata/lists-*.parquet")
	if err != nil {
		f.Fatal(err)
	}
	for _, path := range seeds {
		b, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	for _, b := range arrowFiles(f) {
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if err := readEverything(t.Context(), b); err != nil && fault.KindOf(err) == 0 {
			t.Fatalf("%v has no kind", err)
		}
	})
}

// slowHybrid follows the specification bit by bit.
func slowHybrid(b []byte, width, n int) (out []uint32, ok bool) {
	for len(out) < n {
		h, k := binary.Uvarint(b)
		if k <= 0 {
			return nil, false
		}
		b = b[k:]
		if h&1 == 0 {
			size := (width + 7) / 8
			if h == 0 || len(b) < size {
				return nil, false
			}
			var x uint64
			for i := range size {
				x |= uint64(b[i]) << (8 * i)
			}
			if x>>width != 0 {
				return nil, false
			}
			for i := uint64(0); i < h>>1 && len(out) < n; i++ {
				out = append(out, uint32(x))
			}
			b = b[size:]
			continue
		}
		if h>>1 == 0 {
			return nil, false
		}
		bit := 0
		for i := uint64(0); i < h>>1*8 && len(out) < n; i++ {
			var x uint32
			for j := range width {
				if bit/8 >= len(b) {
					return nil, false
				}
				x |= uint32(b[bit/8]>>(bit%8)&1) << j
				bit++
			}
			out = append(out, x)
		}
		b = b[min(uint64(len(b)), h>>1*uint64(width)):]
	}
	return out, true
}

func FuzzHybrid(f *testing.F) {
	f.Add([]byte{0x06, 0x01, 0x03, 0x88, 0xc6, 0xfa}, 3, 11)
	f.Add([]byte{0x03, 0xff}, 1, 8)
	f.Fuzz(func(t *testing.T, b []byte, width, n int) {
		if width < 0 || width > 32 || n < 0 || n > 10000 {
			return
		}
		got, err := hybrid(b, width, n)
		want, ok := slowHybrid(b, width, n)
		if ok != (err == nil) || ok && fmt.Sprint(got) != fmt.Sprint(want) {
			t.Fatalf("%v %v, want %v (%v)", got, err, want, ok)
		}
	})
}

// TestForgedCounts promises that false counts and deep nesting cost an error and no memory.
func TestForgedCounts(t *testing.T) {
	footer := func(b ...byte) []byte {
		f := append([]byte("PAR1\x15\x00\x15\x00\x15\x00"), b...)
		f = binary.LittleEndian.AppendUint32(f, uint32(len(b)))
		return append(f, "PAR1"...)
	}
	huge := []byte{0xff, 0xff, 0xff, 0xff, 0x07} // 2^31-1
	list := func(field, elem byte) []byte { return append([]byte{field<<4 | tList, 0xf0 | elem}, huge...) }
	cases := map[string][]byte{
		"schema elements": footer(list(2, tStruct)...),
		"row groups":      footer(list(4, tStruct)...),
		"key values":      footer(list(5, tStruct)...),
		"unknown list":    footer(list(15, tI32)...),
		"unknown map":     footer(append(append([]byte{0xf0 | tMap}, huge...), 0x88)...),
		"string":          footer(append([]byte{0x60 | tBinary}, huge...)...),
		"deep lists":      footer(append([]byte{0xf0 | tList}, bytes.Repeat([]byte{0x10 | tList}, 1<<20)...)...),
		"deep structs":    footer(bytes.Repeat([]byte{0x10 | tStruct}, 1<<20)...),
		"footer length":   append([]byte("PAR1"), "\xff\xff\xff\x7fPAR1"...),
	}
	for name, b := range cases {
		var err error
		n := corpus.Allocated(func() { _, err = Open(t.Context(), memory(b)) })
		if k := fault.KindOf(err); k != fault.Corrupt && k != fault.Limit {
			t.Errorf("%s: %v", name, err)
		}
		if n > uint64(2*len(b)+1<<16) {
			t.Errorf("%s: %d bytes allocated for a file of %d", name, n, len(b))
		}
	}
}
