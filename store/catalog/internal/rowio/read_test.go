package rowio_test

import (
	"bytes"
	"context"
	"math"
	"reflect"
	"testing"

	"github.com/parquet-go/parquet-go"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store/catalog/internal/columns"
	"github.com/chaski-eo/chaski/store/catalog/internal/rowio"
)

// reader returns a reader of a file of Parquet.
func reader(t *testing.T, file []byte) (*rowio.Reader, error) {
	t.Helper()
	table, err := columns.OpenParquet(t.Context(), source.Memory(file), 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	return rowio.NewReader(table)
}

// TestRowsAreRead: a reader returns the rows that parquet-go reads, also where every column has a value.
func TestRowsAreRead(t *testing.T) {
	const n = 3000
	full := func(i int) rowio.Row {
		r, x, text, at := row(3*i), float64(i)+0.5, "text", int64(i)<<40
		r.Header, r.NoDataExact, r.CRS, r.Names, r.Beside, r.MTime = []byte{1}, &text, &text, &text, &text, &text
		r.MinX, r.MinY, r.MaxX, r.MaxY, r.Offset, r.Length = &x, &x, &x, &x, &at, &at
		return r
	}
	var file bytes.Buffer
	_, err := rowio.Write(t.Context(), &file, n, rowio.RowOptions{Workers: 2}, rowio.Source{
		Make: func(_ context.Context, i int) (rowio.Row, error) {
			if i%2 == 0 {
				return full(i), nil
			}
			return row(i), nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	want := written(t, file.Bytes())
	r, err := reader(t, file.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	for i := range want {
		for range 2 {
			if got, err := r.Peek(t.Context()); err != nil || !reflect.DeepEqual(*got, want[i]) {
				t.Fatalf("row %d is %+v, not %+v: %v", i, got, want[i], err)
			}
		}
		r.Skip()
	}
	if got, err := r.Peek(t.Context()); got != nil || err != nil || r.Rows() != n {
		t.Errorf("%d rows, then %v, %v", r.Rows(), got, err)
	}
}

// TestOtherColumns: columns that a file lacks are null, and one of another type is corrupt.
func TestOtherColumns(t *testing.T) {
	read := func(rows any) (*rowio.Row, error) {
		t.Helper()
		var file bytes.Buffer
		if err := parquet.Write(&file, []any{rows}, parquet.SchemaOf(rows)); err != nil {
			t.Fatal(err)
		}
		r, err := reader(t, file.Bytes())
		if err != nil {
			return nil, err
		}
		return r.Peek(t.Context())
	}
	few, err := read(struct {
		URI   string `parquet:"uri"`
		Bands int64  `parquet:"bands"`
	}{"a", 3})
	if err != nil || !reflect.DeepEqual(few, &rowio.Row{URI: "a", Bands: 3}) {
		t.Errorf("%+v, %v", few, err)
	}
	for name, rows := range map[string]any{
		"text": struct {
			Bands string `parquet:"bands"`
		}{"3"},
		"large": struct {
			Bands int64 `parquet:"bands"`
		}{math.MaxInt32 + 1},
		"float": struct {
			Size float64 `parquet:"size"`
		}{3},
		"list": struct {
			URI []string `parquet:"uri,list"`
		}{[]string{"a"}},
		"whole numbers": struct {
			Transform []int64 `parquet:"transform,list"`
		}{[]int64{1}},
	} {
		if _, err := read(rows); fault.KindOf(err) != fault.Corrupt {
			t.Errorf("%s: %v", name, err)
		}
	}
}
