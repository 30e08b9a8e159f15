package query

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/tables"
	"github.com/chaski-eo/chaski/format/tables/query/internal/vec"
	"github.com/chaski-eo/chaski/tools/testkit/corpus"
	"github.com/chaski-eo/chaski/tools/testkit/named"
	"github.com/chaski-eo/chaski/tools/testkit/race"
)

// TestNanosecondsAreCompared promises that timestamps that differ by less than a microsecond are not equal when they
// are compared, sorted, grouped, joined or pruned; the oracle computes with int64.
func TestNanosecondsAreCompared(t *testing.T) {
	race.SkipCovered(t)
	type row struct {
		ID int64      `parquet:"id"`
		T  time.Time  `parquet:"t,timestamp(nanosecond:local)"`
		U  time.Time  `parquet:"u,timestamp(microsecond:local)"`
		Z  time.Time  `parquet:"z,timestamp(nanosecond)"`
		N  *time.Time `parquet:"n,optional,timestamp(nanosecond:local)"`
		S  string     `parquet:"s"`
	}
	rng := rand.New(rand.NewPCG(3, 4))
	const n = 9000 // of more than two batches, of which the first has no nanoseconds in n
	rows := make([]row, n)
	base := time.Date(1969, 12, 31, 23, 59, 59, 999_990_000, time.UTC)
	for i := range rows {
		at := base.Add(time.Duration(rng.IntN(20_000))) // on both sides of 1970
		rows[i] = row{ID: int64(i), T: at, U: at.Truncate(time.Microsecond), Z: at, S: strings.Repeat("x", 40)}
		switch {
		case i < vec.BatchRows && i%3 > 0:
			rows[i].N = &rows[i].U
		case i%5 > 0:
			rows[i].N = &rows[i].Z
		}
	}
	slices.SortStableFunc(rows[:n/2], func(a, b row) int { return a.T.Compare(b.T) }) // so that pages differ
	var b bytes.Buffer
	w := parquet.NewGenericWriter[row](&b, parquet.PageBufferSize(1000))
	for lo := 0; lo < n; lo += n / 6 {
		if _, err := w.Write(rows[lo:][:n/6]); err != nil {
			t.Fatal(err)
		}
		if err := w.Flush(); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	ask := func(sql string) *tables.Table {
		t.Helper()
		tab, err := tables.Read(t.Context(), &corpus.Mem{B: b.Bytes()}, 0, int64(b.Len()), tables.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if c := tab.Columns(); !c[1].Type.Nano || c[1].Type.UTC || c[2].Type.Nano || !c[3].Type.UTC {
			t.Fatal(c)
		}
		if _, some, err := tab.Prune(t.Context(),
			[]tables.Range{{Column: 1, Hi: rows[7].T.UnixMicro()}}); err != nil || len(some) == 0 || len(some) == n {
			t.Fatalf("%d rows are looked at, %v: pages are not told apart", len(some), err)
		}
		out, err := Run(t.Context(), sql, named.Tables(map[string]*tables.Table{"data": tab}))
		if err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
		return out
	}
	ints := func(sql string, column int) []int64 {
		t.Helper()
		v, err := ask(sql).At(t.Context(), column)
		if err != nil {
			t.Fatal(err)
		}
		out, ns := slices.Clone(v.Ints()), v.Nanos()
		if v.Kind() == tables.Timestamp {
			for i := range out {
				if out[i] *= 1000; ns != nil {
					out[i] += ns[i]
				}
			}
		}
		return out
	}
	where := func(sql string, holds func(r *row) bool) {
		t.Helper()
		var want []int64
		for i := range rows {
			if holds(&rows[i]) {
				want = append(want, rows[i].ID)
			}
		}
		if got := ints("SELECT id FROM data WHERE "+sql, 0); !slices.Equal(got, want) {
			t.Errorf("%s: %d rows, want %d", sql, len(got), len(want))
		}
	}
	ops := map[string]func(o int) bool{
		"=": func(o int) bool {
			return o == 0
		}, "<>": func(o int) bool { return o != 0 }, "<": func(o int) bool { return o < 0 },
		"<=": func(o int) bool {
			return o <= 0
		}, ">": func(o int) bool { return o > 0 }, ">=": func(o int) bool { return o >= 0 },
	}
	literals := []string{rows[7].T.Format("2006-01-02 15:04:05.000000000"),
		rows[n-1].T.Format("2006-01-02T15:04:05.000000000Z"), "1970-01-01", "1970-01-01 00:00:00.000001",
		"1969-12-31 23:59:59.9999999"}
	for op, holds := range ops {
		for _, l := range literals {
			at, err := time.Parse("2006-01-02T15:04:05.999999999",
				strings.TrimSuffix(strings.Replace(l, " ", "T", 1), "Z"))
			if err != nil {
				at, err = time.Parse("2006-01-02", l)
			}
			if err != nil {
				t.Fatal(err)
			}
			where(fmt.Sprintf("t %s '%s'", op, l), func(r *row) bool { return holds(r.T.Compare(at)) })
			where(fmt.Sprintf("z %s '%s'", op, l), func(r *row) bool { return holds(r.T.Compare(at)) })
			where(fmt.Sprintf("n %s '%s'", op, l), func(r *row) bool { return r.N != nil && holds(r.N.Compare(at)) })
			where(fmt.Sprintf("NOT (n %s '%s')", op, l), func(r *row) bool {
				return r.N != nil && !holds(r.N.Compare(at))
			})
		}
		where("t "+op+" u", func(r *row) bool { return holds(r.T.Compare(r.U)) })
		where("u "+op+" n", func(r *row) bool { return r.N != nil && holds(r.U.Compare(*r.N)) })
		where("t "+op+" TIMESTAMP '1970-01-01 00:00:00.000003'", func(r *row) bool {
			return holds(r.T.Compare(time.UnixMicro(3)))
		})
	}
	a, c := rows[7].T, rows[n/4].T
	lit := func(x time.Time) string { return "'" + x.Format("2006-01-02 15:04:05.000000000") + "'" }
	where("t IN ("+lit(a)+","+lit(c)+")", func(r *row) bool { return r.T.Equal(a) || r.T.Equal(c) })
	where("t BETWEEN "+lit(a)+" AND "+lit(c), func(r *row) bool { return !r.T.Before(a) && !r.T.After(c) })
	where("coalesce(n, t) > "+lit(c), func(r *row) bool {
		if r.N != nil {
			return r.N.After(c)
		}
		return r.T.After(c)
	})

	var all, distinct, either []int64
	for i := range rows {
		all = append(all, rows[i].T.UnixNano())
		if either = append(either, rows[i].T.UnixNano()); rows[i].N != nil {
			either[i] = rows[i].N.UnixNano()
		}
	}
	if got := ints("SELECT coalesce(n, t) AS x FROM data", 0); !slices.Equal(got, either) {
		t.Error("coalesce")
	}
	slices.Sort(all)
	distinct = slices.Compact(slices.Clone(all))
	if got := ints("SELECT t FROM data ORDER BY t", 0); !slices.Equal(got, all) {
		t.Error("ORDER BY")
	}
	if got := ints("SELECT DISTINCT t FROM data ORDER BY t", 0); !slices.Equal(got, distinct) {
		t.Errorf("DISTINCT: %d, want %d", len(got), len(distinct))
	}
	if got := ints("SELECT count(DISTINCT t) FROM data", 0); got[0] != int64(len(distinct)) {
		t.Errorf("count(DISTINCT): %d, want %d", got[0], len(distinct))
	}
	if got := ints("SELECT t, count(*) FROM data GROUP BY t", 0); len(got) != len(distinct) {
		t.Errorf("GROUP BY: %d, want %d", len(got), len(distinct))
	}
	for k, want := range []int64{all[0], all[n-1]} {
		if got := ints("SELECT min(t), max(t) FROM data", k); got[0] != want {
			t.Errorf("extreme %d: %d, want %d", k, got[0], want)
		}
	}
	if got, want := ints("SELECT count(*) FROM data a JOIN data b ON a.t = b.u", 0),
		joined(rows, func(r row) (time.Time, time.Time) {
			return r.T, r.U
		}); got[0] != want || want == 0 {
		t.Errorf("JOIN: %d rows, want %d", got[0], want)
	}
	for _, sql := range []string{"SELECT id FROM data WHERE u > '1970-01-01 00:00:00.1234567'",
		"SELECT id FROM data WHERE t > '1970-01-01 00:00:00.1234567891'",
		"SELECT TIMESTAMP '1970-01-01 00:00:00.1234567'"} {
		tab, err := tables.Read(t.Context(), &corpus.Mem{B: b.Bytes()}, 0, int64(b.Len()), tables.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Run(t.Context(), sql,
			named.Tables(map[string]*tables.Table{"data": tab})); fault.KindOf(err) != fault.Unsupported {
			t.Errorf("%s: %v", sql, err)
		}
	}
}

// joined counts the pairs of rows whose times are equal.
func joined[R any](rows []R, times func(R) (a, b time.Time)) (n int64) {
	left := map[int64]int64{}
	for _, r := range rows {
		a, _ := times(r)
		left[a.UnixNano()]++
	}
	for _, r := range rows {
		_, b := times(r)
		n += left[b.UnixNano()]
	}
	return n
}
