package draw

import (
	"encoding/binary"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/chaski-eo/chaski/chunk"
	"github.com/chaski-eo/chaski/stats"
	_ "github.com/chaski-eo/chaski/tools/testkit/seed" // random cases are the same in every run
)

// measured returns the panel of a band of bytes.
func measured(t interface {
	Fatal(...any)
}, name string, values []byte, noData *float64,
) Panel {
	f, err := stats.NewField(chunk.Uint8, 1)
	if err != nil {
		t.Fatal(err)
	}
	f.NoData(noData, nil)
	f.AddRows(0, values)
	return Panel{Name: name, Integer: true, Band: f.Report().Bands[0]}
}

// TestBarsOfFewValuesAreTheirCounts: integers over a range below 100 have one bar each, as high as
// their count.
func TestBarsOfFewValuesAreTheirCounts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		lo := rapid.IntRange(0, 156).Draw(t, "lo")
		values := rapid.SliceOfN(rapid.IntRange(lo, lo+rapid.IntRange(0, 99).Draw(t, "range")), 1, 200).Draw(t,
			"values")
		want := map[int]float64{}
		data := make([]byte, len(values))
		for i, v := range values {
			data[i] = byte(v)
			want[v]++
		}
		p := measured(t, "b", data, nil)
		b := p.Bars()
		if b.Beyond != 0 && len(values) < 2000 {
			t.Fatalf("%d of %d samples are beyond", b.Beyond, len(values))
		}
		sum := 0.0
		for i, h := range b.Heights {
			if v := int(b.Edges[i] + 0.5); h != want[v] || b.Edges[i+1]-b.Edges[i] != 1 {
				t.Fatalf("bar %v … %v is %v high, want %v", b.Edges[i], b.Edges[i+1], h, want[v])
			}
			sum += h
		}
		if int(sum) != len(values) {
			t.Fatalf("%v of %d samples", sum, len(values))
		}
	})
}

// TestBarsOfAllValuesAreFlat: a distribution with every integer of a range once is flat, although
// some bins hold one integer more than others.
func TestBarsOfAllValuesAreFlat(t *testing.T) {
	for hi := 100; hi <= 255; hi++ {
		data := make([]byte, hi+1)
		for i := range data {
			data[i] = byte(i)
		}
		p := measured(t, "b", data, nil)
		b := p.Bars()
		want := float64(hi+1) / 100
		for i, h := range b.Heights {
			if math.Abs(h-want) > 1e-9 {
				t.Fatalf("0 … %d: bar %d is %v high, want %v", hi, i, h, want)
			}
		}
	}
}

// TestBarsLeaveOutTails: samples far away do not squeeze the others. A note counts them.
func TestBarsLeaveOutTails(t *testing.T) {
	counts := make([]uint64, 100)
	edges := make([]float64, 101)
	for i := range edges {
		edges[i] = float64(i)
	}
	for i := range 20 {
		counts[10+i] = 1000
	}
	counts[99], counts[0] = 3, 2
	p := Panel{Band: stats.Band{Histogram: &stats.Histogram{Edges: edges, Counts: counts}}}
	b := p.Bars()
	if b.Beyond != 5 || b.Edges[0] != 8 || b.Edges[len(b.Edges)-1] != 32 || slices.Max(b.Heights) != 1000 {
		t.Errorf("bars from %v to %v, %d beyond", b.Edges[0], b.Edges[len(b.Edges)-1], b.Beyond)
	}
	counts[99] = 500 // more than a thousandth
	if b = p.Bars(); b.Edges[len(b.Edges)-1] != 100 {
		t.Errorf("%d samples are cut off", b.Beyond)
	}
}

func TestTicksAreRoundAndInside(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		lo, hi := rapid.Float64().Draw(t, "lo"), rapid.Float64().Draw(t, "hi")
		n := rapid.IntRange(1, 10).Draw(t, "n")
		ticks := Ticks(lo, hi, n)
		if len(ticks) > 4*n {
			t.Fatalf("%d ticks", len(ticks))
		}
		for _, v := range ticks {
			if !(v >= lo && v <= hi) {
				t.Fatalf("%v is not in %v … %v", v, lo, hi)
			}
		}
	})
	for _, c := range []struct {
		lo, hi float64
		want   []float64
	}{
		{0, 10, []float64{0, 2, 4, 6, 8, 10}},
		{-1, 1, []float64{-1, -0.5, 0, 0.5, 1}},
		{3, 4213, []float64{1000, 2000, 3000, 4000}},
		{1, 1, nil},
		{2, 1, nil},
		{math.NaN(), 1, nil},
		{0, math.Inf(1), nil},
	} {
		if got := Ticks(c.lo, c.hi, 5); !slices.Equal(got, c.want) {
			t.Errorf("%v … %v has %v, want %v", c.lo, c.hi, got, c.want)
		}
	}
}

// TestNumbersAreTheirValues: a printed number is within half a unit of its fourth digit.
func TestNumbersAreTheirValues(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := rapid.Float64Range(-1e18, 1e18).Draw(t, "v")
		text, factor := Number(v), 1.0
		for unit, f := range map[string]float64{"k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12} {
			if s, ok := strings.CutSuffix(text, unit); ok {
				text, factor = s, f
			}
		}
		got, err := strconv.ParseFloat(text, 64)
		if err != nil || math.Abs(got*factor-v) > 0.00051*math.Abs(v) {
			t.Fatalf("%v is %q", v, Number(v))
		}
		if len(text) > 12 {
			t.Fatalf("%v is %q", v, text)
		}
	})
	for v, want := range map[float64]string{
		0:        "0",
		1234:     "1234",
		15000:    "15k",
		0.25:     "0.25",
		-3.14159: "-3.142",
		1e-7:     "1e-07",
		2.5e6:    "2.5M",
		1e21:     "1e21",
	} {
		if got := Number(v); got != want {
			t.Errorf("%v is %q, want %q", v, got, want)
		}
	}
}

func TestPercent(t *testing.T) {
	for _, c := range []struct {
		n, all uint64
		want   string
	}{
		{0, 0, "0 %"},
		{0, 9, "0 %"},
		{9, 9, "100 %"},
		{1, 1e9, "< 0.01 %"},
		{1e9 - 1, 1e9, "> 99.99 %"},
		{1, 8, "12.5 %"},
		{1, 1000, "0.10 %"},
	} {
		if got := Percent(c.n, c.all); got != c.want {
			t.Errorf("%d of %d is %q, want %q", c.n, c.all, got, c.want)
		}
	}
}

// TestBarsOfExtremes: bars of ranges at the limits of floats lie between 0 and 1.
func TestBarsOfExtremes(t *testing.T) {
	for _, r := range [][2]float64{
		{-math.MaxFloat64, math.MaxFloat64},
		{0, math.SmallestNonzeroFloat64},
		{1e300, 1.1e300},
		{-1, math.Nextafter(-1, 0)},
		{7, 7},
	} {
		f, err := stats.NewField(chunk.Float64, 1)
		if err != nil {
			t.Fatal(err)
		}
		data := binary.LittleEndian.AppendUint64(nil, math.Float64bits(r[0]))
		f.AddRows(0, binary.LittleEndian.AppendUint64(data, math.Float64bits(r[1])))
		bars := (&Panel{Name: "b", Band: f.Report().Bands[0]}).Bars()
		for _, edge := range bars.Edges {
			if at := bars.At(edge); !(at >= 0 && at <= 1) {
				t.Errorf("%v: the edge %v is at %v", r, edge, at)
			}
		}
	}
}
