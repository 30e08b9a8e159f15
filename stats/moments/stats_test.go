package moments

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/internal/cast"
	"github.com/chaski-eo/chaski/internal/kernel"
	"github.com/chaski-eo/chaski/stats"
	_ "github.com/chaski-eo/chaski/tools/testkit/seed" // random cases are the same in every run
	"github.com/chaski-eo/chaski/tools/testkit/testfile"
)

var measured = []chunk.DType{
	chunk.Uint8, chunk.Int8, chunk.Uint16, chunk.Int16, chunk.Uint32, chunk.Int32,
	chunk.Uint64, chunk.Int64, chunk.Float16, chunk.BFloat16, chunk.Float32, chunk.Float64,
}

func isFloat(d chunk.DType) bool {
	switch d {
	case chunk.Float16, chunk.BFloat16, chunk.Float32, chunk.Float64:
		return true
	}
	return false
}

// put appends the sample with the given bits.
func put(b []byte, d chunk.DType, u uint64) []byte {
	for k := range d.Size() {
		b = append(b, byte(u>>(8*k)))
	}
	return b
}

// real returns a sample as an exact number. ok is false for NaN and infinities.
func real(d chunk.DType, u uint64) (r *big.Rat, f float64, ok bool) {
	switch d {
	case chunk.Uint8, chunk.Uint16, chunk.Uint32, chunk.Uint64:
		r = new(big.Rat).SetInt(new(big.Int).SetUint64(u))
	case chunk.Int8:
		r = new(big.Rat).SetInt64(int64(int8(u)))
	case chunk.Int16:
		r = new(big.Rat).SetInt64(int64(int16(u)))
	case chunk.Int32:
		r = new(big.Rat).SetInt64(int64(int32(u)))
	case chunk.Int64:
		r = new(big.Rat).SetInt64(int64(u))
	case chunk.Float16:
		f = float64(kernel.Float32FromFloat16(uint16(u)))
	case chunk.BFloat16:
		f = float64(kernel.Float32FromBFloat16(uint16(u)))
	case chunk.Float32:
		f = float64(math.Float32frombits(uint32(u)))
	case chunk.Float64:
		f = math.Float64frombits(u)
	}
	if isFloat(d) {
		if f-f != 0 {
			return nil, f, false
		}
		return new(big.Rat).SetFloat64(f), f, true
	}
	f, _ = r.Float64()
	return r, f, true
}

// slow computes everything by definition, from sorted valid samples and sums of rational numbers.
type slow struct {
	nodata, nan, inf uint64
	values           []float64
	mean, std        float64
	min, max         *big.Rat
}

func slowStats(d chunk.DType, samples []uint64, nodata *float64) (s slow) {
	sum, squares := new(big.Int), new(big.Int) // in units of 1, or of 2^-1074: all samples are multiples
	unit := new(big.Int).Lsh(big.NewInt(1), 1074)
	if !isFloat(d) {
		unit = big.NewInt(1)
	}
	for _, u := range samples {
		r, f, ok := real(d, u)
		switch {
		case nodata != nil && (math.IsNaN(*nodata) && math.IsNaN(f) || isFloat(d) && f == *nodata ||
			!isFloat(d) && !math.IsNaN(*nodata) && r.Cmp(new(big.Rat).SetFloat64(*nodata)) == 0):
			s.nodata++
			continue
		case math.IsNaN(f):
			s.nan++
			continue
		case !ok:
			s.inf++
			continue
		}
		s.values = append(s.values, f)
		v := new(big.Int).Mul(r.Num(), new(big.Int).Quo(unit, r.Denom()))
		sum.Add(sum, v)
		squares.Add(squares, v.Mul(v, v))
		if s.min == nil || r.Cmp(s.min) < 0 {
			s.min = r
		}
		if s.max == nil || r.Cmp(s.max) > 0 {
			s.max = r
		}
	}
	slices.Sort(s.values)
	if len(s.values) == 0 {
		return s
	}
	n := big.NewInt(int64(len(s.values)))
	s.mean, _ = new(big.Rat).SetFrac(sum, new(big.Int).Mul(n, unit)).Float64()
	// n²·variance = nΣx² - (Σx)²
	v := squares.Mul(squares, n)
	v.Sub(v, sum.Mul(sum, sum))
	sd := new(big.Float).SetPrec(400).SetInt(v)
	sd.Sqrt(sd)
	s.std, _ = sd.Quo(sd, new(big.Float).SetInt(n.Mul(n, unit))).Float64()
	return s
}

// samplesOf draws bit patterns like those of one of several kinds of image.
func samplesOf(d chunk.DType, rng *rand.Rand, n, kind int) []uint64 {
	s := make([]uint64, n)
	base := rng.Uint64()
	for i := range s {
		switch kind {
		case 0: // all bit patterns
			s[i] = rng.Uint64()
		case 1: // a narrow range
			s[i] = base + rng.Uint64N(50)
		case 2: // one value
			s[i] = base
		case 3: // numbers about reflectances
			v := 0.3 + 0.1*rng.NormFloat64()
			s[i] = uint64(int64(10000 * v))
			switch d {
			case chunk.Float16:
				s[i] = uint64(kernel.Float16FromFloat32(float32(v)))
			case chunk.BFloat16:
				s[i] = uint64(kernel.BFloat16FromFloat32(float32(v)))
			case chunk.Float32:
				s[i] = uint64(math.Float32bits(float32(v)))
			case chunk.Float64:
				s[i] = math.Float64bits(v)
			}
		case 4: // the last bits of large numbers
			s[i] = base&^0xff | rng.Uint64N(3)
		case 5: // a ramp that leaves every range it had
			s[i] = uint64(i*i*i) << (i % 3 * 8)
		}
		if size := d.Size(); size < 8 {
			s[i] &= 1<<(8*size) - 1
		}
	}
	return s
}

const kinds = 6

func bytesOf(d chunk.DType, s []uint64) (b []byte) {
	for _, u := range s {
		b = put(b, d, u)
	}
	return b
}

func measure(t testing.TB, d chunk.DType, nodata *float64, parts ...[]byte) stats.Band {
	t.Helper()
	f, err := NewField(d, 1)
	if err != nil {
		t.Fatal(err)
	}
	f.NoData(nodata, nil)
	for _, p := range parts {
		f.AddRows(0, p)
	}
	return f.Report().Bands[0]
}

func near(a, b, tol float64) bool { return a == b || math.Abs(a-b) <= tol }

// check compares a report with the definitions.
func check(t testing.TB, what string, d chunk.DType, got stats.Band, want slow) {
	t.Helper()
	n := len(want.values)
	if got.Count != uint64(n) || got.NoData != want.nodata || got.NaN != want.nan || got.Inf != want.inf {
		t.Fatalf("%s: counts %d %d %d %d, want %d %d %d %d",
			what, got.Count, got.NoData, got.NaN, got.Inf, n, want.nodata, want.nan, want.inf)
	}
	if n == 0 {
		if got.Mean != nil || got.Std != nil || got.Min != nil || got.Max != nil || got.Histogram != nil ||
			got.Percentiles != nil {
			t.Fatalf("%s: numbers of nothing: %+v", what, got)
		}
		return
	}
	if *got.Mean != want.mean {
		t.Errorf("%s: mean %v, want %v", what, *got.Mean, want.mean)
	}
	if !near(*got.Std, want.std, want.std*1e-15) {
		t.Errorf("%s: std %v, want %v", what, *got.Std, want.std)
	}
	lo, ok1 := new(big.Rat).SetString(got.Min.String())
	hi, ok2 := new(big.Rat).SetString(got.Max.String())
	if isFloat(d) { // as the float64 that a reader makes of it
		l, _ := lo.Float64()
		h, _ := hi.Float64()
		lo.SetFloat64(l)
		hi.SetFloat64(h)
	}
	if !ok1 || !ok2 || lo.Cmp(want.min) != 0 || hi.Cmp(want.max) != 0 {
		t.Errorf("%s: range %s %s, want %s %s", what, *got.Min, *got.Max, want.min, want.max)
	}
	span := want.values[n-1]/4095 - want.values[0]/4095
	if d.Size() <= 2 && got.Resolution != 0 || got.Resolution > span && got.Resolution > 1e-300 && !isFloat(d) {
		t.Errorf("%s: resolution %g of a range of %g", what, got.Resolution, 4095*span)
	}
	for name, p := range map[string]float64{"2.5": 2.5, "50": 50, "98.5": 98.5} {
		w := Quantile(p/100, want.values)
		if g, ok := got.Percentiles[name]; !ok || !near(g, w, got.Resolution+math.Abs(w)*1e-11) {
			t.Errorf("%s: percentile %s %v, want %v within %g", what, name, g, w, got.Resolution)
		}
	}
	checkHistogram(t, what, got, want)
}

// checkHistogram counts again. A sample closer to an edge than the resolution may be on either side
// of it.
func checkHistogram(t testing.TB, what string, got stats.Band, want slow) {
	t.Helper()
	e, c := got.Histogram.Edges, got.Histogram.Counts
	if len(e) != 101 || len(c) != 100 || !slices.IsSorted(e) {
		t.Fatalf("%s: %d edges, %d counts", what, len(e), len(c))
	}
	total := uint64(0)
	for i, n := range c {
		total += n
		count := func(slack float64) uint64 { // of the bin made wider on both sides
			from := sort.SearchFloat64s(want.values, e[i]-slack)
			to := sort.SearchFloat64s(want.values, e[i+1]+slack)
			if i == 99 {
				to = len(want.values)
			}
			return uint64(max(to-from, 0))
		}
		least, most := count(-got.Resolution), count(got.Resolution)
		if n < least || n > most {
			t.Errorf("%s: bin %d [%g, %g): %d, want %d to %d", what, i, e[i], e[i+1], n, least, most)
			return
		}
	}
	if total != got.Count {
		t.Errorf("%s: the histogram has %d of %d samples", what, total, got.Count)
	}
}

// TestAgainstDefinitions: for every type and kind of data, with and without nodata, the numbers
// follow their definitions.
func TestAgainstDefinitions(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 7))
	for _, d := range measured {
		for kind := range kinds {
			for _, n := range []int{0, 1, 2, 900, 4200} {
				s := samplesOf(d, rng, n, kind)
				nodatas := []*float64{nil}
				nan := math.NaN()
				if n > 0 && n < 4200 {
					if _, f, ok := real(d, s[n/2]); ok {
						nodatas = append(nodatas, &f)
					}
					zero, half := 0.0, 0.5
					nodatas = append(nodatas, &nan, &zero, &half)
				}
				for _, nd := range nodatas {
					what := fmt.Sprintf("%s kind %d n %d", d, kind, n)
					if nd != nil {
						what += fmt.Sprint(" nodata ", *nd)
					}
					if !isFloat(d) && d.Size() == 8 && nd != nil && math.Abs(*nd) >= 1<<53 {
						continue // a float64 does not say which integer
					}
					check(t, what, d, measure(t, d, nd, bytesOf(d, s)), slowStats(d, s, nd))
				}
			}
		}
	}
}

// TestAnyOrderAnyWorkers: the JSON is the same however samples are ordered, cut into parts, given
// to workers and merged.
func TestAnyOrderAnyWorkers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := rapid.SampledFrom(measured).Draw(t, "dtype")
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		var s []uint64
		for range rapid.IntRange(0, 4).Draw(t, "images") {
			s = append(s,
				samplesOf(d, rng, rapid.IntRange(0, 700).Draw(t, "n"), rapid.IntRange(0, kinds-1).Draw(t, "kind"))...)
		}
		run := func(workers int) string {
			fields := make([]*Field, workers)
			for i := range fields {
				fields[i], _ = NewField(d, 1)
			}
			rng.Shuffle(len(s), func(i, j int) { s[i], s[j] = s[j], s[i] })
			for rest := s; len(rest) > 0; {
				n := 1 + rng.IntN(len(rest))
				fields[rng.IntN(workers)].AddRows(0, bytesOf(d, rest[:n]))
				rest = rest[n:]
			}
			for len(fields) > 1 { // any two
				i := 1 + rng.IntN(len(fields)-1)
				if err := fields[i-1].Merge(fields[i]); err != nil {
					t.Fatal(err)
				}
				fields = slices.Delete(fields, i, i+1)
			}
			b, err := json.Marshal(fields[0].Report())
			if err != nil {
				t.Fatal(err)
			}
			return string(b)
		}
		one := run(1)
		for _, w := range []int{1, 2, 7} {
			if got := run(w); got != one {
				t.Fatalf("%s with %d workers:\n%s\n%s", d, w, got, one)
			}
		}
	})
}

// TestState: a state restores what was measured, and merges as the field itself does.
func TestState(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 9))
	for _, d := range measured {
		for kind := range kinds {
			s := samplesOf(d, rng, 3000, kind)
			zero := 0.0
			all, _ := NewField(d, 2)
			var merged *Field
			for i := range 3 {
				f, _ := NewField(d, 2)
				for _, f := range []*Field{f, all} {
					f.NoData(&zero, nil)
					f.AddRows(0, bytesOf(d, s[i*1000:(i+1)*1000]))
				}
				b := f.AppendState(nil)
				back, err := ParseState(b)
				if err != nil {
					t.Fatalf("%s kind %d: %v", d, kind, err)
				}
				if again := back.AppendState(nil); !bytes.Equal(b, again) {
					t.Fatalf("%s kind %d: another state", d, kind)
				}
				if merged == nil {
					merged = back
				} else if err := merged.Merge(back); err != nil {
					t.Fatal(err)
				}
			}
			got, _ := json.Marshal(merged.Report())
			want, _ := json.Marshal(all.Report())
			if string(got) != string(want) {
				t.Errorf("%s kind %d:\n%s\n%s", d, kind, got, want)
			}
		}
	}
}

func FuzzParseState(f *testing.F) {
	rng := rand.New(rand.NewPCG(9, 9))
	for _, d := range measured {
		for _, kind := range []int{0, 2, 3} {
			x, _ := NewField(d, 1)
			x.AddRows(0, bytesOf(d, samplesOf(d, rng, 5, kind)))
			f.Add(x.AppendState(nil))
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		x, err := ParseState(b)
		if err != nil {
			if fault.KindOf(err) == 0 {
				t.Fatalf("%v has no kind", err)
			}
			return
		}
		y, err := ParseState(x.AppendState(nil))
		if err != nil {
			t.Fatalf("what was read is not read again: %v", err)
		}
		if err := x.Merge(y); err != nil {
			t.Fatal(err)
		}
		x.AddRows(0, bytesOf(x.DType(), samplesOf(x.DType(), rand.New(rand.NewPCG(1, 1)), 50, 0)))
		if _, err := json.Marshal(x.Report()); err != nil {
			t.Fatal(err)
		}
	})
}

// TestLargeIntegers: 64-bit nodata is compared bit by bit, and minimum and maximum are exact above
// 2^53.
func TestLargeIntegers(t *testing.T) {
	big := uint64(1<<63 + 12345)
	f, _ := NewField(chunk.Uint64, 1)
	v := float64(big)
	f.NoData(&v, &big) // big+1 has the same float64
	f.AddRows(0, bytesOf(chunk.Uint64, []uint64{big, big + 1, big - 1, big, math.MaxUint64}))
	r := f.Report().Bands[0]
	if r.NoData != 2 || r.Count != 3 || *r.Min != "9223372036854788152" || *r.Max != "18446744073709551615" {
		t.Errorf("%+v, min %s max %s", r, *r.Min, *r.Max)
	}
}

// TestRefusals: input that cannot be measured, or that does not fit together, is an error.
func TestRefusals(t *testing.T) {
	for _, d := range []chunk.DType{chunk.Invalid, chunk.Complex64, chunk.ComplexInt16} {
		if _, err := NewField(d, 1); err == nil {
			t.Errorf("%s is measured", d)
		}
	}
	if _, err := NewField(chunk.Uint8, 0); err == nil {
		t.Error("no bands are measured")
	}
	a, _ := NewField(chunk.Uint8, 1)
	b, _ := NewField(chunk.Uint8, 2)
	c, _ := NewField(chunk.Int8, 1)
	if a.Merge(b) == nil || a.Merge(c) == nil {
		t.Error("other bands or types are merged")
	}
	if a.DType() != chunk.Uint8 || b.Bands() != 2 {
		t.Error("a field forgot what it is of")
	}
}

// TestUnaligned: samples at any address yield the same numbers.
func TestUnaligned(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 3))
	for _, d := range measured {
		b := bytesOf(d, samplesOf(d, rng, 999, 3))
		off := append(make([]byte, 1, len(b)+1), b...)[1:]
		x, _ := json.Marshal(measure(t, d, nil, b))
		y, _ := json.Marshal(measure(t, d, nil, off))
		if string(x) != string(y) {
			t.Errorf("%s: unaligned data give\n%s\n%s", d, y, x)
		}
	}
}

// TestAddRowsDoesNotAllocate: AddRows does not allocate once the bins exist.
func TestAddRowsDoesNotAllocate(t *testing.T) {
	if _, ok := cast.Of[uint8]([]byte{1}); !ok {
		t.Skip("without views of bytes as numbers, each block is copied")
	}
	rng := rand.New(rand.NewPCG(3, 4))
	for _, d := range measured {
		f, _ := NewField(d, 1)
		b := bytesOf(d, samplesOf(d, rng, 5000, 3))
		f.AddRows(0, b)
		if n := testing.AllocsPerRun(10, func() { f.AddRows(0, b) }); n != 0 {
			t.Errorf("%s: %v allocations", d, n)
		}
	}
}

func TestNormalizer(t *testing.T) {
	f, _ := NewField(chunk.Uint8, 3)
	f.AddRows(0, []byte{0, 50, 100, 150, 200})
	f.AddRows(1, []byte{7, 7, 7})
	r := stats.Report{Fields: map[string]stats.FieldReport{"image": f.Report()}}
	std := math.Sqrt(5000)
	for _, c := range []struct {
		kind          string
		bands         []int
		scale, offset []float64
		clip          bool
	}{
		{stats.MeanStd, []int{1, 0, 0}, []float64{1, 1 / std, 1 / std}, []float64{-7, -100 / std, -100 / std}, false},
		{stats.MinMax, []int{0, 1}, []float64{1. / 200, 1}, []float64{0, -7}, false},
		{stats.Percentile, []int{0}, []float64{1. / (197 - 5)}, []float64{-5. / (197 - 5)}, true},
		{stats.None, nil, nil, nil, false},
	} {
		scale, offset, clip, err := r.Normalizer("image", c.kind, c.bands)
		close := func(a, b []float64) bool {
			return slices.EqualFunc(a, b, func(x, y float64) bool { return near(x, y, 1e-15) })
		}
		if err != nil || !close(scale, c.scale) || !close(offset, c.offset) || (clip != nil) != c.clip ||
			c.clip && *clip != [2]float64{0, 1} {
			t.Errorf("%s %v: %v %v %v %v", c.kind, c.bands, scale, offset, clip, err)
		}
	}
	for _, bad := range [][2]any{
		{"mask", []int{0}},
		{"image", []int{3}},
		{"image", []int{-1}},
		{"image", []int{2}},
		{"image", []int(nil)},
	} {
		for _, kind := range []string{stats.MeanStd, stats.MinMax, stats.Percentile} {
			if _, _, _, err := r.Normalizer(bad[0].(string), kind, bad[1].([]int)); err == nil {
				t.Errorf("%v %s: no error", bad, kind)
			}
		}
	}
	if _, _, _, err := r.Normalizer("image", "zscore", nil); err == nil || !strings.Contains(err.Error(), "zscore") {
		t.Errorf("unknown kind: %v", err)
	}
}

// TestReportJSON: a report goes through JSON unchanged.
func TestReportJSON(t *testing.T) {
	f, _ := NewField(chunk.Float32, 2)
	f.AddRows(0, bytesOf(chunk.Float32, samplesOf(chunk.Float32, rand.New(rand.NewPCG(1, 1)), 1000, 3)))
	r := stats.Report{Version: stats.ReportVersion, Samples: 3,
		Fields: map[string]stats.FieldReport{"image": f.Report()}}
	b, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	var back stats.Report
	if err := json.Unmarshal(b, &back); err != nil {
		t.Fatal(err)
	}
	c, _ := json.Marshal(back)
	if string(b) != string(c) {
		t.Errorf("%s\n%s", b, c)
	}
	s1, o1, _, err1 := r.Normalizer("image", stats.MinMax, []int{0})
	s2, o2, _, err2 := back.Normalizer("image", stats.MinMax, []int{0})
	if err1 != nil || err2 != nil || !slices.Equal(s1, s2) || !slices.Equal(o1, o2) {
		t.Errorf("%v %v, %v %v", s1, s2, err1, err2)
	}
}

// TestAgainstNumpy: numpy measures the same, where it is installed.
func TestAgainstNumpy(t *testing.T) {
	python := os.Getenv("CHASKI_ORACLE_PYTHON")
	if python == "" {
		t.Skip("CHASKI_ORACLE_PYTHON is not set")
	}
	const script = `
import json, sys, numpy as np
for line in sys.stdin:
    path, dtype = line.split()
    x = np.fromfile(path, dtype=dtype)
    y = x[np.isfinite(x)].astype(np.float64)
    h, e = np.histogram(y, bins=100)
    print(json.dumps({"mean": y.mean(), "std": y.std(), "hist": h.tolist(), "edges": e.tolist(),
        "p": [float(np.percentile(y, p)) for p in (2.5, 50, 98.5)]}))
`
	dir := t.TempDir()
	rng := rand.New(rand.NewPCG(5, 5))
	var input strings.Builder
	var reports []stats.Band
	var names []string
	for _, d := range measured {
		if d == chunk.BFloat16 {
			continue
		}
		for _, kind := range []int{1, 3, 5} {
			if kind != 3 && d.Size() == 8 {
				continue // numpy's sums in float64 are not exact there
			}
			if kind != 3 && isFloat(d) {
				continue
			}
			name := fmt.Sprintf("%s kind %d", d, kind)
			b := bytesOf(d, samplesOf(d, rng, 20000, kind))
			file := filepath.Join(dir, strings.ReplaceAll(name, " ", "-"))
			testfile.Write(t, file, b)
			fmt.Fprintln(&input, file, d)
			reports, names = append(reports, measure(t, d, nil, b)), append(names, name)
		}
	}
	cmd := exec.CommandContext(t.Context(), python, "-c", script)
	cmd.Stdin, cmd.Stderr = strings.NewReader(input.String()), os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	if len(lines) != len(reports) {
		t.Fatalf("%d answers for %d arrays", len(lines), len(reports))
	}
	for i, line := range lines {
		var want struct {
			Mean, Std float64
			Hist      []uint64
			Edges, P  []float64
		}
		if err := json.Unmarshal([]byte(line), &want); err != nil {
			t.Fatal(err)
		}
		got := reports[i]
		if !near(*got.Mean, want.Mean, math.Abs(want.Mean)*1e-11) || !near(*got.Std, want.Std, want.Std*1e-11) {
			t.Errorf("%s: mean %v std %v, want %v %v", names[i], *got.Mean, *got.Std, want.Mean, want.Std)
		}
		for k, name := range []string{"2.5", "50", "98.5"} {
			if !near(got.Percentiles[name], want.P[k], got.Resolution) {
				t.Errorf("%s: percentile %s %v, want %v", names[i], name, got.Percentiles[name], want.P[k])
			}
		}
		if !slices.Equal(got.Histogram.Edges, want.Edges) {
			t.Errorf("%s: edges\n%v\n%v", names[i], got.Histogram.Edges, want.Edges)
		}
		if got.Resolution == 0 && !slices.Equal(got.Histogram.Counts, want.Hist) {
			t.Errorf("%s: histogram\n%v\n%v", names[i], got.Histogram.Counts, want.Hist)
		}
	}
}

func BenchmarkAddRows(b *testing.B) {
	rng := rand.New(rand.NewPCG(3, 4))
	for _, d := range measured {
		b.Run(d.String(), func(b *testing.B) {
			f, _ := NewField(d, 1)
			data := bytesOf(d, samplesOf(d, rng, 1<<16, 3))
			b.SetBytes(int64(len(data)))
			b.ReportAllocs()
			for b.Loop() {
				f.AddRows(0, data)
			}
			b.ReportMetric(float64(b.N)*(1<<16)/b.Elapsed().Seconds()/1e6, "Msamples/s")
		})
	}
}

// TestMergeOverflow: states that each are possible, but together have more samples than can be counted, are refused
// before the counts go round, and the field is as before.
func TestMergeOverflow(t *testing.T) {
	// A band of which 2^56 samples are nodata, as ParseState allows.
	for _, d := range []chunk.DType{chunk.Uint8, chunk.Uint16, chunk.Int64, chunk.Float32} {
		state := binary.AppendUvarint(append([]byte("CHKS\x01"), byte(d), 1), 1<<56)
		state = append(state, 0)
		if d == chunk.Float32 {
			state = append(state, 0, 0)
		}
		one, err := ParseState(state)
		if err != nil {
			t.Fatal(err)
		}
		sum, err := NewField(d, 1)
		if err != nil {
			t.Fatal(err)
		}
		merged := uint64(0)
		for range 300 { // 2^64 are 256 of them
			if sum.Merge(one) != nil {
				break
			}
			merged++
		}
		if got := sum.Report().Bands[0].NoData; got != merged<<56 || merged == 300 {
			t.Errorf("%s: %d samples after %d times 2^56", d, got, merged)
		}
	}
}

// ParseState reads one state.
func ParseState(b []byte) (*Field, error) {
	f, _, err := parseState(b, maxState)
	return f, err
}

// TestJoinedTypes: statistics of samples of several types are those of all their numbers.
func TestJoinedTypes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		dtypes := rapid.SliceOfNDistinct(rapid.SampledFrom([]chunk.DType{chunk.Uint8, chunk.Int16, chunk.Int32,
			chunk.Uint64, chunk.Float16, chunk.Float32, chunk.Float64}), 1, 4,
			func(d chunk.DType) byte { return byte(d) }).Draw(t, "dtypes")
		var fields []*Field
		var all []float64
		for _, d := range dtypes {
			field, err := NewField(d, 1)
			if err != nil {
				t.Fatal(err)
			}
			// Numbers that every type has.
			for _, number := range rapid.SliceOf(rapid.IntRange(0, 200)).Draw(t, d.String()) {
				value := float64(number)
				bits, ok := kernel.IntBits(d.Num(), value)
				if d.Num().IsFloat() {
					bits, ok = kernel.FloatBits(d.Num(), value), true
				}
				if !ok {
					t.Fatal(d, value)
				}
				field.AddRows(0, binary.LittleEndian.AppendUint64(nil, bits)[:d.Size()])
				all = append(all, value)
			}
			fields = append(fields, field)
		}
		report, err := Joined(fields...)
		if err != nil {
			t.Fatal(err)
		}
		band := report.Bands[0]
		if band.Count != uint64(len(all)) {
			t.Fatalf("count %d of %d", band.Count, len(all))
		}
		if len(all) == 0 {
			return
		}
		sum, squares := 0.0, 0.0
		for _, v := range all {
			sum, squares = sum+v, squares+v*v
		}
		n := float64(len(all))
		mean, std := sum/n, math.Sqrt(max(n*squares-sum*sum, 0))/n
		if *band.Mean != mean || math.Abs(*band.Std-std) > 1e-12*max(std, 1) {
			t.Fatalf("mean %v, std %v: want %v, %v", *band.Mean, *band.Std, mean, std)
		}
		least, _ := band.Min.Float64()
		greatest, _ := band.Max.Float64()
		if least != slices.Min(all) || greatest != slices.Max(all) {
			t.Fatalf("%v to %v: want %v to %v", least, greatest, slices.Min(all), slices.Max(all))
		}
	})
}
