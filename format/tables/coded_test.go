package tables

import (
	"bytes"
	"fmt"
	"slices"
	"sync"
	"testing"

	pqgo "github.com/parquet-go/parquet-go"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/tools/testkit/corpus"
	"github.com/chaski-eo/chaski/tools/testkit/race"
)

type codedRow struct {
	Three string  `parquet:"three,dict"`
	Most  *string `parquet:"most,optional,dict"`
	Many  string  `parquet:"many,dict"`
	Later *string `parquet:"later,optional,dict"`
	Plain string  `parquet:"plain"`
	Late  *string `parquet:"late,optional,dict"`
	N     int64   `parquet:"n"`
}

const codedRows = 60_000

// codedWant has the strings of a row, nil for nulls.
func codedWant(i int) map[string]*string {
	text := func(s string) *string { return &s }
	w := map[string]*string{"three": text([]string{"test", "", "città"}[i%3]), "many": text(fmt.Sprint(i % 300)),
		"plain": text(fmt.Sprint(i % 2))}
	if i > 15_000 && i < 50_000 { // pages in front of them and behind, of the same row groups, have none
		w["late"] = text(fmt.Sprint("late ", i%4))
	}
	if i%11 != 5 {
		w["most"] = text(fmt.Sprint("class ", i%255))
		later := i % 200
		if i > codedRows/2 {
			later = i % 400 // more texts than there are codes, from a later row group on
		}
		w["later"] = text(fmt.Sprint(later))
	}
	return w
}

// codedWants has the strings of each row, which tests compare many times.
var codedWants = sync.OnceValue(func() []map[string]*string {
	all := make([]map[string]*string, codedRows)
	for i := range all {
		all[i] = codedWant(i)
	}
	return all
})

// codedFile returns the bytes of a file of codedRows rows, which are made once.
func codedFile(t *testing.T) []byte {
	t.Helper()
	b, err := codedBytes()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

var codedBytes = sync.OnceValues(func() ([]byte, error) {
	rows := make([]codedRow, codedRows)
	for i, w := range codedWants() {
		rows[i] = codedRow{Three: *w["three"], Most: w["most"], Many: *w["many"], Later: w["later"],
			Late: w["late"], Plain: *w["plain"], N: int64(i)}
	}
	var b bytes.Buffer
	// Pages of over 4096 rows, which are copied beside what follows, and small ones.
	w := pqgo.NewGenericWriter[codedRow](&b, pqgo.MaxRowsPerRowGroup(20_001), pqgo.PageBufferSize(40_000))
	if _, err := w.Write(rows); err != nil {
		return nil, err
	}
	err := w.Close()
	return b.Bytes(), err
})

// TestBytesOfStrings promises that Bytes counts at least the codes of a table's strings, and what Spans keeps once it
// was called.
func TestBytesOfStrings(t *testing.T) {
	race.SkipCovered(t)
	tab := opened(t, codedFile(t))
	before := tab.Bytes()
	v, err := tab.Column(t.Context(), "three")
	if err != nil {
		t.Fatal(err)
	}
	coded := tab.Bytes()
	if coded < before+codedRows {
		t.Errorf("%d bytes after %d", coded, before)
	}
	v.Spans()
	if n := tab.Bytes(); n < coded+8*codedRows {
		t.Errorf("%d bytes after %d", n, coded)
	}
}

// TestFewDistinctStrings promises that strings are those that were written, whatever their form in memory and however
// many goroutines read them, and that up to 255 distinct ones in dictionaries are coded.
func TestFewDistinctStrings(t *testing.T) {
	race.SkipCovered(t)
	b, wants := codedFile(t), codedWants()
	for name, isCoded := range map[string]bool{"three": true, "most": true, "many": false, "later": false,
		"plain": false, "late": true} {
		tab := opened(t, b)
		v, err := tab.Column(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		codes, values := v.Coded()
		if (codes != nil) != isCoded {
			t.Fatalf("%s: by codes: %v", name, codes != nil)
		}
		if isCoded && (len(codes) != codedRows || values.Len() != 256 || !values.Null(255)) {
			t.Errorf("%s: %d codes of %d values", name, len(codes), values.Len())
		}
		check := func(how string, v *Vector, i, row int) {
			t.Helper()
			var want *string
			if row >= 0 {
				want = wants[row][name]
			}
			if v.Null(i) != (want == nil) || want != nil && v.Str(i) != *want {
				t.Fatalf("%s, %s, row %d: %q (null %v), want %v", name, how, row, v.Str(i), v.Null(i), want)
			}
			if codes, values := v.Coded(); codes != nil &&
				(values.Null(int(codes[i])) != (want == nil) || want != nil && values.Str(int(codes[i])) != *want) {
				t.Fatalf("%s, %s, row %d: another by its code", name, how, row)
			}
		}
		for i := range codedRows {
			check("all", v, i, i)
		}
		rows := []int{5, 4, -1, 40_000, 5, codedRows - 1}
		took := take(t, v, rows)
		for i, row := range rows {
			check("taken", took, i, row)
		}
		few := []int{0, 5, 6, 19_999, 20_001, 45_000}
		picked, err := opened(t, b).Take(few).At(t.Context(), tab.Index(name))
		if err != nil {
			t.Fatal(err)
		}
		for i, row := range few {
			check("picked", picked, i, row)
		}
		joined, err := Append(v.Type(), picked, v, NewNulls(Type{}, 1), took)
		if err != nil {
			t.Fatal(err)
		}
		for i, row := range slices.Concat(few, slices.Collect(seq(codedRows)), []int{-1}, rows) {
			check("joined", joined, i, row)
		}
		var running sync.WaitGroup
		for range 3 {
			running.Go(func() {
				data, lo, hi := v.Spans()
				if len(lo) != codedRows || len(hi) != codedRows {
					t.Errorf("%s: %d begins, %d ends", name, len(lo), len(hi))
				}
				for i := range codedRows {
					if got := string(data[lo[i]:hi[i]]); got != v.Str(i) {
						t.Errorf("%s, row %d: %q, want %q", name, i, got, v.Str(i))
						return
					}
				}
			})
		}
		running.Wait()
	}
}

// TestCodesRefuseWhatAColumnDoesNotHold promises that strings are not coded if they could need more bytes than a column
// may take.
func TestCodesRefuseWhatAColumnDoesNotHold(t *testing.T) {
	b := codedFile(t)
	tab, err := Read(t.Context(), memory(b), 0, int64(len(b)), Options{MaxBytes: 5 * codedRows})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tab.Column(t.Context(), "most"); err == nil {
		t.Error("a column of more bytes than may be was loaded")
	}
	v, err := tab.Column(t.Context(), "three") // up to 6 bytes, but 10/3 on the average
	if err != nil {
		t.Fatal(err)
	}
	if v.Str(2) != "città" || v.Str(codedRows-1) != "città" {
		t.Error("other texts")
	}
}

// TestDictionariesAreBounded promises that strings that no row has take no more memory than a column may.
func TestDictionariesAreBounded(t *testing.T) {
	type row struct {
		S string `parquet:"s,dict"`
	}
	rows := make([]row, 200)
	for i := range rows {
		rows[i].S = fmt.Sprintf("%0100d", i)
	}
	var b bytes.Buffer
	if err := pqgo.Write(&b, rows); err != nil {
		t.Fatal(err)
	}
	for limit, coded := range map[int64]bool{20_000: true, 19_999: false, 1000: false, 100: false} {
		tab, err := Read(t.Context(), memory(b.Bytes()), 0, int64(b.Len()), Options{MaxBytes: limit})
		if err != nil {
			t.Fatal(err)
		}
		v, err := tab.Take([]int{7}).At(t.Context(), 0)
		if err != nil {
			t.Fatal(err)
		}
		if codes, _ := v.Coded(); v.Str(0) != rows[7].S || (codes != nil) != coded {
			t.Errorf("at most %d bytes: %q, by codes %v", limit, v.Str(0), codes != nil)
		}
	}
}

// TestLargeStringsAreNotJoined promises that strings of more than 4 GiB are refused before memory is taken for them.
func TestLargeStringsAreNotJoined(t *testing.T) {
	c := coder{codes: make([]uint8, 2500), strings: []string{string(make([]byte, 1<<20))}}
	large := &Vector{typ: Type{Kind: String}, n: len(c.codes), coded: c.coded()}
	var err error
	got := corpus.Allocated(func() { _, err = Append(Type{Kind: String}, large, large) })
	if fault.KindOf(err) != fault.Limit || got > 1<<20 {
		t.Errorf("%v, after %d bytes", err, got)
	}
}

// TestDistinct promises strings in codes of four bytes that are read as others are, and null where they are.
func TestDistinct(t *testing.T) {
	nulls := []bool{false, false, true, false}
	v := NewCoded([]uint32{1, 0, 0, 1}, []string{"a", "bc"}, nulls)
	codes, distinct := v.Distinct()
	if !slices.Equal(codes, []uint32{1, 0, 2, 1}) || !slices.Equal(distinct, []string{"a", "bc"}) {
		t.Errorf("%v of %q", codes, distinct)
	}
	plain := NewStrings([]string{"bc", "a", "", "bc"}, nulls)
	same := func(got, want *Vector) {
		t.Helper()
		data, lo, hi := got.Spans()
		for i := range want.Len() {
			if got.Null(i) != want.Null(i) || got.Str(i) != want.Str(i) || string(data[lo[i]:hi[i]]) != want.Str(i) {
				t.Errorf("value %d is %q, want %q", i, got.Str(i), want.Str(i))
			}
		}
	}
	same(v, plain)
	same(v.Part(1, 2), plain.Part(1, 2))
	same(v.Pick([]int32{3, 2}, nil), plain.Pick([]int32{3, 2}, nil))
	taken, err := v.Take([]int{2, 0, -1})
	if err != nil {
		t.Fatal(err)
	}
	want, _ := plain.Take([]int{2, 0, -1})
	same(taken, want)
	if all, err := Append(v.Type(), v, plain); err != nil || all.Str(4) != "bc" || !all.Null(2) || all.Len() != 8 {
		t.Errorf("%v, %v", all, err)
	}
	if codes, _ := v.Coded(); codes != nil || !NewNulls(v.Type(), 3).AllNull() || v.AllNull() {
		t.Error("other codes, or nulls")
	}
	if codes, _ := plain.Distinct(); codes != nil {
		t.Error("codes of strings that have none")
	}
}
