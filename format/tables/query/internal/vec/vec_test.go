package vec

import (
	"bytes"
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"github.com/chaski-eo/chaski/format/tables"
)

var wide = tables.Type{Kind: tables.Int64, Bits: 64}

// TestSortRows: rows stand in the order of a stable sort, with nulls at the end that the key says, and a limit is a
// prefix.
func TestSortRows(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 3))
	for range 200 {
		n := r.IntN(60)
		numbers, nulls, names := make([]int64, n), make([]bool, n), make([]string, n)
		for i := range n {
			numbers[i], nulls[i], names[i] = int64(r.IntN(4)), r.IntN(5) == 0, strconv.Itoa(r.IntN(3))
		}
		keys := []SortKey{
			{Values: tables.NewInts(wide, numbers, nulls), Desc: r.IntN(2) == 0, NullsFirst: r.IntN(2) == 0},
			{Values: tables.NewStrings(names, nil), Desc: r.IntN(2) == 0},
		}
		want := make([]int32, n)
		for i := range want {
			want[i] = int32(i)
		}
		sign := func(down bool) int {
			if down {
				return -1
			}
			return 1
		}
		place := func(row int32) int { // of nulls, wherever the numbers stand
			if !nulls[row] {
				return 0
			}
			return sign(keys[0].NullsFirst)
		}
		slices.SortStableFunc(want, func(a, b int32) int {
			first := cmp.Compare(place(a), place(b))
			if !nulls[a] && !nulls[b] {
				first = sign(keys[0].Desc) * cmp.Compare(numbers[a], numbers[b])
			}
			return cmp.Or(first, sign(keys[1].Desc)*cmp.Compare(names[a], names[b]))
		})
		if got := SortRows(keys, n, -1); !slices.Equal(got, want) {
			t.Fatalf("%+v of %v, %v, %q: %v, want %v", keys, numbers, nulls, names, got, want)
		}
		if limit := r.IntN(n + 1); !slices.Equal(SortRows(keys, n, limit), want[:limit]) {
			t.Fatalf("the first %d of %v differ", limit, want)
		}
	}
}

// TestKeys: keys are equal exactly where values are: null is no number, -0 is 0, NaN is itself, and the end of one
// string is not the begin of the next.
func TestKeys(t *testing.T) {
	nan := math.Float64frombits(math.Float64bits(math.NaN()) | 1)
	floats := tables.NewFloats(tables.Type{Kind: tables.Float64, Bits: 64},
		[]float64{0, math.Copysign(0, -1), math.NaN(), nan, 1, 0}, []bool{false, false, false, false, false, true})
	class := []int{0, 0, 1, 1, 2, 3}
	for i, a := range class {
		for k, b := range class {
			if same := bytes.Equal(AppendKey(nil, floats, i), AppendKey(nil, floats, k)); same != (a == b) {
				t.Errorf("floats %d and %d have equal keys: %t", i, k, same)
			}
		}
	}
	first, second := tables.NewStrings([]string{"ab", "a"}, nil), tables.NewStrings([]string{"c", "bc"}, nil)
	groups := GroupRows(2, []*tables.Vector{first, second})
	if !slices.Equal(groups.Of, []int32{0, 1}) || !slices.Equal(groups.First, []int32{0, 1}) {
		t.Errorf("ab, c and a, bc are groups %v", groups.Of)
	}
}

// TestKeySet: keys get numbers in the order in which they come, and keep them.
func TestKeySet(t *testing.T) {
	set, numbers := NewKeySet(), map[string]int32{}
	r := rand.New(rand.NewPCG(4, 3))
	for range 5000 {
		key := strconv.Itoa(r.IntN(1500))
		want, known := numbers[key]
		if !known {
			want = int32(len(numbers))
			numbers[key] = want
		}
		if got, added := set.Add([]byte(key)); got != want || added == known {
			t.Fatalf("%s: %d, added %t, want %d", key, got, added, want)
		}
		if got := set.Find([]byte(key)); got != want {
			t.Fatalf("%s: %d, want %d", key, got, want)
		}
	}
	if n := set.Find([]byte("other")); n != -1 {
		t.Errorf("a key that is not there has number %d", n)
	}
}

// TestOrderFloat: NaN is equal to itself and above all numbers.
func TestOrderFloat(t *testing.T) {
	ascending := []float64{math.Inf(-1), -1, 0, 1, math.Inf(1), math.NaN()}
	for i, a := range ascending {
		for k, b := range ascending {
			if got := OrderFloat(a, b); got != cmp.Compare(i, k) {
				t.Errorf("%v and %v: %d", a, b, got)
			}
		}
	}
}
