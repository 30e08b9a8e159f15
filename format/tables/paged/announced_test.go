package paged_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/parquet-go/parquet-go"

	"github.com/chaski-eo/chaski/format/tables/paged"
	pq "github.com/chaski-eo/chaski/format/tables/parquet"
	"github.com/chaski-eo/chaski/source"
)

// TestAnnouncedCellStays: a cell that two callers announce stays until both have read it or given up, also if the
// second one comes first.
func TestAnnouncedCellStays(t *testing.T) {
	type row struct {
		Cell []byte `parquet:"cell,plain"`
	}
	rows, random := make([]row, 40), rand.NewChaCha8([32]byte{1})
	for i := range rows {
		rows[i].Cell = make([]byte, 1<<10)
		_, _ = random.Read(rows[i].Cell)
	}
	var file bytes.Buffer
	w := parquet.NewGenericWriter[row](&file, parquet.PageBufferSize(1<<20)) // which holds all rows
	for range 2 {                                                            // row groups of one page
		if _, err := w.Write(rows); err != nil {
			t.Fatal(err)
		}
		if err := w.Flush(); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	f := open(t, source.Memory(file.Bytes()), 32<<10) // a page has 40 KiB
	for _, second := range []bool{false, true} {
		counter := f.Cache.NewCounter(0)
		overs := []func(){counter.Announce(f, 0, 7), counter.Announce(f, 0, 7)}
		// reads returns the requests of the cell, and then reads the other page, which takes the place of its page.
		reads := func() int64 {
			n, err := counter.Read(t.Context(), f, 0, 7)
			if err == nil {
				_, err = counter.Read(t.Context(), f, 0, 47)
			}
			if err != nil {
				t.Fatal(err)
			}
			return n.Requests
		}
		if reads() == 0 {
			t.Error("the first read takes no request")
		}
		first, other := overs[0], overs[1]
		if second {
			first, other = other, first
		}
		if first(); reads() != 0 {
			t.Errorf("second one first: %v: the other read takes a request", second)
		}
		if other(); reads() == 0 {
			t.Errorf("second one first: %v: the cell stays after both", second)
		}
	}
}

// open opens a Parquet file with a cache of so many bytes, which keeps large pages.
func open(t *testing.T, r source.Reader, cacheBytes int64) *paged.File {
	t.Helper()
	f, err := pq.Open(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	return paged.New(f, paged.NewCache(cacheBytes).KeepLarge(nil), 0, 0)
}

// TestAnnouncedCells: cells that are announced are read from copies once their page has gone, whatever their type.
func TestAnnouncedCells(t *testing.T) {
	type row struct {
		Text   *string `parquet:"text,optional,plain"`
		Number int64   `parquet:"number,plain"`
	}
	rows, random := make([]row, 4000), rand.New(rand.NewPCG(3, 4))
	for i := range rows {
		rows[i].Number = random.Int64()
		if text := fmt.Sprint(random.Uint64()); i%3 > 0 {
			rows[i].Text = &text
		}
	}
	var file bytes.Buffer
	w := parquet.NewGenericWriter[row](&file, parquet.PageBufferSize(16<<10), parquet.MaxRowsPerRowGroup(1000))
	if _, err := w.Write(rows); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	in := &slow{Reader: source.Memory(file.Bytes())}
	f := open(t, in, 24<<10) // one page or two
	for leaf, name := range []string{"text", "number"} {
		picks := []int64{5, 3006, 1004, 3005, 6, 1005, 4, 3004, 1006}
		var overs []func()
		for _, row := range picks {
			overs = append(overs, f.Announce(leaf, row))
		}
		before := in.reads.Load()
		for i, row := range picks {
			v, k, err := f.Value(t.Context(), leaf, row)
			if err != nil {
				t.Fatal(err)
			}
			overs[i]()
			want := rows[row]
			switch {
			case leaf == 0 && want.Text == nil:
				if !v.Null(k) {
					t.Errorf("%s of row %d is not null", name, row)
				}
			case leaf == 0:
				if got := string(v.Raw(k)); got != *want.Text {
					t.Errorf("%s of row %d is %q, want %q", name, row, got, *want.Text)
				}
			default:
				if got, _ := v.Int(k); got != want.Number {
					t.Errorf("%s of row %d is %d, want %d", name, row, got, want.Number)
				}
			}
		}
		if n := in.reads.Load() - before; n > 2*3 { // the locations and a page of each row group
			t.Errorf("%s: %d reads for the cells of three pages", name, n)
		}
	}
}
