package table

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	pqgo "github.com/parquet-go/parquet-go"

	"github.com/chaski-eo/chaski/internal/corpus"
)

type scanRow struct {
	ID   string   `parquet:"id"`
	N    int64    `parquet:"n"`
	F    *float64 `parquet:"f,optional"`
	List []int64  `parquet:"list,list"`
}

// scanned is a table of many small pages and several row groups.
func scanned(t *testing.T, n int) *Table {
	t.Helper()
	rows := make([]scanRow, n)
	for i := range rows {
		rows[i] = scanRow{ID: fmt.Sprintf("sample %d", i), N: int64(i) * 7, List: make([]int64, i%3)}
		if i%5 != 0 {
			f := float64(i) / 3
			rows[i].F = &f
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
	tab, err := Read(t.Context(), &corpus.Mem{B: b.Bytes()}, 0, int64(b.Len()), Options{})
	if err != nil {
		t.Fatal(err)
	}
	return tab
}

func text(v *Vector, i int) string { return string(v.AppendJSON(nil, i)) }

// TestScanGivesTheColumn: the pieces are the column, one after the other, and some rows of it are those.
func TestScanGivesTheColumn(t *testing.T) {
	const n = 3500
	fresh, whole := scanned(t, n), scanned(t, n)
	rows := []int{0, 1, 4, 999, 1000, 2222, 2223, 3499}
	for i, c := range whole.Columns() {
		want, err := whole.At(t.Context(), i)
		if err != nil {
			t.Fatal(err)
		}
		next, pieces := 0, 0
		err = fresh.Scan(t.Context(), i, func(first int, v *Vector) error {
			if first != next {
				return fmt.Errorf("a piece from row %d, want %d", first, next)
			}
			for k := range v.Len() {
				if got, want := text(v, k), text(want, first+k); got != want {
					return fmt.Errorf("row %d: %s, want %s", first+k, got, want)
				}
			}
			next += v.Len()
			pieces++
			return nil
		})
		if err != nil || next != n {
			t.Errorf("%s: %d rows, %v", c.Name, next, err)
		}
		if flat := c.Type.Kind != List; flat && pieces < 4 {
			t.Errorf("%s comes in %d pieces", c.Name, pieces)
		}
		for _, tab := range []*Table{fresh, whole, whole.Take(slices.Collect(seq(n)))} {
			got, err := tab.Pick(t.Context(), i, rows)
			if err != nil || got.Len() != len(rows) {
				t.Fatalf("%s: %v", c.Name, err)
			}
			for k, row := range rows {
				if got, want := text(got, k), text(want, row); got != want {
					t.Errorf("%s row %d: %s, want %s", c.Name, row, got, want)
				}
			}
		}
		if got, err := fresh.Pick(t.Context(), i, nil); err != nil || got.Len() != 0 {
			t.Errorf("%s: no rows: %v, %v", c.Name, got, err)
		}
	}
	stop := errors.New("enough")
	if err := scanned(t, n).Scan(t.Context(), 0, func(int, *Vector) error { return stop }); !errors.Is(err, stop) {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := scanned(t, n).Scan(ctx, 0, func(int, *Vector) error { return nil }); !errors.Is(err, context.Canceled) {
		t.Error(err)
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
