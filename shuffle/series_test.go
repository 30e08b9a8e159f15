package shuffle

import (
	"fmt"
	"testing"
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
