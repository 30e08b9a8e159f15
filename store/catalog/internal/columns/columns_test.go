package columns_test

import (
	"bytes"
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"

	"github.com/chaski-eo/chaski/format/column"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store/catalog/internal/columns"
)

// shards opens files by their place in a slice: "0" is the first.
type shards [][]byte

func (s shards) Open(_ context.Context, name string) (source.Reader, error) {
	return source.Memory(s[name[0]-'0']), nil
}

// written returns a Parquet file with small pages.
func written[T any](t *testing.T, rows []T) []byte {
	t.Helper()
	var b bytes.Buffer
	w := parquet.NewGenericWriter[T](&b, parquet.PageBufferSize(512), parquet.MaxRowsPerRowGroup(300))
	if _, err := w.Write(rows); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestTimesOfShards: files with timestamps in different units are one column of microseconds, rounded down, read row by
// row or scanned, in lists and outside of them.
func TestTimesOfShards(t *testing.T) {
	type millis struct {
		Time int64   `parquet:"time,timestamp(millisecond)"`
		List []int64 `parquet:"list,list" parquet-element:",timestamp(millisecond)"`
	}
	type nanos struct {
		Time int64   `parquet:"time,timestamp(nanosecond)"`
		List []int64 `parquet:"list,list" parquet-element:",timestamp(nanosecond)"`
	}
	random := rand.New(rand.NewPCG(7, 8))
	var first []millis
	var second []nanos
	var want []int64
	for range 700 {
		x := random.Int64N(4e15) - 2e15
		first, want = append(first, millis{x, []int64{x, 0}}), append(want, time.UnixMilli(x).UnixMicro())
	}
	// The largest and the smallest milliseconds that microseconds hold stand for those beyond.
	const last = math.MaxInt64 / 1000
	first = append(first, millis{math.MaxInt64, nil}, millis{math.MinInt64, nil})
	want = append(want, last*1000, math.MinInt64/1000*1000)
	for range 700 {
		x := random.Int64N(4e18) - 2e18
		floor := time.Unix(0, x).Truncate(time.Microsecond)
		if floor.UnixNano() > x {
			floor = floor.Add(-time.Microsecond)
		}
		second, want = append(second, nanos{x, []int64{x, 0}}), append(want, floor.UnixMicro())
	}
	table, err := columns.OpenShards(t.Context(), shards{written(t, first), written(t, second)}, []string{"0", "1"},
		1<<20)
	if err != nil {
		t.Fatal(err)
	}
	c, err := table.AnyColumn("time")
	if err != nil || c.Unit != time.Microsecond || c.Rows != int64(len(want)) {
		t.Fatalf("%+v, %v", c, err)
	}
	lists, err := table.AnyColumn("list")
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	err = c.Scan(t.Context(), func(row int64, scanned column.Value) error {
		cell, err := c.Cell(t.Context(), row)
		list, listErr := lists.Cell(t.Context(), row)
		if err = errors.Join(err, listErr); err != nil {
			return err
		}
		if cell.Int != want[row] || scanned.Int != want[row] {
			t.Errorf("row %d: %d, scanned %d, want %d", row, cell.Int, scanned.Int, want[row])
		}
		if n := len(list.List); n > 0 && (n != 2 || list.List[0].Int != want[row] || list.List[1].Int != 0) {
			t.Errorf("row %d: %v, want %d and 0", row, list.List, want[row])
		}
		seen++
		return nil
	})
	if err != nil || seen != len(want) {
		t.Errorf("%d of %d rows, %v", seen, len(want), err)
	}
}

// TestKindsOfShards: files whose columns of a name have different kinds are no table.
func TestKindsOfShards(t *testing.T) {
	type number struct{ X int64 }
	type float struct{ X float64 }
	type date struct {
		X int32 `parquet:"X,date"`
	}
	files := shards{written(t, []number{{1}}), written(t, []float{{1}}), written(t, []date{{1}})}
	for _, x := range []struct {
		names []string
		fails bool
	}{
		{[]string{"0", "0"}, false}, {[]string{"0", "1"}, true}, {[]string{"0", "2"}, true},
		{[]string{"2", "2"}, false},
	} {
		table, err := columns.OpenShards(t.Context(), files, x.names, 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		c, err := table.Column("X")
		if (err != nil) != x.fails {
			t.Errorf("%v: %v", x.names, err)
		}
		if err == nil && (c.Unit == columns.Day) != slices.Contains(x.names, "2") {
			t.Errorf("%v: unit %v", x.names, c.Unit)
		}
	}
}
