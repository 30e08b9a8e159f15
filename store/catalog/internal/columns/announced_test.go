package columns_test

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/parquet-go/parquet-go"

	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store/catalog/internal/columns"
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
	w := parquet.NewGenericWriter[row](&file, parquet.PageBufferSize(1<<30))
	for range 2 { // row groups of one page
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
	table, err := columns.OpenParquet(t.Context(), source.Memory(file.Bytes()), 32<<10) // a page has 40 KiB
	if err != nil {
		t.Fatal(err)
	}
	c, err := table.AnyColumn("cell")
	if err != nil {
		t.Fatal(err)
	}
	for _, second := range []bool{false, true} {
		counter := table.NewPageCounter(0)
		overs := []func(){counter.Announce(c, 7), counter.Announce(c, 7)}
		// reads returns the requests of the cell, and then reads the other page, which takes the place of its page.
		reads := func() int64 {
			n, err := counter.Read(t.Context(), c, 7)
			if err == nil {
				_, err = counter.Read(t.Context(), c, 47)
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
