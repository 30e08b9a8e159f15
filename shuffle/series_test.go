package shuffle

import (
	"cmp"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestSeriesRefuses(t *testing.T) {
	for _, c := range []struct {
		keys, times    int
		rows           []uint32
		length, stride int
	}{
		{3, 2, nil, 1, 1},
		{3, 3, nil, 0, 1},
		{3, 3, nil, 1, 0},
		{3, 3, nil, maxLength + 1, 1},
		{3, 3, []uint32{3}, 1, 1},
	} {
		_, err := NewSeries(make([]int, c.keys), make([]int64, c.times), c.rows, c.length, c.stride, false)
		if err == nil {
			t.Errorf("%+v was accepted", c)
		}
	}
	s, err := NewSeries([]int{}, nil, nil, 1, 1, false)
	if err != nil || s.Len() != 0 {
		t.Errorf("an empty series: %+v, %v", s, err)
	}
}

// TestStrataAreBalanced: a mixture of a column's strata with equal counts has each value equally
// often, and rows keep their numbers.
func TestStrataAreBalanced(t *testing.T) {
	keys := make([]string, 100)
	for i := range keys {
		keys[i] = []string{"sea", "ice", "sea", "sea", "land"}[i%5]
	}
	strata := Strata(keys, nil)
	weights, m := make([]float64, len(strata)), Mixture{Until: Given, Length: WordLen}
	for i, s := range strata {
		weights[i] = 1
		m.Sources = append(m.Sources, Source{Dataset: &Dataset{Items: 100, Rows: s.Rows}})
	}
	var err error
	if m.Counts, err = Apportion(WordLen, weights); err != nil {
		t.Fatal(err)
	}
	pl := mustPlan(t, Spec{Seed: 2, Shuffle: true, Source: Source{Mixture: &m}})
	counts := map[string]int{}
	for p := range pl.Len() {
		d := pl.At(0, p)
		if keys[d.Row] != strata[d.Dataset].Key {
			t.Fatalf("row %d has %q", d.Row, keys[d.Row])
		}
		counts[keys[d.Row]]++
	}
	if fmt.Sprint(counts) != "map[ice:3334 land:3333 sea:3333]" {
		t.Errorf("%v", counts)
	}
	if s := Strata([]int{5, 3, 5, 3}, []uint32{2, 1, 0}); fmt.Sprint(s) != "[{3 [1]} {5 [2 0]}]" {
		t.Errorf("%v", s)
	}
}

func TestApportionRefuses(t *testing.T) {
	for _, w := range [][]float64{nil, {0}, {-1, 2}, {1, inf()}, {inf() - inf()}, {1, 1, 1, 1}, {1.7e308, 1.7e308}} {
		if parts, err := Apportion(3, w); err == nil {
			t.Errorf("%v: %v", w, parts)
		}
	}
}

func TestTemperature(t *testing.T) {
	sizes := []int64{10, 1000, 100_000}
	for _, c := range []struct {
		t    float64
		want string
	}{{1, "[1 99 9900]"}, {2, "[90 901 9009]"}, {1e9, "[3333 3333 3334]"}, {1e-9, "[1 1 9998]"}} {
		w, err := Temperature(sizes, c.t)
		if err != nil {
			t.Fatal(err)
		}
		parts, err := Apportion(WordLen, w)
		if err != nil || fmt.Sprint(parts) != c.want {
			t.Errorf("temperature %v: %v, %v", c.t, parts, err)
		}
	}
	if _, err := Temperature([]int64{1, 0}, 1); err == nil {
		t.Error("an empty source was accepted")
	}
	if _, err := Temperature(sizes, 0); err == nil {
		t.Error("temperature 0 was accepted")
	}
}

// TestSeriesAgainstASlowOne: the sequences of each group, in the order of its first row, begin at every stride of its
// rows in order of time. With cut they are those that are full, otherwise they go on until all rows are in one.
func TestSeriesAgainstASlowOne(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 12).Draw(t, "rows")
		keys := rapid.SliceOfN(rapid.IntRange(0, 2), n, n).Draw(t, "keys")
		times := rapid.SliceOfN(rapid.Int64Range(0, 5), n, n).Draw(t, "times")
		length, stride := rapid.IntRange(1, 5).Draw(t, "length"), rapid.IntRange(1, 5).Draw(t, "stride")
		cut := rapid.Bool().Draw(t, "cut")
		var rows []uint32
		for row := range uint32(n) {
			rows = append(rows, row)
		}
		series, err := NewSeries(keys, times, nil, length, stride, cut)
		if n > 0 && rapid.Bool().Draw(t, "listed") {
			rows = rapid.Permutation(rows).Draw(t, "order")[:rapid.IntRange(1, n).Draw(t, "count")]
			series, err = NewSeries(keys, times, rows, length, stride, cut)
		}
		if err != nil {
			t.Fatal(err)
		}
		var order []int // keys in the order of their first row
		groups := map[int][]uint32{}
		for _, row := range rows {
			if _, seen := groups[keys[row]]; !seen {
				order = append(order, keys[row])
			}
			groups[keys[row]] = append(groups[keys[row]], row)
		}
		var want [][]int64
		for _, key := range order {
			group := groups[key]
			slices.SortFunc(group, func(a, b uint32) int {
				return cmp.Or(cmp.Compare(times[a], times[b]), cmp.Compare(a, b))
			})
			for start := 0; start < len(group); start += stride {
				if cut && start+length > len(group) || !cut && start > 0 && start-stride+length >= len(group) {
					break
				}
				sequence := slices.Repeat([]int64{-1}, length)
				for k := range length {
					if start+k < len(group) {
						sequence[k] = int64(group[start+k])
					}
				}
				want = append(want, sequence)
			}
		}
		if series.Len() != int64(len(want)) || series.Length() != length {
			t.Fatalf("%d sequences of %d, want %d", series.Len(), series.Length(), len(want))
		}
		for i, sequence := range want {
			got := make([]int64, length)
			series.Rows(int64(i), got)
			if !slices.Equal(got, sequence) || series.First(int64(i)) != sequence[0] {
				t.Fatalf("sequence %d is %v from row %d, want %v", i, got, series.First(int64(i)), sequence)
			}
			for k := range length {
				if row := series.Row(int64(i), k); row != sequence[k] {
					t.Fatalf("row %d of sequence %d is %d, want %d", k, i, row, sequence[k])
				}
			}
		}
	})
}
