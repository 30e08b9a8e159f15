package encode_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/parquet-go/parquet-go"

	"github.com/chaski-eo/chaski/format/tables"
	"github.com/chaski-eo/chaski/format/tables/encode"
)

// levelRow is a row of a level of 100,000 samples, as chaski pack --columns stac,stats makes them.
type levelRow struct {
	id, crs, split string
	cloud          float64
	point          []byte
	stats          []float64
}

// levelRows returns n random rows.
func levelRows(n int, seed uint64) []levelRow {
	rng := rand.New(rand.NewPCG(seed, 3))
	rows := make([]levelRow, n)
	for i := range rows {
		r := &rows[i]
		r.id, r.crs = fmt.Sprintf("tile_%08x", rng.Uint32()), fmt.Sprintf("EPSG:%d", 32601+rng.IntN(60))
		r.split, r.cloud = []string{"train", "test"}[rng.IntN(2)], 100*rng.Float64()
		r.point = binary.LittleEndian.AppendUint64([]byte{1, 1, 0, 0, 0}, rng.Uint64())
		r.point = binary.LittleEndian.AppendUint64(r.point, rng.Uint64())
		for range 4 {
			r.stats = append(r.stats, 1e4*rng.Float64())
		}
	}
	return rows
}

// tableOf returns rows as a table, with their numbers.
func tableOf(rows []levelRow) *tables.Table {
	n := len(rows)
	ids, crs, splits := make([]string, n), make([]string, n), make([]string, n)
	numbers, clouds := make([]int64, n), make([]float64, n)
	var points []byte
	var stats []float64
	ends, lists := make([]uint32, 1, n+1), make([]uint32, 1, n+1)
	for i, r := range rows {
		ids[i], crs[i], splits[i], numbers[i], clouds[i] = r.id, r.crs, r.split, int64(i), r.cloud
		points, stats = append(points, r.point...), append(stats, r.stats...)
		ends, lists = append(ends, uint32(len(points))), append(lists, uint32(len(stats)))
	}
	float := tables.Type{Kind: tables.Float64, Bits: 64}
	return tables.FromVectors([]string{"id", "crs", "split", "number", "cloud", "point", "stats"}, []*tables.Vector{
		tables.NewStrings(ids, nil), tables.NewStrings(crs, nil), tables.NewStrings(splits, nil),
		tables.NewInts(tables.Type{Kind: tables.Int64, Bits: 64}, numbers, nil), tables.NewFloats(float, clouds, nil),
		tables.NewBytes(tables.Type{Kind: tables.Binary}, points, ends, nil),
		tables.NewList(tables.NewFloats(float, stats, nil), lists, nil)})
}

// pagesOf returns the pages of a Parquet file, header and all, as its own index says.
func pagesOf(t *testing.T, b []byte) (pages [][]byte) {
	t.Helper()
	f, err := parquet.OpenFile(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	for _, g := range f.RowGroups() {
		for _, c := range g.ColumnChunks() {
			x, err := c.OffsetIndex()
			if err != nil {
				t.Fatal(err)
			}
			for i := range x.NumPages() {
				pages = append(pages, b[x.Offset(i):x.Offset(i)+x.CompressedPageSize(i)])
			}
		}
	}
	return pages
}

// left returns the share of the bytes of a file that lie in pages which another file has too.
func left(t *testing.T, old, changed []byte) float64 {
	t.Helper()
	known := map[[32]byte]bool{}
	for _, p := range pagesOf(t, old) {
		known[sha256.Sum256(p)] = true
	}
	same := 0
	for _, p := range pagesOf(t, changed) {
		if known[sha256.Sum256(p)] {
			same += len(p)
		}
	}
	return float64(same) / float64(len(changed))
}

// TestChangesLeavePages: of a level with 100,000 rows, a change of one in a hundred leaves nine tenths of the bytes,
// whether rows were exchanged, or one column of them has other values. Rows that were removed or added leave less,
// because later rows have other numbers, and more than pages of rows that are counted.
func TestChangesLeavePages(t *testing.T) {
	const n, some = 100_000, 1000
	write := func(rows []levelRow, form func(io.Writer, *tables.Table) error) []byte {
		var b bytes.Buffer
		if err := form(&b, tableOf(rows)); err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}
	content := func(w io.Writer, table *tables.Table) error { return encode.ByContent(t.Context(), w, table) }
	counted := func(w io.Writer, table *tables.Table) error { return encode.Table(t.Context(), w, table) }
	rows, others := levelRows(n, 1), levelRows(some, 2)
	old := write(rows, content)
	pages := pagesOf(t, old)
	t.Logf("%d pages of %d bytes in %d", len(pages), len(old)/len(pages), len(old))
	for name, change := range map[string]func() []levelRow{
		"removed": func() []levelRow { return slices.Concat(rows[:40_000], rows[41_000:]) },
		"exchanged": func() []levelRow {
			return append(append(append([]levelRow{}, rows[:40_000]...), others...), rows[41_000:]...)
		},
		"added": func() []levelRow {
			return append(append(append([]levelRow{}, rows[:40_000]...), others...), rows[40_000:]...)
		},
		"scattered values": func() []levelRow {
			out := append([]levelRow{}, rows...)
			for i := range some {
				out[i*n/some].split = "validation"
			}
			return out
		},
	} {
		now := change()
		share := left(t, old, write(now, content))
		t.Logf("%s: %.3f left", name, share)
		if name == "removed" {
			if by := left(t, write(rows, counted), write(now, counted)); by >= share {
				t.Errorf("pages of counted rows leave %.3f, no less than %.3f", by, share)
			}
		}
		want := 0.9
		if name == "removed" || name == "added" {
			want = 0.8 // the numbers of all later rows change, too
		}
		if share < want {
			t.Errorf("%s: %.3f of the bytes are left, want %.1f", name, share, want)
		}
	}
}

// TestPagesByContentAreReadBack: a table whose pages end where their values say is the same table.
func TestPagesByContentAreReadBack(t *testing.T) {
	want := tableOf(levelRows(5000, 4))
	var b bytes.Buffer
	if err := encode.ByContent(t.Context(), &b, want); err != nil {
		t.Fatal(err)
	}
	same(t, read(t, b.Bytes()), want, asIs)
	if n := len(pagesOf(t, b.Bytes())); n <= len(want.Columns()) {
		t.Errorf("%d pages of %d columns", n, len(want.Columns()))
	}
}
