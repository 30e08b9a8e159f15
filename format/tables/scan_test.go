package tables

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	pqgo "github.com/parquet-go/parquet-go"

	"github.com/chaski-eo/chaski/format/tables/paged"
	"github.com/chaski-eo/chaski/tools/testkit/corpus"
)

type scanRow struct {
	ID   string   `parquet:"id"`
	N    int64    `parquet:"n"`
	F    *float64 `parquet:"f,optional"`
	List []int64  `parquet:"list,list"`
	Note *string  `parquet:"note,optional"`
	Kind string   `parquet:"kind,dict"`
	Code int32    `parquet:"code,dict"`
	Deg  *float32 `parquet:"deg,optional,dict"`
}

// scanned is a table of many small pages and several row groups.
func scanned(t *testing.T, n int) *Table {
	t.Helper()
	return opened(t, scannedBytes(t, n))
}

func opened(t *testing.T, b []byte) *Table {
	t.Helper()
	tab, err := Read(t.Context(), &corpus.Mem{B: b}, 0, int64(len(b)), Options{})
	if err != nil {
		t.Fatal(err)
	}
	return tab
}

func scannedBytes(t *testing.T, n int) []byte {
	t.Helper()
	rows := make([]scanRow, n)
	for i := range rows {
		rows[i] = scanRow{ID: fmt.Sprintf("sample %d", i), N: int64(i) * 7, Kind: fmt.Sprint(i % 7),
			Code: -int32(i), List: make([]int64, i%3)}
		if i%5 != 0 {
			f := float64(i) / 3
			rows[i].F = &f
			note, deg := fmt.Sprint("note ", i), float32(i%11)
			rows[i].Note, rows[i].Deg = &note, &deg
		}
	}
	var b bytes.Buffer
	w := pqgo.NewGenericWriter[scanRow](&b, pqgo.MaxRowsPerRowGroup(1000), pqgo.PageBufferSize(512))
	if _, err := w.Write(rows); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func text(v *Vector, i int) string { return string(v.AppendJSON(nil, i)) }

// TestFewRowsAreTheColumns promises that rows read from their pages are those of the whole column, whatever was read
// before, kept or not, and on several goroutines.
func TestFewRowsAreTheColumns(t *testing.T) {
	const n = 3500
	b := scannedBytes(t, n)
	whole := opened(t, b)
	random := rand.New(rand.NewPCG(1, 2))
	sets := [][]int{nil, {0}, {n - 1}, {0, 1, 4, 999, 1000, 2222, 2223, 3499}, slices.Collect(seq(n)), {5, 4, 4, 3000}}
	for range 20 {
		sets = append(sets, someRows(random, n))
	}
	for i, c := range whole.Columns() {
		want, err := whole.At(t.Context(), i)
		if err != nil {
			t.Fatal(err)
		}
		same := func(how string, rows []int, got *Vector, err error) {
			t.Helper()
			if err != nil || got.Len() != len(rows) || !got.Type().Equal(want.Type()) {
				t.Errorf("%s, %s: %v", c.Name, how, err)
				return
			}
			for k, row := range rows {
				if got, want := text(got, k), text(want, row); got != want {
					t.Errorf("%s, %s, row %d: %s, want %s", c.Name, how, row, got, want)
				}
			}
		}
		fresh := opened(t, b)
		var running sync.WaitGroup
		for _, rows := range sets {
			running.Go(func() {
				got, err := fresh.Take(rows).At(t.Context(), i)
				same("taken", rows, got, err)
			})
			got, err := whole.Take(rows).At(t.Context(), i)
			same("taken from memory", rows, got, err)
		}
		running.Wait()
		got, err := fresh.At(t.Context(), i)
		same("all of it", slices.Collect(seq(n)), got, err)
		fresh = opened(t, b)
		for _, rows := range [][]int{{1, 5}, slices.Collect(seq(n))} {
			if _, err := fresh.Take(rows).At(t.Context(), i); err != nil {
				t.Fatal(err)
			}
		}
		if n := fresh.pages.f.Cache.Used(); n != 0 {
			t.Errorf("%s: %d bytes are held though the column is in memory", c.Name, n)
		}
	}
}

// someRows returns some rows in ascending order, in runs or far between.
func someRows(random *rand.Rand, n int) (rows []int) {
	gap := 1 << random.IntN(10)
	for row := random.IntN(gap); row < n; row += 1 + random.IntN(gap) {
		rows = append(rows, row)
	}
	return rows
}

// TestHeldPagesAreReadOnce promises that kept pages are not read again, and that no more than the limit is kept.
func TestHeldPagesAreReadOnce(t *testing.T) {
	b := scannedBytes(t, 3500)
	file := &countedReads{Mem: corpus.Mem{B: b}}
	tab, err := Read(t.Context(), file, 0, int64(len(b)), Options{Whole: 1})
	if err != nil {
		t.Fatal(err)
	}
	rows := []int{7, 900, 2500}
	take := func() {
		if _, err := tab.Take(rows).At(t.Context(), 0); err != nil {
			t.Fatal(err)
		}
	}
	take()
	before := file.reads.Load()
	if take(); file.reads.Load() != before {
		t.Errorf("%d reads for pages that are held", file.reads.Load()-before)
	}
	tab.pages.f = paged.New(tab.pages.f.File, paged.NewCache(1000), 0, 1)
	if take(); tab.pages.f.Cache.Used() > 1000 {
		t.Errorf("%d bytes are held, 1000 may be", tab.pages.f.Cache.Used())
	}
}

type countedReads struct {
	corpus.Mem
	reads atomic.Int64
}

func (c *countedReads) ReadAt(ctx context.Context, p []byte, off int64) error {
	c.reads.Add(1)
	return c.Mem.ReadAt(ctx, p, off)
}

// TestScanGivesTheValues promises the values that are not null, in order, until the callback returns an error.
func TestScanGivesTheValues(t *testing.T) {
	const n = 3500
	whole := scanned(t, n)
	random := rand.New(rand.NewPCG(3, 4))
	for _, name := range []string{"id", "note"} {
		i := whole.Index(name)
		want, err := whole.At(t.Context(), i)
		if err != nil {
			t.Fatal(err)
		}
		fresh := scanned(t, n)
		for k := range 10 {
			rows := someRows(random, n)
			for _, tab := range []*Table{fresh, whole} {
				left := slices.DeleteFunc(slices.Clone(rows), want.Null)
				err := tab.Scan(t.Context(), i, rows, k%2 == 1, func(row int, value []byte) error {
					if len(left) == 0 || row != left[0] || string(value) != want.Str(row) {
						return fmt.Errorf("row %d: %q", row, value)
					}
					left = left[1:]
					return nil
				})
				if err != nil || len(left) > 0 {
					t.Errorf("%s: %v, %d rows were not shown", name, err, len(left))
				}
			}
		}
		stop := errors.New("enough")
		if err := scanned(t, n).Scan(t.Context(), i, []int{3, 2999}, false, func(int, []byte) error {
			return stop
		}); !errors.Is(err, stop) {
			t.Error(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := scanned(t, n).Scan(ctx, i, []int{3, 2999}, false, func(int, []byte) error {
			return nil
		}); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	}
}

func seq(n int) func(func(int) bool) {
	return func(yield func(int) bool) {
		for i := range n {
			if !yield(i) {
				return
			}
		}
	}
}
