package parquet

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/bits"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/parquet-go/parquet-go"

	"github.com/chaski-eo/chaski/fault"
)

// hybridOf writes numbers of width bits as random runs of both kinds, and returns them.
func hybridOf(random *rand.Rand, width, n int) (b []byte, numbers []uint32) {
	draw := func() uint32 { return uint32(random.Uint64() & (1<<width - 1)) }
	for len(numbers) < n {
		if random.IntN(2) == 0 {
			count, x := 1+random.IntN(100), draw()
			b = binary.AppendUvarint(b, uint64(count)<<1)
			for i := range (width + 7) / 8 {
				b = append(b, byte(x>>(8*i)))
			}
			numbers = append(numbers, slices.Repeat([]uint32{x}, count)...)
			continue
		}
		groups := 1 + random.IntN(random.IntN(200)+1)
		b = binary.AppendUvarint(b, uint64(groups)<<1|1)
		bit, part := 0, make([]byte, groups*width)
		for range 8 * groups {
			x := draw()
			for k := range width {
				part[bit/8] |= byte(x>>k&1) << (bit % 8)
				bit++
			}
			numbers = append(numbers, x)
		}
		b = append(b, part...)
	}
	return b, numbers[:n]
}

// TestPacked promises that packed numbers are those written, and take no more memory than decoded ones.
func TestPacked(t *testing.T) {
	random := rand.New(rand.NewPCG(11, 12))
	kept := 0
	for round := range 3000 {
		width, n := round%33, 1+random.IntN(5000)
		b, want := hybridOf(random, width, n)
		p, err := pack(b, width, n)
		if err != nil {
			t.Fatal(err)
		}
		if p == nil {
			continue
		}
		kept++
		if p.cost() > 64+4*n+cap(b)-len(b) {
			t.Fatalf("%d numbers of %d bits take %d bytes", n, width, p.cost())
		}
		for i, x := range want {
			if got := p.number(i); got != x {
				t.Fatalf("number %d of %d bits is %d, want %d", i, width, got, x)
			}
		}
	}
	if kept < 500 {
		t.Errorf("only %d of 3000 are packed", kept)
	}
}

// TestReadFewIsRead promises that pages opened for few rows have the values of those read whole, and that each fault is
// found when the page is opened, or at the row that has it.
func TestReadFewIsRead(t *testing.T) {
	packed := 0
	for name, b := range arrowFiles(t) {
		for k := -1; k < 40; k++ {
			damaged := b
			if k >= 0 {
				damaged = slices.Clone(b)
				random := rand.New(rand.NewPCG(13, uint64(k)))
				for range 1 + random.IntN(4) {
					damaged[random.IntN(len(b)*9/10)] ^= 1 << random.IntN(8)
				}
			}
			f, err := Open(t.Context(), memory(damaged))
			if err != nil {
				continue
			}
			for g := range f.Groups {
				for c := range f.Columns {
					packed += samePages(t, fmt.Sprint(name, " ", k), f, g, c)
				}
			}
		}
	}
	if packed == 0 {
		t.Error("no page has packed indexes")
	}
}

// samePages reads the pages of a column in both ways, and returns how many have packed indexes.
func samePages(t *testing.T, what string, f *File, group, column int) (packed int) {
	pages, err := f.Pages(t.Context(), group, column)
	if err != nil || f.Columns[column].Repeated {
		return 0
	}
	dict, err := f.Dictionary(t.Context(), group, column, pages)
	if err != nil {
		return 0
	}
	col := &f.Columns[column]
	for i := range min(len(pages.Pages), 64) {
		all, err := f.Read(t.Context(), group, column, pages, i, dict)
		few, fewErr := f.ReadFew(t.Context(), group, column, pages, i, just(dict))
		if fewErr == nil && few.packed != nil {
			packed++
		}
		if err != nil {
			if fewErr == nil {
				fewErr = firstFault(few, pages.Rows(i))
			}
			if fmt.Sprint(err) != fmt.Sprint(fewErr) {
				t.Fatalf("%s %s: %v, for few rows %v", what, col.Name, err, fewErr)
			}
			continue
		}
		if fewErr != nil {
			t.Fatalf("%s %s: for few rows %v", what, col.Name, fewErr)
		}
		order := make([]int32, 0, all.Len()/2) // every second row, backwards
		for r := all.Len() - 1; r > 0; r -= 2 {
			order = append(order, int32(r))
		}
		taken, takenErr := few.Take(order)
		if takenErr != nil || taken.Len() != len(order) {
			t.Fatalf("%s %s: %d rows of %d, %v", what, col.Name, taken.Len(), len(order), takenErr)
		}
		for i, r := range order {
			if got, want := show(col, taken, i), show(col, all, int(r)); got != want {
				t.Fatalf("%s %s taken row %d: %s, want %s", what, col.Name, r, got, want)
			}
		}
		for r := range all.Len() {
			v, k, err := few.Find(r)
			if err != nil {
				t.Fatal(err)
			}
			got, copied, want := show(col, v, k), show(col, v.Copy(k), 0), show(col, all, r)
			if got != want || copied != want {
				t.Fatalf("%s %s row %d: %s, copied %s, want %s", what, col.Name, r, got, copied, want)
			}
		}
	}
	return packed
}

// just returns a function that returns a dictionary.
func just(dict *Values) func() (*Values, error) { return func() (*Values, error) { return dict, nil } }

// firstFault returns the error of the first row that has one.
func firstFault(few *Few, rows int) error {
	for r := range rows {
		if _, _, err := few.Find(r); err != nil {
			return err
		}
	}
	return nil
}

// TestFewAreSmall promises that a page of one value, or of none, takes no memory for each of its rows.
func TestFewAreSmall(t *testing.T) {
	type row struct {
		One  string  `parquet:"one,dict"`
		None *string `parquet:"none,optional,dict"`
		Two  *string `parquet:"two,optional,plain"`
	}
	var buf bytes.Buffer
	w := parquet.NewGenericWriter[row](&buf)
	if _, err := w.Write(slices.Repeat([]row{{One: "uint16"}}, 20_000)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	f, err := Open(t.Context(), memory(buf.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	for c := range f.Columns {
		pages, err := f.Pages(t.Context(), 0, c)
		if err != nil {
			t.Fatal(err)
		}
		dict, err := f.Dictionary(t.Context(), 0, c, pages)
		if err != nil {
			t.Fatal(err)
		}
		for i := range pages.Pages {
			few, err := f.ReadFew(t.Context(), 0, c, pages, i, just(dict))
			if err != nil {
				t.Fatal(err)
			}
			if rows := pages.Rows(i); few.Cost() > 1000 {
				t.Errorf("column %s: %d rows take %d bytes", f.Columns[c].Name, rows, few.Cost())
			}
		}
	}
}

// TestIndexOutsideOfDictionary promises that an index outside of the dictionary is refused at its row, and no other.
func TestIndexOutsideOfDictionary(t *testing.T) {
	b := append([]byte{3}, 200, 1, 2)                     // 100 times 2, in 3 bits
	b = append(b, 3, 0o21, 0o76, 0, 200, 1, 7, 200, 1, 2) // 1, 2, 0, 7, 3, 0, 0, 0; then 100 times 7 and 100 times 2
	dict := &Values{n: 4, typ: Int32, width: 4, data: make([]byte, 16)}
	few := &Few{values: &Values{n: 308, typ: Int32, width: 4}, column: "c", off: 5}
	if err := few.decode(b, 308, encRLEDictionary, just(dict)); err != nil || few.packed == nil {
		t.Fatal(err)
	}
	numbers, ok := slowHybrid(b[1:], 3, 308)
	if !ok {
		t.Fatal("the test's page is wrong")
	}
	refused := 0
	for i, x := range numbers {
		_, k, err := few.Find(i)
		if x < 4 && (err != nil || k != int(x)) || x >= 4 && fault.KindOf(err) != fault.Corrupt {
			t.Fatalf("row %d has index %d: %d, %v", i, x, k, err)
		}
		if x >= 4 {
			refused++
		}
	}
	if refused < 100 {
		t.Errorf("%d rows are refused", refused)
	}
}

// TestListsBegin promises that the rows and values of a page of lists, also in lists, are those of its levels one by
// one.
func TestListsBegin(t *testing.T) {
	random := rand.New(rand.NewPCG(17, 18))
	for round := range 2000 {
		n := 1 + random.IntN(3000)
		col := &Column{defLevel: 3, repLevel: 1, elemDef: 2, listDef: 2}
		if round%2 == 0 {
			col = &Column{defLevel: 3, repLevel: 3, elemDef: 3, listDef: 2}
		}
		rep, reps := hybridOf(random, bits.Len(uint(col.repLevel)), n)
		def, defs := hybridOf(random, 2, n)
		for i := range defs { // no level of width 2 exceeds 3
			if round%3 == 0 {
				defs[i] = 3
			}
		}
		if round%3 == 0 {
			def = append(binary.AppendUvarint(nil, uint64(n)<<1), 3)
		}
		var starts, places []int32
		var inner []uint32 // repetition levels of places
		var nulls []bool
		there := 0
		for k := range n {
			if reps[k] == 0 {
				starts, nulls = append(starts, int32(len(places))), append(nulls, defs[k] == 0)
			}
			switch defs[k] {
			case 3:
				places = append(places, int32(there))
				there++
			case 2:
				places = append(places, -1)
			}
			if defs[k] >= 2 {
				inner = append(inner, reps[k])
			}
		}
		few := &Few{values: &Values{n: len(starts)}}
		h := pageHeader{values: int32(n), repEncoding: encRLE, defEncoding: encRLE}
		got, err := few.begin(&h, rep, def, col)
		if err != nil || got != there || !slices.Equal(few.starts, starts) || few.values.n != len(places) {
			t.Fatalf("%d values and %d rows, want %d and %d: %v", got, few.Lists(), there, len(starts), err)
		}
		for i, place := range places {
			if few.values.Null(i) != (place < 0) || few.values.at != nil && few.values.at[i] != place {
				t.Fatalf("element %d of %d: want value %d", i, len(places), place)
			}
			rep, empty := few.Rep(i)
			if deep := col.repLevel > 1; deep && (rep != int(inner[i]) || empty != (place < 0)) || !deep && rep != 0 {
				t.Fatalf("element %d of %d: level %d, empty is %t", i, len(places), rep, empty)
			}
		}
		for row, want := range nulls {
			if _, _, null := few.List(row); null != want {
				t.Fatalf("row %d: null is %t", row, null)
			}
		}
		few.values.n = len(starts) + 1
		if _, err := few.begin(&h, rep, def, col); fault.KindOf(err) != fault.Corrupt {
			t.Fatalf("a row too few: %v", err)
		}
	}
}
