package text_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/tables/parquet"
	"github.com/chaski-eo/chaski/format/tables/text"
	"github.com/chaski-eo/chaski/format/tables/texts"
	"github.com/chaski-eo/chaski/internal/cputime"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/tools/testkit/race"
	"github.com/chaski-eo/chaski/tools/testkit/taken"
)

// read reads a table of which the bytes are b.
func read(ctx context.Context, ext string, b []byte) (*texts.Table, error) {
	return text.Read(ctx, source.Memory(b), ext, func(string) texts.Want { return texts.Values })
}

// wide returns a CSV file of n columns and one row.
func wide(n int) []byte {
	var b bytes.Buffer
	for i := range n {
		fmt.Fprintf(&b, "c%d,", i)
	}
	b.Truncate(b.Len() - 1)
	return append(b.Bytes(), "\n1"+strings.Repeat(",1", n-1)+"\n"...)
}

// TestWideCSV promises that a table may have as many columns as a Parquet file may have, and that more are refused
// before their names are compared. With a search through the names before each, 200,000 took over 60 s of a processor;
// they take a tenth of a second.
func TestWideCSV(t *testing.T) {
	table, err := read(t.Context(), ".csv", wide(parquet.MaxColumns))
	if err != nil || len(table.Names) != parquet.MaxColumns || table.Len() != 1 {
		t.Fatalf("%d columns: %v", parquet.MaxColumns, err)
	}
	begun := cputime.Used()
	most := 200_000
	if testing.Short() {
		most = 20_000
	}
	for _, n := range []int{parquet.MaxColumns + 1, most} {
		if _, err := read(t.Context(), ".csv", wide(n)); !errors.Is(err, fault.Limit) {
			t.Errorf("%d columns: %v", n, err)
		}
	}
	if took := cputime.Used() - begun; took > 10*time.Second {
		t.Errorf("refusing took %v", took)
	}
	twice := append([]byte("c7,"), wide(parquet.MaxColumns-1)...)
	if _, err := read(t.Context(), ".csv", twice); !errors.Is(err, fault.Corrupt) {
		t.Errorf("a name that is there twice: %v", err)
	}
}

// counting is a context that ends once it was asked limit times whether it has.
type counting struct {
	context.Context
	asked, limit int
}

func (c *counting) Err() error {
	if c.asked++; c.asked > c.limit {
		return context.Canceled
	}
	return nil
}

// TestOpeningEndsWithItsCaller promises that the parser of a table asks at least every 8,192 rows, which take a few
// milliseconds, whether its caller is still there, and ends with it whenever that leaves.
func TestOpeningEndsWithItsCaller(t *testing.T) {
	race.SkipCovered(t)
	const rows = 40_000
	var csv, items bytes.Buffer
	csv.WriteString("path,x,y,time\n")
	for i := range rows {
		fmt.Fprintf(&csv, "%d.tif,%d,%d.5,2024-01-01T00:00:00Z\n", i, i, i)
		fmt.Fprintf(&items, `{"type":"Feature","id":"%d",`+
			`"properties":{"datetime":"2024-01-01T00:00:00Z","x":%d},`+
			`"assets":{"a":{"href":"%d.tif"}}}`+"\n", i, i, i)
	}
	for ext, b := range map[string][]byte{".csv": csv.Bytes(), ".ndjson": items.Bytes()} {
		whole := &counting{Context: t.Context(), limit: math.MaxInt}
		if _, err := read(whole, ext, b); err != nil {
			t.Fatal(err)
		}
		if whole.asked < rows/8192 {
			t.Errorf("%s: %d rows ask %d times, want at least %d", ext, rows, whole.asked, rows/8192)
		}
		for part := range 3 {
			ctx := &counting{Context: t.Context(), limit: whole.asked * part / 3}
			if _, err := read(ctx, ext, b); !errors.Is(err, context.Canceled) {
				t.Errorf("%s: left after %d of %d questions: %v, want an error of a cancelled call", ext, ctx.limit,
					whole.asked, err)
			}
		}
	}
}

// TestDeepCells: a cell of lists in each other is a value that is left out, and costs no more than its text.
func TestDeepCells(t *testing.T) {
	for name, deep := range map[string]string{
		"lists":   strings.Repeat("[", 9000) + strings.Repeat("]", 9000),
		"pairs":   strings.Repeat("[1,", 5000) + "1" + strings.Repeat("]", 5000),
		"objects": strings.Repeat(`{"a":`, 5000) + "1" + strings.Repeat("}", 5000),
	} {
		b := []byte(`[{"image":"a.tif","x":` + deep + `}]`)
		taken.Check(t, len(b), 3*taken.FactorJSON, func() {
			table, err := read(t.Context(), ".json", b)
			if err != nil || !slices.Contains(table.Names, "image") {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
}
