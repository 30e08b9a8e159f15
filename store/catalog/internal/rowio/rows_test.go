package rowio_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/store/catalog/internal/rowio"
)

// row makes row number i; some have what others lack.
func row(i int) rowio.Row {
	r := rowio.Row{URI: fmt.Sprintf("chips/%d.tif", i), Bands: 6, Height: int32(i), Width: 7, DType: "uint16",
		Transform: []float64{1, 0, float64(i), 0, -1, 0}, Size: int64(i) << 33}
	if i%3 == 0 {
		nodata, code, tag := float64(-i), int32(32600+i), fmt.Sprint("etag ", i)
		r.NoData, r.EPSG, r.ETag, r.Index = &nodata, &code, &tag, bytes.Repeat([]byte{byte(i)}, i%50+1)
	}
	return r
}

// written returns the rows of a file, as parquet-go reads them.
func written(t *testing.T, file []byte) []rowio.Row {
	t.Helper()
	rows, err := parquet.Read[rowio.Row](bytes.NewReader(file), int64(len(file)))
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

// TestRowsComeInOrder: rows that many workers make, in any order and over several blocks, are in the file in theirs.
// Those of faulty files are left out and named, or the first of them is the error.
func TestRowsComeInOrder(t *testing.T) {
	const n = 2*rowio.BlockRows + 100
	bad := fault.New(fault.Corrupt, "header", "cut off")
	begun, done := 0, 0
	src := rowio.Source{
		Begin: func(first, rows int) error {
			if first != begun {
				t.Errorf("a block begins at %d, not %d", first, begun)
			}
			begun += rows
			return nil
		},
		Make: func(_ context.Context, i int) (rowio.Row, error) {
			if rand.IntN(100) == 0 {
				time.Sleep(time.Millisecond) // others go ahead
			}
			if i%500 == 499 {
				return rowio.Row{}, bad
			}
			return row(i), nil
		},
	}
	var skipped []int
	var file bytes.Buffer
	rows, err := rowio.Write(t.Context(), &file, n, rowio.RowOptions{
		Workers:  8,
		Progress: func(now, all int) { done = now },
		Skipped: func(i int, err error) {
			if !errors.Is(err, bad) {
				t.Errorf("row %d is left out by %v", i, err)
			}
			skipped = append(skipped, i)
		},
	}, src)
	want := []rowio.Row{}
	for i := range n {
		if i%500 != 499 {
			want = append(want, row(i))
		}
	}
	if err != nil || rows != len(want) || done != n || begun != n {
		t.Fatalf("%d rows of %d, %d and %d of %d done: %v", rows, len(want), begun, done, n, err)
	}
	if left := []int{499, 999, 1499, 1999}; !reflect.DeepEqual(skipped, left) {
		t.Errorf("rows %v are left out, not %v", skipped, left)
	}
	if got := written(t, file.Bytes()); !reflect.DeepEqual(got, want) {
		t.Errorf("the file has other rows than were made")
	}

	begun = 0
	if _, err := rowio.Write(t.Context(), &file, n, rowio.RowOptions{Workers: 8}, src); !errors.Is(err, bad) {
		t.Errorf("a faulty file is no error: %v", err)
	}
}

// TestPartialFile: a file that ends early is whole, with the rows before the error; without Partial it is none.
func TestPartialFile(t *testing.T) {
	stop := errors.New("the disk is gone")
	src := rowio.Source{
		Begin: func(first, _ int) error {
			if first >= rowio.BlockRows {
				return stop
			}
			return nil
		},
		Make: func(_ context.Context, i int) (rowio.Row, error) { return row(i), nil },
	}
	for _, partial := range []bool{true, false} {
		var file bytes.Buffer
		o := rowio.RowOptions{Workers: 2, Partial: partial}
		rows, err := rowio.Write(t.Context(), &file, 3*rowio.BlockRows, o, src)
		if rows != rowio.BlockRows || !errors.Is(err, stop) {
			t.Errorf("%d rows and %v, not %d and %v", rows, err, rowio.BlockRows, stop)
		}
		if partial {
			if got := written(t, file.Bytes()); len(got) != rows || !reflect.DeepEqual(got[rows-1], row(rows-1)) {
				t.Errorf("the file has %d rows of %d", len(got), rows)
			}
		} else if _, err := parquet.OpenFile(bytes.NewReader(file.Bytes()), int64(file.Len())); err == nil {
			t.Error("a file that was not finished can be opened")
		}
	}
}
