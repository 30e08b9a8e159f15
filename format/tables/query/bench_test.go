package query

import (
	"fmt"
	"testing"

	"github.com/chaski-eo/chaski/format/tables"
	"github.com/chaski-eo/chaski/tools/testkit/named"
)

// benchTable has 200,000 rows: enough for many batches and all goroutines of a filter, and too few for the size of the
// processor's cache to matter.
func benchTable() *tables.Table {
	const n = 200_000
	id, cloud, site, split := make([]int64, n), make([]float64, n), make([]string, n), make([]string, n)
	for i := range n {
		id[i] = int64(i * 7919 % n)
		cloud[i] = float64(i*31%1000) / 1000
		site[i] = fmt.Sprintf("site-%05d", i*13%5000)
		split[i] = [...]string{"train", "validation", "test"}[i%3]
	}
	return tables.FromVectors([]string{"id", "cloud", "site", "split"}, []*tables.Vector{
		tables.NewInts(tables.Type{Kind: tables.Int64, Bits: 64}, id, nil),
		tables.NewFloats(tables.Type{Kind: tables.Float64, Bits: 64}, cloud, nil),
		tables.NewStrings(site, nil),
		tables.NewStrings(split, nil),
	})
}

// BenchmarkQuery runs queries of the kinds that select the samples of a training run.
func BenchmarkQuery(b *testing.B) {
	find := named.Tables(map[string]*tables.Table{"data": benchTable()})
	for _, q := range []struct{ name, sql string }{
		{"where", "SELECT id FROM data WHERE cloud < 0.2 AND split = 'train' AND id % 3 = 1"},
		{"like", "SELECT id FROM data WHERE site LIKE '%-04_1_' OR upper(site) = 'SITE-00007'"},
		{"group", "SELECT site, count(*), avg(cloud), max(id) FROM data GROUP BY site"},
		{"order", "SELECT id FROM data ORDER BY cloud DESC, site LIMIT 100"},
		{"join", "SELECT count(*) FROM data a JOIN data b ON a.id = b.id WHERE a.cloud < b.cloud + 0.1"},
		{"case", "SELECT sum(CASE WHEN cloud < 0.5 THEN id ELSE round(cloud * 10) END) FROM data"},
		{"parse", "SELECT " + manyTerms() + " AS x FROM data LIMIT 1"},
	} {
		b.Run(q.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				t, err := Run(b.Context(), q.sql, find)
				if err != nil {
					b.Fatal(err)
				}
				for i := range t.Columns() {
					if _, err := t.At(b.Context(), i); err != nil {
						b.Fatal(err)
					}
				}
			}
		})
	}
}

// manyTerms is a sum of 300 products, to measure the parser and the binder.
func manyTerms() string {
	s := "id"
	for i := range 300 {
		s += fmt.Sprintf(" + %d * id", i%50)
	}
	return s
}
