package eval_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	pqgo "github.com/parquet-go/parquet-go"

	"github.com/chaski-eo/chaski/format/tables"
	"github.com/chaski-eo/chaski/format/tables/query"
	"github.com/chaski-eo/chaski/format/tables/query/internal/eval"
	"github.com/chaski-eo/chaski/format/tables/query/internal/sql"
	"github.com/chaski-eo/chaski/tools/testkit/corpus"
	"github.com/chaski-eo/chaski/tools/testkit/named"
	"github.com/chaski-eo/chaski/tools/testkit/race"
)

type place struct {
	ID     int64    `parquet:"id"`
	Split  string   `parquet:"split,dict"`
	Region *string  `parquet:"region,optional,dict"`
	Cloud  *float64 `parquet:"cloud,optional"`
}

// places is the same table twice: from Parquet, with coded strings, and from vectors.
func places(t *testing.T, n int) (coded, flat *tables.Table) {
	t.Helper()
	rows := make([]place, n)
	ids, splits, regions, clouds := make([]int64, n), make([]string, n), make([]string, n), make([]float64, n)
	noRegion, noCloud := make([]bool, n), make([]bool, n)
	for i := range rows {
		ids[i], splits[i] = int64(i), []string{"train", "test", "", "Test"}[i*i%7%4]
		rows[i] = place{ID: ids[i], Split: splits[i]}
		if noRegion[i] = i%5 == 3; !noRegion[i] {
			regions[i] = []string{"north", "south", "middle"}[i%3]
			rows[i].Region = &regions[i]
		}
		if noCloud[i] = i%9 == 1; !noCloud[i] {
			clouds[i] = float64(i*37%1000) / 10
			rows[i].Cloud = &clouds[i]
		}
	}
	var b bytes.Buffer
	w := pqgo.NewGenericWriter[place](&b, pqgo.MaxRowsPerRowGroup(30_000))
	if _, err := w.Write(rows); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	coded, err := tables.Read(t.Context(), &corpus.Mem{B: b.Bytes()}, 0, int64(b.Len()), tables.Options{})
	if err != nil {
		t.Fatal(err)
	}
	flat = tables.FromVectors([]string{"id", "split", "region", "cloud"}, []*tables.Vector{
		tables.NewInts(sql.Int64, ids, nil), tables.NewStrings(splits, nil),
		tables.NewStrings(regions, noRegion), tables.NewFloats(sql.Double, clouds, noCloud),
	})
	return coded, flat
}

// TestConditionsOnCodes promises that a condition computed once for each distinct string, on several goroutines, finds
// the rows that it finds row by row.
func TestConditionsOnCodes(t *testing.T) {
	race.SkipCovered(t)
	const n = 4*eval.FewRows + 777 // several parts
	coded, flat := places(t, n)
	for _, name := range []string{"split", "region"} {
		v, err := coded.Column(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		if codes, _ := v.Coded(); codes == nil {
			t.Fatalf("%s has no codes", name)
		}
	}
	tables := func(tab *tables.Table) query.Tables {
		return named.Tables(map[string]*tables.Table{"data": tab, "few": tables.FromVectors([]string{"k", "name"},
			[]*tables.Vector{tables.NewInts(sql.Int64, []int64{1, 3, 8, -5}, nil),
				tables.NewStrings([]string{"test", "x", "south", "q"}, nil)})})
	}
	for i, where := range []string{
		"split = 'test'", "'test' = split", "split <> 'test'", "split > 'a'", "split = 'nowhere'",
		"split = ''", "region = 'south'",
		"region <> 'south'", "NOT region = 'south'", "NOT (region = 'south' OR split = 'test')", "region IS NULL",
		"region IS NOT NULL",
		"region IN ('south', 'north')", "region NOT IN ('south', 'north')", "region IN ('south', NULL)",
		"region NOT IN ('south', NULL)",
		"region LIKE '%o%'", "region NOT LIKE '%o%'", "split ILIKE 'TEST'",
		"(region = 'south') IS TRUE", "(region = 'south') IS NOT TRUE", "(region = 'south') IS NULL", "region = NULL",
		"split = 'test' AND region = 'south'", "split = 'test' OR region = 'south'", "split = region",
		"upper(split) = 'TEST'",
		"split || 'x' = 'testx'", "split = 'test' AND cloud < 20",
		"cloud < 20 AND (region IS NULL OR region = 'south')", "cloud < 2",
		"cloud IS NULL AND region IS NULL", "id % 1000 = 7 AND region BETWEEN 'a' AND 'n'",
		"length(region) = 5", "cloud > 200",
		"split = 'test' AND (region = 'south' OR NULL)", "split BETWEEN 'tess' AND 'tesu'",
	} {
		if testing.Short() && i%8 != 0 {
			continue // the race detector sees the same workers for every condition
		}
		want, err := query.Run(t.Context(), "SELECT id, split, cloud FROM data WHERE "+where, tables(flat))
		if err != nil {
			t.Errorf("%s: %v", where, err)
			continue
		}
		got, err := query.Run(t.Context(), "SELECT id, split, cloud FROM data WHERE "+where, tables(coded))
		if err != nil {
			t.Errorf("%s: %v", where, err)
			continue
		}
		rows, err := query.Where(t.Context(), coded, where)
		if err != nil {
			t.Fatal(err)
		}
		oneByOne, err := query.Run(t.Context(), fmt.Sprintf("SELECT id, split, cloud FROM data WHERE %s LIMIT %d",
			where, n), tables(flat))
		if err != nil {
			t.Fatal(err)
		}
		text := rowsOf(t, want)
		if !slices.Equal(rowsOf(t, got), text) || !slices.Equal(rowsOf(t, oneByOne), text) || len(rows) != len(text) {
			t.Errorf("%s: %d and %d rows, want %d of them %d", where, got.Len(), oneByOne.Len(), want.Len(), len(rows))
		}
	}
	for _, sql := range []string{
		"SELECT d.id, few.name FROM data d JOIN few ON d.id = few.k WHERE d.id < 10 AND (d.region = 'south' " +
			"OR few.name IS NULL)",
		"SELECT few.k, d.split, d.region FROM few JOIN data d ON d.id = few.k WHERE d.region IS NULL OR " +
			"d.split = 'test'",
		"SELECT few.k, d.id FROM few JOIN data d ON few.name = d.split AND d.region = 'south' WHERE d.id < 1000",
		"SELECT region, count(*) AS n, min(split), max(cloud) FROM data WHERE split <> 'train' GROUP BY region " +
			"ORDER BY n, region",
		"SELECT DISTINCT split, region FROM data WHERE region <> 'north' ORDER BY 1, 2",
		"SELECT split = 'test' AS t, count(*) FROM data GROUP BY t ORDER BY t",
		"SELECT id FROM data WHERE region = 'south' ORDER BY split, cloud, id LIMIT 20 OFFSET 3",
		"SELECT count(*) FROM data WHERE region = 'south' OR split = 'train'",
		"SELECT 1 AS one WHERE 1 = 1",
	} {
		want, err := query.Run(t.Context(), sql, tables(flat))
		if err != nil {
			t.Errorf("%s: %v", sql, err)
			continue
		}
		got, err := query.Run(t.Context(), sql, tables(coded))
		if err != nil || want.Len() == 0 || !slices.Equal(rowsOf(t, got), rowsOf(t, want)) {
			t.Errorf("%s: %v, another result: %d rows, want %d", sql, err, got.Len(), want.Len())
		}
	}
}

// rowsOf formats the rows of a table.
func rowsOf(t *testing.T, tab *tables.Table) []string {
	t.Helper()
	out := make([]string, tab.Len())
	var b strings.Builder
	for i := range out {
		b.Reset()
		for c := range tab.Columns() {
			v, err := tab.At(t.Context(), c)
			if err != nil {
				t.Fatal(err)
			}
			b.Write(v.AppendJSON(nil, i))
			b.WriteByte(' ')
		}
		out[i] = b.String()
	}
	return out
}

// TestPartsFailAsOne promises that an error in one part of a parallel search is the query's.
func TestPartsFailAsOne(t *testing.T) {
	_, flat := places(t, 4*eval.FewRows)
	for _, where := range []string{"id * 71000000000000 > 0", "(id - 70000) * 9000000000000000000 < 0"} {
		if _, err := query.Where(t.Context(), flat, where); err == nil {
			t.Errorf("%s: no error", where)
		}
	}
}
