package einops_test

import (
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/chaski-eo/chaski/einops"
	"github.com/chaski-eo/chaski/einops/pattern"
	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/dtype"
	"github.com/chaski-eo/chaski/tools/testkit/race"
	_ "github.com/chaski-eo/chaski/tools/testkit/seed" // random cases are the same in every run
	"github.com/chaski-eo/chaski/tools/testkit/testfile"
)

// The input axes, in their order.
const (
	axisN = iota
	axisT
	axisB
	axisY
	axisX
	numAxes

	canonical = "ntbyx"
)

// check runs a property on some thousand examples.
func check(t *testing.T, property func(*rapid.T)) {
	t.Helper()
	for range 15 {
		rapid.Check(t, property)
	}
}

// sizesOf returns the lengths of (n, t, b, y, x), with 1 for missing axes.
func sizesOf(axes []einops.Axis) (s [numAxes]int) {
	s = [numAxes]int{1, 1, 1, 1, 1}
	for _, a := range axes {
		s[einops.AxisIndex(a.Name)] = a.Len
	}
	return s
}

func mustPlan(t testing.TB, text string, axes []einops.Axis, sizes map[string]int) *einops.Plan {
	t.Helper()
	p, err := pattern.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	plan, err := p.Plan(axes, sizes)
	if err != nil {
		t.Fatalf("%v %v: %v", axes, sizes, err)
	}
	return plan
}

// layoutOf scatters an input whose samples are their own flat index, and returns the output.
func layoutOf(t testing.TB, plan *einops.Plan, axes []einops.Axis) []int {
	t.Helper()
	s := sizesOf(axes)
	block := s[axisB] * s[axisY] * s[axisX]
	dst := einops.Target{Data: make([]byte, 4*plan.Len())}
	for i := range dst.Data {
		dst.Data[i] = 0xff // what is not written shows
	}
	cv := mustConverter(t, einops.Convert{From: dtype.Uint32, To: dtype.Uint32})
	for n := range s[axisN] {
		for k := range s[axisT] {
			data := make([]byte, 4*block)
			for i := range block {
				binary.LittleEndian.PutUint32(data[4*i:], uint32((n*s[axisT]+k)*block+i))
			}
			plan.Scatter(dst, cv, einops.Box{n, k, 0, s[axisB], 0, s[axisY], 0, s[axisX]},
				einops.Block{data, dtype.Uint32, s[axisY] * s[axisX], s[axisX], 1, 0})
		}
	}
	out := make([]int, plan.Len())
	for i := range out {
		out[i] = int(int32(binary.LittleEndian.Uint32(dst.Data[4*i:])))
	}
	return out
}

func mustConverter(t testing.TB, c einops.Convert) *einops.Converter {
	t.Helper()
	cv, err := einops.NewConverter(c)
	if err != nil {
		t.Fatal(err)
	}
	return cv
}

// layoutCase is a case of testdata/oracle.py.
type layoutCase struct {
	AxesJSON [][2]any       `json:"axes"`
	Pattern  string         `json:"pattern"`
	Sizes    map[string]int `json:"sizes,omitempty"`
	Shape    []int          `json:"shape,omitempty"`
	Index    []int          `json:"index,omitempty"`
}

func (c layoutCase) axes() (axes []einops.Axis) {
	for _, a := range c.AxesJSON {
		axes = append(axes, einops.Axis{a[0].(string), int(a[1].(float64))})
	}
	return axes
}

func (c layoutCase) check(t *testing.T) {
	t.Helper()
	plan := mustPlan(t, c.Pattern, c.axes(), c.Sizes)
	if !slices.Equal(plan.Shape, c.Shape) {
		t.Fatalf("%q %v %v: shape %v, want %v", c.Pattern, c.AxesJSON, c.Sizes, plan.Shape, c.Shape)
	}
	if len(plan.Axes) != len(plan.Shape) {
		t.Fatalf("%q: axes %q for shape %v", c.Pattern, plan.Axes, plan.Shape)
	}
	if got := layoutOf(t, plan, c.axes()); !slices.Equal(got, c.Index) {
		t.Fatalf("%q %v %v: %v, want %v", c.Pattern, c.AxesJSON, c.Sizes, got, c.Index)
	}
}

func readJSON(t *testing.T, name string, into any) {
	t.Helper()
	b := testfile.Read(t, "testdata/"+name)
	if err := json.Unmarshal(b, into); err != nil {
		t.Fatal(err)
	}
}

// ask runs cases in testdata/oracle.py, if CHASKI_ORACLE_PYTHON names a Python that can run it.
func ask(t *testing.T, cases, answers any) {
	t.Helper()
	python := os.Getenv("CHASKI_ORACLE_PYTHON")
	if python == "" {
		t.Skip("CHASKI_ORACLE_PYTHON is not set")
	}
	in, err := json.Marshal(cases)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(python, "testdata/oracle.py", "answer")
	cmd.Stdin, cmd.Stderr = strings.NewReader(string(in)), os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(out, answers); err != nil {
		t.Fatal(err)
	}
}

func TestPlanAgainstCheckedInEinops(t *testing.T) {
	var cases []layoutCase
	readJSON(t, "patterns.json", &cases)
	if len(cases) < 100 {
		t.Fatalf("%d cases", len(cases))
	}
	for _, c := range cases {
		c.check(t)
	}
}

// drawLayout makes a random pattern with axes and sizes. Factors never have the name of an axis.
func drawLayout(t *rapid.T) (pattern string, axes []einops.Axis, sizes map[string]int) {
	sizes = map[string]int{}
	for _, name := range canonical {
		if rapid.IntRange(0, 3).Draw(t, "have") > 0 {
			axes = append(axes, einops.Axis{string(name), rapid.SampledFrom([]int{1, 2, 3, 4, 6, 12}).Draw(t, "len")})
		}
	}
	fresh := strings.Split("h w p q c d e f g i j k l m o", " ")
	var left, words []string
	twoSided := rapid.Bool().Draw(t, "two-sided")
	for _, a := range axes {
		switch kind := rapid.IntRange(0, 5).Draw(t, "kind"); {
		case twoSided && kind < 2:
			group, rest := []string{}, a.Len
			for range rapid.IntRange(1, 3).Draw(t, "factors") {
				var divisors []int
				for d := 1; d <= rest; d++ {
					if rest%d == 0 {
						divisors = append(divisors, d)
					}
				}
				d := rapid.SampledFrom(divisors).Draw(t, "factor")
				group = append(group, fresh[0])
				sizes[fresh[0]] = d
				fresh, rest = fresh[1:], rest/d
			}
			last := group[len(group)-1]
			sizes[last] *= rest
			if rapid.Bool().Draw(t, "unknown") {
				delete(sizes, rapid.SampledFrom(group).Draw(t, "which"))
			}
			left, words = append(left, "("+strings.Join(group, " ")+")"), append(words, group...)
		case twoSided && kind == 2 && a.Len == 1:
			left = append(left, "1")
		case !twoSided && kind == 2 && a.Len == 1:
		default:
			left, words = append(left, a.Name), append(words, a.Name)
		}
	}
	words = rapid.Permutation(words).Draw(t, "order")
	var right []string
	for len(words) > 0 {
		k := rapid.IntRange(0, min(3, len(words))).Draw(t, "group")
		if k == 0 {
			right, words = append(right, words[0]), words[1:]
		} else {
			right, words = append(right, "("+strings.Join(words[:k], " ")+")"), words[k:]
		}
		if rapid.IntRange(0, 9).Draw(t, "one") == 0 {
			right = append(right, rapid.SampledFrom([]string{"1", "()"}).Draw(t, "which one"))
		}
	}
	pattern = strings.Join(right, " ")
	if twoSided {
		pattern = strings.Join(left, " ") + " -> " + pattern
	} else if pattern == "" {
		pattern = "1"
	}
	return pattern, axes, sizes
}

func TestPlanAgainstIndexByIndex(t *testing.T) {
	check(t, func(rt *rapid.T) {
		text, axes, sizes := drawLayout(rt)
		p, err := pattern.Parse(text)
		if err != nil {
			rt.Fatal(err)
		}
		plan, err := p.Plan(axes, sizes)
		if err != nil {
			rt.Fatalf("%v %v: %v", axes, sizes, err)
		}
		if plan.Len() > 1<<14 {
			return
		}
		shape, index := slowLayout(text, axes, sizes)
		if !slices.Equal(shape, plan.Shape) {
			rt.Fatalf("%q: shape %v, want %v", text, plan.Shape, shape)
		}
		if got := layoutOf(t, plan, axes); !slices.Equal(got, index) {
			rt.Fatalf("%q %v %v: %v, want %v", text, axes, sizes, got, index)
		}
		checkOffsets(rt, plan, axes, index)
	})
}

// checkOffsets checks Plan.Offset against an output: the offsets of a sample's indices add up to
// its place.
func checkOffsets(t rapid.TB, plan *einops.Plan, axes []einops.Axis, index []int) {
	for off, in := range index {
		sum := 0
		for i := len(axes) - 1; i >= 0; i-- {
			sum += plan.Offset(axes[i].Name, in%axes[i].Len)
			in /= axes[i].Len
		}
		if sum != off {
			t.Fatalf("sample %d is at %d by Offset, at %d in the output", in, sum, off)
		}
	}
}

func TestPlanAgainstPython(t *testing.T) {
	var cases []layoutCase
	gen := rapid.Custom(func(rt *rapid.T) layoutCase {
		pattern, axes, sizes := drawLayout(rt)
		c := layoutCase{Pattern: pattern, Sizes: sizes, AxesJSON: [][2]any{}}
		for _, a := range axes {
			c.AxesJSON = append(c.AxesJSON, [2]any{a.Name, float64(a.Len)})
		}
		return c
	})
	for seed := range 600 {
		c := gen.Example(seed)
		size := 1
		for _, a := range c.axes() {
			size *= a.Len
		}
		if size <= 1<<11 && c.Pattern != "1" {
			cases = append(cases, c)
		}
	}
	var answers []layoutCase
	ask(t, cases, &answers)
	t.Logf("%d patterns", len(cases))
	for i, c := range cases {
		c.Shape, c.Index = answers[i].Shape, answers[i].Index
		c.check(t)
	}
}

func TestPatternsOfTheManual(t *testing.T) {
	axes := []einops.Axis{{"n", 2}, {"b", 3}, {"y", 4}, {"x", 6}}
	for _, c := range []struct {
		pattern string
		axes    []einops.Axis
		sizes   map[string]int
		shape   []int
		names   []string
		band    int
	}{
		{"n b y x", axes, nil, []int{2, 3, 4, 6}, []string{"n", "b", "y", "x"}, 1},
		{"n (y x) b", axes, nil, []int{2, 24, 3}, []string{"n", "(y x)", "b"}, 2},
		{"n(y x)b", axes, nil, []int{2, 24, 3}, []string{"n", "(y x)", "b"}, 2},
		{"(n b) y x", axes, nil, []int{6, 4, 6}, []string{"(n b)", "y", "x"}, -1},
		{"b y x", []einops.Axis{{"n", 1}, {"b", 3}, {"y", 4}, {"x", 6}},
			nil, []int{3, 4, 6}, []string{"b", "y", "x"}, 0},
		{"b ...", axes, nil, []int{3, 2, 4, 6}, []string{"b", "n", "y", "x"}, 0},
		{"(b ...)", axes, nil, []int{144}, []string{"(b n y x)"}, -1},
		{"... b 1", axes, nil, []int{2, 4, 6, 3, 1}, []string{"n", "y", "x", "b", "1"}, 3},
		{
			"n b (h p) (w q) -> n (h w) (p q b)", axes, map[string]int{"p": 2, "q": 3},
			[]int{2, 4, 18}, []string{"n", "(h w)", "(p q b)"}, -1,
		},
		{"n c ... -> n ... c", axes, nil, []int{2, 4, 6, 3}, []string{"n", "y", "x", "c"}, 3},
		{"... w -> w (...)", axes, nil, []int{6, 24}, []string{"w", "(n b y)"}, -1},
		{
			"b y x -> y x b",
			[]einops.Axis{{"n", 1}, {"t", 1}, {"b", 3}, {"y", 4}, {"x", 6}},
			nil, []int{4, 6, 3}, []string{"y", "x", "b"}, 2,
		},
		{
			"b ... -> ... b", []einops.Axis{{"n", 1}, {"b", 3}, {"y", 4}, {"x", 6}},
			nil, []int{4, 6, 3}, []string{"y", "x", "b"}, 2,
		},
		{
			"c (h p) w -> h w (p c)", []einops.Axis{{"n", 1}, {"b", 3}, {"y", 4}, {"x", 6}},
			map[string]int{"p": 2}, []int{2, 6, 6}, []string{"h", "w", "(p c)"}, -1,
		},
		{"n b y x -> n (b) y x", axes, map[string]int{"b": 3}, []int{2, 3, 4, 6}, []string{"n", "(b)", "y", "x"}, 1},
	} {
		plan := mustPlan(t, c.pattern, c.axes, c.sizes)
		if !slices.Equal(plan.Shape, c.shape) || !slices.Equal(plan.Axes, c.names) || plan.BandAxis() != c.band {
			t.Errorf("%q: %v %q band %d, want %v %q band %d",
				c.pattern, plan.Shape, plan.Axes, plan.BandAxis(), c.shape, c.names, c.band)
		}
	}
}

// conversionCase is a case of testdata/oracle.py.
type conversionCase struct {
	From   dtype.Type `json:"from"`
	To     dtype.Type `json:"to"`
	Data   string     `json:"data"`
	Scale  *float32   `json:"scale,omitempty"`
	Offset *float32   `json:"offset,omitempty"`
	Clip   []float32  `json:"clip,omitempty"`
	NoData any        `json:"nodata,omitempty"`
	Fill   *float64   `json:"fill,omitempty"`
	Out    string     `json:"out,omitempty"`
	Mask   []int      `json:"mask,omitempty"`
}

func (c conversionCase) convert() einops.Convert {
	v := einops.Convert{From: c.From, To: c.To}
	if c.Scale != nil {
		v.Scale = []float32{*c.Scale}
	}
	if c.Offset != nil {
		v.Offset = []float32{*c.Offset}
	}
	if c.Clip != nil {
		v.Clip, v.Lo, v.Hi = true, c.Clip[0], c.Clip[1]
	}
	if c.NoData != nil {
		nodata := math.NaN()
		if f, ok := c.NoData.(float64); ok {
			nodata = f
		}
		v.NoData = &nodata
	}
	if c.Fill != nil && c.NoData != nil {
		v.Fill, v.FillNoData = *c.Fill, true
	}
	return v
}

// check converts the samples once as one run and once, with a layout of strides, one by one.
func (c conversionCase) check(t *testing.T) {
	t.Helper()
	data, err := hex.DecodeString(c.Data)
	if err != nil {
		t.Fatal(err)
	}
	want, err := hex.DecodeString(c.Out)
	if err != nil {
		t.Fatal(err)
	}
	w := len(data) / c.From.Size()
	cv := mustConverter(t, c.convert())
	for _, pattern := range []string{"b y x", "x y b"} {
		plan := mustPlan(t, pattern, []einops.Axis{{"b", 2}, {"y", 1}, {"x", w}}, nil)
		dst := einops.Target{Data: make([]byte, 2*len(want)), Mask: make([]byte, 2*w)}
		bad := plan.Scatter(dst, cv, einops.Box{B1: 2, Y1: 1, X1: w}, einops.Block{data, c.From, 0, 0, 1, 0})
		wantBad := 0
		for i := range w {
			if c.Mask[i] == 0 {
				wantBad += 2
			}
			for b := range 2 {
				at := plan.Offset("b", b) + plan.Offset("x", i)
				size := c.To.Size()
				got, want := dst.Data[at*size:][:size], want[i*size:][:size]
				if !sameElement(got, want, c.To) {
					t.Fatalf("%s to %s %+v: sample %d %x is %x, want %x",
						c.From, c.To, c.convert(), i, data[i*c.From.Size():][:c.From.Size()], got, want)
				}
				if int(dst.Mask[at]) != c.Mask[i] {
					t.Fatalf("%s nodata %v: sample %d %x has mask %d",
						c.From, c.NoData, i, data[i*c.From.Size():][:c.From.Size()], dst.Mask[at])
				}
			}
		}
		if bad != wantBad {
			t.Fatalf("%d nodata samples, want %d", bad, wantBad)
		}
	}
}

// sameElement compares bits. All NaNs are equal, because IEEE 754 leaves their payload to the
// processor.
func sameElement(a, b []byte, d dtype.Type) bool {
	if slices.Equal(a, b) {
		return true
	}
	switch d {
	case dtype.Float16, dtype.BFloat16, dtype.Float32, dtype.Float64:
		x, y := readSample(a, d).f, readSample(b, d).f
		return x != x && y != y
	}
	return false
}

func TestConversionsAgainstCheckedInNumpy(t *testing.T) {
	var cases []conversionCase
	readJSON(t, "conversions.json", &cases)
	pairs := map[string]bool{}
	for _, c := range cases {
		c.check(t)
		pairs[c.From.String()+c.To.String()] = true
	}
	if len(pairs) != len(realTypes)*len(targetTypes)+len(widened) {
		t.Errorf("only %d pairs of types", len(pairs))
	}
}

var (
	realTypes = []dtype.Type{
		dtype.Uint8, dtype.Uint16, dtype.Uint32, dtype.Uint64, dtype.Int8, dtype.Int16, dtype.Int32, dtype.Int64,
		dtype.Float16, dtype.Float32, dtype.Float64, dtype.BFloat16,
	}
	targetTypes = []dtype.Type{dtype.Float32, dtype.Float16, dtype.BFloat16, dtype.Uint8}
	widened     = []dtype.Type{
		dtype.Uint8, dtype.Uint16, dtype.Uint32, dtype.Int8, dtype.Int16, dtype.Int32,
	} // to int64
	complexTypes = []dtype.Type{
		dtype.Complex64, dtype.Complex128, dtype.ComplexInt16, dtype.ComplexInt32, dtype.ComplexFloat16,
	}
)

func TestConversionsAgainstPython(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	var cases []conversionCase
	for _, from := range realTypes {
		targets := targetTypes
		if slices.Contains(widened, from) {
			targets = append(slices.Clip(targets), dtype.Int64)
		}
		for _, to := range targets {
			for k := range 8 {
				data := make([]byte, from.Size()*300)
				for i := range data {
					data[i] = byte(r.Uint32())
				}
				if k%2 == 0 { // small numbers
					for i := range data {
						if i%from.Size() > 0 {
							data[i] = 0
						}
					}
				}
				c := conversionCase{From: from, To: to, Data: hex.EncodeToString(data)}
				if k&2 != 0 && to != dtype.Int64 {
					a, o := r.Float32()*4-2, r.Float32()*10-5
					c.Scale, c.Offset = &a, &o
				}
				if k == 3 && to != dtype.Int64 {
					c.Clip = []float32{-1 - r.Float32(), 1 + r.Float32()}
				}
				if k >= 4 {
					fill := 7.0
					c.NoData, c.Fill = float64(r.IntN(256)), &fill
				}
				cases = append(cases, c)
			}
		}
	}
	var answers []conversionCase
	ask(t, cases, &answers)
	for i, c := range cases {
		c.Out, c.Mask = answers[i].Out, answers[i].Mask
		c.check(t)
	}
}

// drawConvert makes a random conversion that slowElement can check.
func drawConvert(t *rapid.T, bands int) einops.Convert {
	c := einops.Convert{
		From: rapid.SampledFrom([]dtype.Type{
			dtype.Uint8, dtype.Uint16, dtype.Int16, dtype.Float32, dtype.Int64,
		}).Draw(t, "from"),
		To: rapid.SampledFrom(targetTypes).Draw(t, "to"),
	}
	if rapid.IntRange(0, 3).Draw(t, "native") == 0 {
		c.To = c.From
	}
	if rapid.IntRange(0, 3).Draw(t, "label") == 0 {
		c.From, c.To = rapid.SampledFrom(widened).Draw(t, "label from"), dtype.Int64
	}
	if rapid.IntRange(0, 3).Draw(t, "missing NaN") == 0 {
		c.From, c.MissNaN = dtype.Float32, true
		c.To = rapid.SampledFrom([]dtype.Type{dtype.Uint8, dtype.Float32, dtype.BFloat16}).Draw(t, "to of NaN")
	}
	native := c.To == dtype.Int64 || c.From == c.To && c.To != dtype.Float32 && c.To != dtype.Uint8
	values := func(label string) []float32 {
		n := rapid.SampledFrom([]int{0, 1, bands}).Draw(t, label)
		if n == 0 {
			return nil
		}
		return rapid.SliceOfN(rapid.Float32Range(-3, 3), n, n).Draw(t, label)
	}
	if !native {
		c.Scale, c.Offset = values("scale"), values("offset")
		if rapid.IntRange(0, 3).Draw(t, "clip") == 0 {
			c.Clip, c.Lo, c.Hi = true, -2, 120
		}
	}
	if rapid.Bool().Draw(t, "nodata") {
		value := rapid.SampledFrom([]float64{0, 1, 2, 300, -1, 1.5, math.NaN()})
		v := value.Draw(t, "nodata value")
		c.NoData = &v
		if n := rapid.SampledFrom([]int{0, 1, bands}).Draw(t, "lists of nodata"); n > 0 {
			c.Missing = rapid.SliceOfN(rapid.SliceOfN(value, 0, 3), n, n).Draw(t, "missing")
		}
		if c.From != c.To || c.To != dtype.Int64 && c.To != dtype.Int16 && c.To != dtype.Uint16 {
			c.FillNoData = rapid.Bool().Draw(t, "fill")
			c.Fill = 9
		}
	}
	c.Checked = c.To == dtype.Uint8 && rapid.Bool().Draw(t, "checked")
	return c
}

// TestScatterInPieces: a tensor written box by box, from blocks of any axis order and alignment,
// has every element, mask byte and count of the slow version.
func TestScatterInPieces(t *testing.T) {
	race.SkipCovered(t)
	check(t, func(rt *rapid.T) {
		text, axes, sizes := drawLayout(rt)
		if rapid.Bool().Draw(rt, "long rows") && len(axes) > 0 && axes[len(axes)-1].Name == "x" &&
			!strings.Contains(text, "->") {
			axes[len(axes)-1].Len = rapid.IntRange(2, 1500).Draw(rt, "row")
			if !strings.Contains(text, "x") {
				axes[len(axes)-1].Len = 1
			}
		}
		p, err := pattern.Parse(text)
		if err != nil {
			rt.Fatal(err)
		}
		plan, err := p.Plan(axes, sizes)
		if err != nil {
			rt.Fatal(err)
		}
		if plan.Len() > 1<<13 {
			return
		}
		s := sizesOf(axes)
		c := drawConvert(rt, s[axisB])
		cv, err := einops.NewConverter(c)
		if err != nil {
			rt.Fatal(err)
		}
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 0))
		data := make([]byte, plan.Len()*c.From.Size())
		for i := range data {
			data[i] = byte(r.Uint32N(3))
			if r.Uint32N(4) == 0 {
				data[i] = byte(r.Uint32())
			}
		}
		for i := 0; c.From == dtype.Float32 && i < len(data); i += 4 * (1 + r.IntN(9)) {
			copy(data[i:], []byte{0, 0, 0xc0, 0x7f}) // NaN
		}

		offset := rapid.SampledFrom([]int{0, 0, 1, 2}).Draw(rt, "offset") // of the tensor, in bytes
		dst := einops.Target{Data: make([]byte, plan.Len()*c.To.Size()+offset)[offset:], Mask: make([]byte, plan.Len())}
		for i := range dst.Mask {
			dst.Mask[i] = 0xee
		}
		bad := 0
		for n := range s[axisN] {
			for k := range s[axisT] {
				image := data[(n*s[axisT]+k)*s[axisB]*s[axisY]*s[axisX]*c.From.Size():]
				for _, b := range cut(r, s[axisB]) {
					for _, y := range cut(r, s[axisY]) {
						for _, x := range cut(r, s[axisX]) {
							box := einops.Box{n, k, b[0], b[1], y[0], y[1], x[0], x[1]}
							bad += plan.Scatter(dst, cv, box, blockOf(r, image, c.From, s, box))
						}
					}
				}
			}
		}

		_, index := slowLayout(text, axes, sizes)
		wantBad := 0
		size := c.To.Size()
		for at, in := range index {
			want := make([]byte, size)
			wantMask := slowElement(want, data[in*c.From.Size():], c, in/(s[axisY]*s[axisX])%s[axisB])
			if wantMask == 0 {
				wantBad++
			}
			if got := dst.Data[at*size:][:size]; !sameElement(got, want, c.To) || dst.Mask[at] != wantMask {
				rt.Fatalf("%q %v %v %+v: element %d of sample %d is %x mask %d, want %x mask %d",
					text, axes, sizes, c, at, in, got, dst.Mask[at], want, wantMask)
			}
		}
		if bad != wantBad {
			rt.Fatalf("%d nodata samples, want %d", bad, wantBad)
		}
	})
}

// cut cuts 0 to n into one, two or three ranges.
func cut(r *rand.Rand, n int) [][2]int {
	at := []int{0, n}
	for range r.IntN(3) {
		at = append(at, r.IntN(n+1))
	}
	slices.Sort(at)
	var out [][2]int
	for i := 1; i < len(at); i++ {
		out = append(out, [2]int{at[i-1], at[i]}) // empty ones too
	}
	return out
}

// blockOf copies a box of a (b, y, x) image to a block of random axis order and direction, with gaps.
func blockOf(r *rand.Rand, image []byte, d dtype.Type, s [numAxes]int, box einops.Box) einops.Block {
	b, h, w := box.B1-box.B0, box.Y1-box.Y0, box.X1-box.X0
	blk := einops.Block{DType: d}
	gap := r.IntN(2) * r.IntN(4)
	switch r.IntN(4) {
	case 3: // turned
		blk.StrideY, blk.StrideX = 1, h+gap
		blk.StrideB = w*blk.StrideX + gap
	case 0:
		blk.StrideX, blk.StrideY = 1, w+gap
		blk.StrideB = h*blk.StrideY + gap
	case 1: // pixel-interleaved
		blk.StrideB, blk.StrideX = 1, b+gap
		blk.StrideY = w*blk.StrideX + gap
	case 2: // rows of all bands
		blk.StrideX, blk.StrideB = 1, w+gap
		blk.StrideY = b * blk.StrideB
	}
	samples := 1
	if b == 0 || h == 0 || w == 0 {
		b, h, w = 0, 0, 0
	} else {
		samples += (b-1)*blk.StrideB + (h-1)*blk.StrideY + (w-1)*blk.StrideX
	}
	offset := r.IntN(2) * r.IntN(3)
	blk.Data = make([]byte, samples*d.Size()+offset)[offset:]
	for _, m := range []struct {
		n      int
		stride *int
	}{{b, &blk.StrideB}, {h, &blk.StrideY}, {w, &blk.StrideX}} {
		if r.IntN(3) == 0 && m.n > 0 { // mirrored
			blk.First += (m.n - 1) * *m.stride
			*m.stride = -*m.stride
		}
	}
	for i := range b {
		for j := range h {
			for k := range w {
				from := ((box.B0+i)*s[axisY]+box.Y0+j)*s[axisX] + box.X0 + k
				to := blk.First + i*blk.StrideB + j*blk.StrideY + k*blk.StrideX
				copy(blk.Data[to*d.Size():][:d.Size()], image[from*d.Size():])
			}
		}
	}
	return blk
}

// TestPlanMergesAxes: an axis that is split and joined again is one run. This matters for speed
// only.
func TestPlanMergesAxes(t *testing.T) {
	axes := []einops.Axis{{"b", 2}, {"y", 8}, {"x", 8}}
	for pattern, digits := range map[string]int{
		"b y (w q) -> b y (w q)": 1, "b y (w q) -> y w q b": 1, "b y (w q) -> b w y q": 2, "b y (w q) -> q w b y": 2,
	} {
		plan := mustPlan(t, pattern, axes, map[string]int{"q": 4})
		if n := plan.Digits("x"); n != digits {
			t.Errorf("%q: x has %d strides, want %d", pattern, n, digits)
		}
	}
}

// TestManyRuns: a layout with more runs than the table of their starts may hold is scattered
// correctly.
func TestManyRuns(t *testing.T) {
	const w = 4 * einops.MaxStarts
	plan := mustPlan(t, "(w q) -> q w", []einops.Axis{{"x", w}}, map[string]int{"q": 2})
	if plan.HasStarts() {
		t.Fatal("a table after all")
	}
	data := make([]byte, w)
	for i := range data {
		data[i] = byte(i / 2 * 7)
	}
	dst := einops.Target{Data: make([]byte, w)}
	plan.Scatter(dst, mustConverter(t, einops.Convert{
		From: dtype.Uint8, To: dtype.Uint8,
	}), einops.Box{B1: 1, Y1: 1, X1: w}, einops.Block{data, dtype.Uint8, 0, 0, 1, 0})
	for i := range w / 2 {
		if dst.Data[i] != data[2*i] || dst.Data[w/2+i] != data[2*i+1] {
			t.Fatalf("pair %d is %d %d", i, dst.Data[i], dst.Data[w/2+i])
		}
	}
}

func TestFillBox(t *testing.T) {
	check(t, func(rt *rapid.T) {
		pattern, axes, sizes := drawLayout(rt)
		plan := mustPlan(t, pattern, axes, sizes)
		if plan.Len() > 1<<13 {
			return
		}
		s := sizesOf(axes)
		to := rapid.SampledFrom([]dtype.Type{
			dtype.Float32, dtype.Float16, dtype.Uint8, dtype.Int16, dtype.Complex128,
		}).Draw(rt, "to")
		masked, fills := rapid.Bool().Draw(rt, "masked"), rapid.Bool().Draw(rt, "fills")
		cv := mustConverter(t, einops.Convert{From: to, To: to, Fill: 3, FillNoData: fills})
		elem := map[dtype.Type][]byte{
			dtype.Float32: {0, 0, 0x40, 0x40}, dtype.Float16: {0, 0x42}, dtype.Uint8: {3}, dtype.Int16: {3, 0},
			dtype.Complex128: {0, 0, 0, 0, 0, 0, 8, 0x40, 0, 0, 0, 0, 0, 0, 0, 0},
		}[to]
		dst := einops.Target{Data: make([]byte, plan.Len()*len(elem)), Mask: make([]byte, plan.Len())}
		for i := range dst.Data {
			dst.Data[i] = 0xee
		}
		for i := range dst.Mask {
			dst.Mask[i] = 1
		}
		part := func(axis int) (lo, hi int) {
			lo = rapid.IntRange(0, s[axis]).Draw(rt, "lo")
			return lo, rapid.IntRange(lo, s[axis]).Draw(rt, "hi")
		}
		box := einops.Box{N: rapid.IntRange(0, s[axisN]-1).Draw(rt, "n"),
			T: rapid.IntRange(0, s[axisT]-1).Draw(rt, "t")}
		box.B0, box.B1 = part(axisB)
		box.Y0, box.Y1 = part(axisY)
		box.X0, box.X1 = part(axisX)
		if masked {
			plan.MaskBox(dst, cv, box)
		} else {
			plan.FillBox(dst, cv, box)
		}
		_, index := slowLayout(pattern, axes, sizes)
		for at, in := range index {
			x, y := in%s[axisX], in/s[axisX]%s[axisY]
			b := in / s[axisX] / s[axisY] % s[axisB]
			image := in / s[axisX] / s[axisY] / s[axisB]
			inside := x >= box.X0 && x < box.X1 && y >= box.Y0 && y < box.Y1 && b >= box.B0 && b < box.B1 &&
				image == box.N*s[axisT]+box.T
			want, mask := slices.Repeat([]byte{0xee}, len(elem)), byte(1)
			if inside {
				mask = 0
			}
			if inside && (fills || !masked) {
				want = elem
			}
			if !slices.Equal(dst.Data[at*len(elem):][:len(elem)], want) || dst.Mask[at] != mask {
				rt.Fatalf("%q box %+v: element %d is %x mask %d",
					pattern, box, at, dst.Data[at*len(elem):][:len(elem)], dst.Mask[at])
			}
		}
	})
}

// TestCopyRow: a box of a row gets the elements, and their mask, of another row, and no other element changes.
func TestCopyRow(t *testing.T) {
	check(t, func(rt *rapid.T) {
		pattern, axes, sizes := drawLayout(rt)
		plan := mustPlan(t, pattern, axes, sizes)
		if plan.Len() > 1<<13 {
			return
		}
		s, size := sizesOf(axes), rapid.SampledFrom([]int{1, 2, 4, 8, 16}).Draw(rt, "size")
		dst := einops.Target{Data: make([]byte, plan.Len()*size)}
		for i := range dst.Data {
			dst.Data[i] = byte(i * 7)
		}
		if rapid.Bool().Draw(rt, "masked") {
			dst.Mask = make([]byte, plan.Len())
			for i := range dst.Mask {
				dst.Mask[i] = byte(i * 5)
			}
		}
		before := einops.Target{Data: slices.Clone(dst.Data), Mask: slices.Clone(dst.Mask)}
		one := func(axis int) int { return rapid.IntRange(0, s[axis]-1).Draw(rt, "place") }
		from, box := one(axisN), einops.Box{N: one(axisN), T: one(axisT), B1: s[axisB], Y1: s[axisY], X0: one(axisX),
			X1: s[axisX]}
		plan.CopyRow(dst, size, box, from)
		_, index := slowLayout(pattern, axes, sizes)
		place := map[int]int{} // of the element with a sample
		for at, in := range index {
			place[in] = at
		}
		image := s[axisB] * s[axisY] * s[axisX]
		for at, in := range index {
			source := at
			if in%s[axisX] >= box.X0 && in/image == box.N*s[axisT]+box.T {
				source = place[in+(from-box.N)*s[axisT]*image]
			}
			if !slices.Equal(dst.Data[at*size:][:size], before.Data[source*size:][:size]) ||
				dst.Mask != nil && dst.Mask[at] != before.Mask[source] {
				rt.Fatalf("%q row %d from %d, box %+v: element %d is not element %d", pattern, box.N, from, box, at,
					source)
			}
		}
	})
}

func TestConverterRefuses(t *testing.T) {
	scale := []float32{1}
	zero, bits := 0.0, uint64(0)
	for _, from := range complexTypes {
		for _, to := range append([]dtype.Type{dtype.Uint16}, targetTypes...) {
			if _, err := einops.NewConverter(einops.Convert{From: from, To: to}); !errors.Is(err, fault.Unsupported) {
				t.Errorf("%s to %s: %v", from, to, err)
			}
		}
	}
	for i, c := range []einops.Convert{
		{From: dtype.Uint16, To: dtype.Int16},
		{From: dtype.Float32, To: dtype.Int64, Scale: scale},
		{From: dtype.ComplexInt16, To: dtype.Int64},
		{From: dtype.Uint8, To: dtype.Int64, Scale: scale},
		{From: dtype.Uint8, To: dtype.Int64, Clip: true},
		{From: dtype.Uint16, To: dtype.Float64},
		{From: dtype.Uint16, To: dtype.Complex64},
		{From: dtype.Uint16, To: dtype.Uint16, Scale: scale},
		{From: dtype.Float64, To: dtype.Float64, Clip: true},
		{From: dtype.Complex64, To: dtype.Complex64, Offset: scale},
		{From: dtype.Complex64, To: dtype.Complex64, NoDataBits: &bits},
	} {
		if _, err := einops.NewConverter(c); !errors.Is(err, fault.Unsupported) {
			t.Errorf("case %d: %v", i, err)
		}
	}
	for i, c := range []einops.Convert{
		{},
		{From: dtype.Uint16},
		{From: dtype.Uint16, To: dtype.Float32, Scale: []float32{}},
		{From: dtype.Uint16, To: dtype.Float32, Clip: true, Lo: 1, Hi: 0},
		{From: dtype.Uint16, To: dtype.Float32, Clip: true, Lo: float32(math.NaN())},
		{From: dtype.Uint16, To: dtype.Uint16, Fill: -1},
		{From: dtype.Uint16, To: dtype.Uint8, Fill: 0.5},
		{From: dtype.Uint16, To: dtype.Uint8, Fill: math.NaN()},
		{From: dtype.Int8, To: dtype.Int8, Fill: 128, NoData: &zero},
		{From: dtype.Uint8, To: dtype.Int64, Fill: 0x1p63},
		{From: dtype.Uint8, To: dtype.Int64, Fill: 0.5},
	} {
		if _, err := einops.NewConverter(c); err == nil {
			t.Errorf("case %d is taken", i)
		}
	}
}

// TestNativeCopies: a copy keeps every bit of every type, also the payloads of NaNs.
func TestNativeCopies(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for _, d := range append(slices.Clone(realTypes), complexTypes...) {
		for _, pattern := range []string{"b y x", "y x b", "b y (h w) -> b h w y"} {
			axes := []einops.Axis{{"b", 3}, {"y", 5}, {"x", 12}}
			var sizes map[string]int
			if strings.Contains(pattern, "w") {
				sizes = map[string]int{"w": 4}
			}
			plan := mustPlan(t, pattern, axes, sizes)
			_, index := slowLayout(pattern, axes, sizes)
			size := d.Size()
			data := make([]byte, plan.Len()*size)
			for i := range data {
				data[i] = byte(r.Uint32())
			}
			dst := einops.Target{Data: make([]byte, len(data))}
			plan.Scatter(dst, mustConverter(t, einops.Convert{From: d, To: d}), einops.Box{B1: 3, Y1: 5, X1: 12},
				einops.Block{data, d, 60, 12, 1, 0})
			for at, in := range index {
				if !slices.Equal(dst.Data[at*size:][:size], data[in*size:][:size]) {
					t.Fatalf("%s %q: element %d", d, pattern, at)
				}
			}
		}
	}
}

func TestNoDataOfComplexAndWideTypes(t *testing.T) {
	nan, minus := math.NaN(), -9999.0
	bits := uint64(math.MaxUint64 - 1)
	complex64s := func(v ...float32) (b []byte) {
		for _, f := range v {
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(f))
		}
		return b
	}
	f := float32(nan)
	for _, c := range []struct {
		conv einops.Convert
		data []byte
		mask []byte
	}{
		{
			einops.Convert{From: dtype.Complex64, To: dtype.Complex64, NoData: &minus},
			complex64s(-9999, 0, -9999, 1, 0, -9999), []byte{0, 1, 1},
		},
		{
			einops.Convert{From: dtype.Complex64, To: dtype.Complex64, NoData: &nan},
			complex64s(f, 0, 0, f, 1, 1), []byte{0, 0, 1},
		},
		{
			einops.Convert{From: dtype.ComplexInt16, To: dtype.ComplexInt16, NoData: &minus},
			[]byte{0xf1, 0xd8, 0, 0, 0, 0, 0xf1, 0xd8},
			[]byte{0, 1},
		},
		{
			einops.Convert{From: dtype.Uint64, To: dtype.Float32, NoDataBits: &bits},
			[]byte{0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff},
			[]byte{0, 1},
		},
	} {
		c.conv.Fill, c.conv.FillNoData = 5, true
		w := len(c.mask)
		plan := mustPlan(t, "x", []einops.Axis{{"x", w}}, nil)
		dst := einops.Target{Data: make([]byte, w*c.conv.To.Size()), Mask: make([]byte, w)}
		cv := mustConverter(t, c.conv)
		bad := plan.Scatter(dst, cv, einops.Box{B1: 1, Y1: 1, X1: w}, einops.Block{c.data, c.conv.From, 0, 0, 1, 0})
		fill := einops.Target{Data: make([]byte, w*c.conv.To.Size())}
		plan.FillBox(fill, cv, einops.Box{B1: 1, Y1: 1, X1: w})
		if !slices.Equal(dst.Mask, c.mask) || bad != w-int(sum(c.mask)) {
			t.Errorf("%s: mask %v, %d nodata, want %v", c.conv.From, dst.Mask, bad, c.mask)
		}
		for i, ok := range c.mask {
			size := c.conv.To.Size()
			if filled := slices.Equal(dst.Data[i*size:][:size], fill.Data[i*size:][:size]); filled != (ok == 0) {
				t.Errorf("%s: sample %d filled: %v", c.conv.From, i, filled)
			}
		}
	}
}

func sum(b []byte) (n byte) {
	for _, v := range b {
		n += v
	}
	return n
}

// TestScatterFromManyGoroutines: gives the race detector one plan, converter and tensor whose rows
// of pixels are written by many goroutines.
func TestScatterFromManyGoroutines(t *testing.T) {
	const side = 64
	plan := mustPlan(t, "b (h p) (w q) -> (h w) (p q b)", []einops.Axis{
		{"b", 3}, {"y", side}, {"x", side},
	}, map[string]int{"p": 8, "q": 8})
	cv := mustConverter(t, einops.Convert{From: dtype.Uint16, To: dtype.Float32, Scale: []float32{1, 2, 3}})
	data := make([]byte, 3*side*side*2)
	for i := range data {
		data[i] = byte(i * 7)
	}
	target := func() einops.Target { return einops.Target{make([]byte, 4*plan.Len()), make([]byte, plan.Len())} }
	one, many := target(), target()
	plan.Scatter(one, cv, einops.Box{B1: 3, Y1: side, X1: side},
		einops.Block{data, dtype.Uint16, side * side, side, 1, 0})
	var wg sync.WaitGroup
	for y := range side {
		wg.Go(func() {
			plan.Scatter(many, cv, einops.Box{B1: 3, Y0: y, Y1: y + 1, X1: side}, einops.Block{
				data[2*y*side:], dtype.Uint16, side * side, side, 1, 0,
			})
		})
	}
	wg.Wait()
	if !slices.Equal(one.Data, many.Data) || !slices.Equal(one.Mask, many.Mask) {
		t.Error("the tensors differ")
	}
}

func TestScatterNoAlloc(t *testing.T) {
	race.SkipCovered(t)
	nodata := 7.0
	for _, pattern := range []string{"n b y x", "n y x b", "n b (h p) (w q) -> n (h w) (p q b)"} {
		axes := []einops.Axis{{"n", 2}, {"b", 3}, {"y", 32}, {"x", 32}}
		var sizes map[string]int
		if strings.Contains(pattern, "p") {
			sizes = map[string]int{"p": 4, "q": 4}
		}
		plan := mustPlan(t, pattern, axes, sizes)
		for _, from := range realTypes {
			for _, to := range append([]dtype.Type{from}, targetTypes...) {
				cv := mustConverter(t, einops.Convert{From: from, To: to, NoData: &nodata, Fill: 1, FillNoData: true})
				dst := einops.Target{Data: make([]byte, plan.Len()*to.Size()), Mask: make([]byte, plan.Len())}
				blk := einops.Block{make([]byte, 3*32*32*from.Size()), from, 1024, 32, 1, 0}
				turned := einops.Block{blk.Data, from, 1024, -1, 32, 31}
				if n := testing.AllocsPerRun(3, func() {
					plan.Scatter(dst, cv, einops.Box{N: 1, B1: 3, Y1: 32, X1: 32}, blk)
					plan.Scatter(dst, cv, einops.Box{N: 1, B1: 3, Y1: 32, X1: 32}, turned)
					plan.FillBox(dst, cv, einops.Box{B1: 3, Y1: 32, X1: 32})
				}); n != 0 {
					t.Errorf("%q %s to %s: %v allocations", pattern, from, to, n)
				}
			}
		}
	}
}

func TestScatterPanicsOnMistakes(t *testing.T) {
	plan := mustPlan(t, "b y x", []einops.Axis{{"b", 2}, {"y", 4}, {"x", 4}}, nil)
	cv := mustConverter(t, einops.Convert{From: dtype.Uint8, To: dtype.Uint8})
	perBand := mustConverter(t, einops.Convert{From: dtype.Uint8, To: dtype.Float32, Scale: []float32{1, 2}})
	dst := einops.Target{Data: make([]byte, 32)}
	good := einops.Box{B1: 1, Y1: 4, X1: 4}
	blk := einops.Block{make([]byte, 16), dtype.Uint8, 16, 4, 1, 0}
	plan.Scatter(dst, cv, good, blk)
	for name, f := range map[string]func(){
		"box":            func() { plan.Scatter(dst, cv, einops.Box{B1: 1, Y1: 5, X1: 4}, blk) },
		"row":            func() { plan.Scatter(dst, cv, einops.Box{N: 1, B1: 1, Y1: 4, X1: 4}, blk) },
		"step":           func() { plan.Scatter(dst, cv, einops.Box{T: 1, B1: 1, Y1: 4, X1: 4}, blk) },
		"before row":     func() { plan.FillBox(dst, cv, einops.Box{N: -1, B1: 1, Y1: 4, X1: 4}) },
		"before step":    func() { plan.FillBox(dst, cv, einops.Box{T: -1, B1: 1, Y1: 4, X1: 4}) },
		"bands":          func() { plan.FillBox(dst, cv, einops.Box{B1: 3, Y1: 4, X1: 4}) },
		"before bands":   func() { plan.FillBox(dst, cv, einops.Box{B0: -1, B1: 1, Y1: 4, X1: 4}) },
		"rows":           func() { plan.FillBox(dst, cv, einops.Box{B1: 1, Y1: 5, X1: 4}) },
		"before rows":    func() { plan.FillBox(dst, cv, einops.Box{B1: 1, Y0: -1, Y1: 4, X1: 4}) },
		"columns":        func() { plan.FillBox(dst, cv, einops.Box{B1: 1, Y1: 4, X1: 5}) },
		"before columns": func() { plan.FillBox(dst, cv, einops.Box{B1: 1, Y1: 4, X0: -1, X1: 4}) },
		"end first":      func() { plan.FillBox(dst, cv, einops.Box{B1: 1, Y0: 3, Y1: 2, X1: 4}) },
		"target":         func() { plan.Scatter(einops.Target{Data: dst.Data[:31]}, cv, good, blk) },
		"mask":           func() { plan.Scatter(einops.Target{Data: dst.Data, Mask: make([]byte, 31)}, cv, good, blk) },
		"dtype":          func() { plan.Scatter(dst, cv, good, einops.Block{blk.Data, dtype.Int8, 16, 4, 1, 0}) },
		"block":          func() { plan.Scatter(dst, cv, good, einops.Block{blk.Data[:15], dtype.Uint8, 16, 4, 1, 0}) },
		"huge": func() {
			plan.Scatter(dst, cv, good, einops.Block{blk.Data, dtype.Uint8, 16, math.MaxInt, 1, 0})
		},
		"stride": func() { plan.Scatter(dst, cv, good, einops.Block{blk.Data, dtype.Uint8, 16, -1, 1, 0}) },
		"first":  func() { plan.Scatter(dst, cv, good, einops.Block{blk.Data, dtype.Uint8, 16, 4, 1, 1}) },
		"before": func() { plan.Scatter(dst, cv, good, einops.Block{blk.Data, dtype.Uint8, 16, 4, 1, -1}) },
		"fill":   func() { plan.FillBox(dst, perBand, good) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			f()
		}()
	}
}

func FuzzPattern(f *testing.F) {
	for _, s := range []string{
		"n b y x", "n (y x) b", "b y x", "(n b) y x", "n b (h p) (w q) -> n (h w) (p q b)", "... b",
		"n ... x -> x (n ...)", "b y x -> y x b", "1 b () x->b x 1", "n b y x -> n b y", "((", "é", "n..b",
	} {
		f.Add(s, uint16(0x1234), byte(2), byte(3))
	}
	f.Fuzz(func(t *testing.T, text string, lens uint16, p, q byte) {
		pat, err := pattern.Parse(text)
		if err != nil {
			checkSyntaxError(t, text, err)
			return
		}
		var axes []einops.Axis
		for i, name := range "nbyx" {
			axes = append(axes, einops.Axis{string(name), 1 + int(lens>>(4*i)&7)})
		}
		sizes := map[string]int{}
		if strings.Contains(text, "p") {
			sizes["p"] = int(p)
		}
		if strings.Contains(text, "q") {
			sizes["q"] = int(q)
		}
		plan, err := pat.Plan(axes, sizes)
		if err != nil {
			checkSyntaxError(t, text, err)
			return
		}
		elems := 1
		for _, n := range plan.Shape {
			elems *= n
		}
		out := layoutOf(t, plan, axes)
		sorted := slices.Sorted(slices.Values(out))
		for i, v := range sorted {
			if v != i || len(sorted) != elems {
				t.Fatalf("%q %v: not every sample is in the output once: %v", text, axes, out)
			}
		}
		left, _, twoSided := strings.Cut(text, "->")
		if items := slowItems(left); twoSided && len(items) != len(axes) {
			return // axes left out, or "..."
		}
		shape, index := slowLayout(text, axes, sizes)
		if !slices.Equal(shape, plan.Shape) || !slices.Equal(index, out) {
			t.Fatalf("%q %v %v: shape %v %v, want %v %v", text, axes, sizes, plan.Shape, out, shape, index)
		}
	})
}

// checkSyntaxError requires that an error's column lies in the pattern, or just past its end.
func checkSyntaxError(t *testing.T, text string, err error) {
	t.Helper()
	var se *pattern.SyntaxError
	if !errors.As(err, &se) || se.Msg == "" || se.Col < 0 || se.Col > len([]rune(text))+1 {
		t.Fatalf("%q: %v", text, err)
	}
}

func BenchmarkScatter(b *testing.B) {
	zero := 0.0
	for _, c := range []struct {
		name, pattern string
		conv          einops.Convert
		yxb           bool
	}{
		{
			"normalise", "n b y x",
			einops.Convert{From: dtype.Uint16, To: dtype.Float32, Scale: []float32{1e-4}, Offset: []float32{-.1}},
			false,
		},
		{
			"normalise-nodata", "n b y x",
			einops.Convert{From: dtype.Uint16, To: dtype.Float32, Scale: []float32{1e-4}, NoData: &zero}, false,
		},
		{
			"normalise-bfloat16", "n b y x",
			einops.Convert{From: dtype.Uint16, To: dtype.BFloat16, Scale: []float32{1e-4}}, false,
		},
		{
			"normalise-float16", "n b y x",
			einops.Convert{From: dtype.Uint16, To: dtype.Float16, Scale: []float32{1e-4}}, false,
		},
		{
			"normalise-uint8", "n b y x",
			einops.Convert{From: dtype.Uint16, To: dtype.Uint8, Scale: []float32{1. / 256}}, false,
		},
		{"copy", "n b y x", einops.Convert{From: dtype.Uint16, To: dtype.Uint16}, false},
		{
			"channels-last", "n y x b",
			einops.Convert{From: dtype.Uint16, To: dtype.Float32, Scale: []float32{1e-4}}, false,
		},
		{"interleaved", "n b y x", einops.Convert{From: dtype.Uint16, To: dtype.Float32, Scale: []float32{1e-4}}, true},
		{
			"interleaved-last", "n y x b",
			einops.Convert{From: dtype.Uint16, To: dtype.Float32, Scale: []float32{1e-4}}, true,
		},
		{
			"patches", "n b (h p) (w q) -> n (h w) (p q b)",
			einops.Convert{From: dtype.Uint16, To: dtype.Float32, Scale: []float32{1e-4}}, false,
		},
		{
			"patches-bpq", "n b (h p) (w q) -> n (h w) (b p q)",
			einops.Convert{From: dtype.Uint16, To: dtype.Float32, Scale: []float32{1e-4}}, false,
		},
	} {
		b.Run(c.name, func(b *testing.B) {
			const bands, side = 4, 256
			var sizes map[string]int
			if strings.Contains(c.pattern, "p") {
				sizes = map[string]int{"p": 16, "q": 16}
			}
			plan := mustPlan(b, c.pattern, []einops.Axis{{"n", 1}, {"b", bands}, {"y", side}, {"x", side}}, sizes)
			cv := mustConverter(b, c.conv)
			dst := einops.Target{Data: make([]byte, plan.Len()*c.conv.To.Size())}
			blk := einops.Block{make([]byte, bands*side*side*2), dtype.Uint16, side * side, side, 1, 0}
			for i := range blk.Data {
				blk.Data[i] = byte(1 + i%200)
			}
			if c.yxb {
				blk.StrideB, blk.StrideX, blk.StrideY = 1, bands, bands*side
			}
			b.ReportAllocs()
			for b.Loop() {
				plan.Scatter(dst, cv, einops.Box{B1: bands, Y1: side, X1: side}, blk)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/bands, "ns/tile")
		})
	}
}

func Example() {
	p, err := pattern.Parse("n b (h p) (w q) -> n (h w) (p q b)")
	if err != nil {
		panic(err)
	}
	plan, err := p.Plan([]einops.Axis{{"n", 32}, {"b", 6}, {"y", 256}, {"x", 256}}, map[string]int{"p": 16, "q": 16})
	if err != nil {
		panic(err)
	}
	fmt.Println(plan.Axes, plan.Shape)
	_, err = pattern.Parse("n (b y x")
	fmt.Println(err)
	// Output:
	// [n (h w) (p q b)] [32 256 1536]
	// pattern "n (b y x" column 3: this parenthesis is not closed
}

// BenchmarkTurned measures flips and turns of a chunk of 512 by 512 pixels.
func BenchmarkTurned(b *testing.B) {
	const side = 512
	for name, blk := range map[string]einops.Block{
		"identity":  {StrideY: side, StrideX: 1},
		"flip x":    {StrideY: side, StrideX: -1, First: side - 1},
		"flip y":    {StrideY: -side, StrideX: 1, First: side * (side - 1)},
		"transpose": {StrideY: 1, StrideX: side},
		"turn":      {StrideY: -1, StrideX: side, First: side - 1},
	} {
		for _, to := range []dtype.Type{dtype.Float32, dtype.Uint16} {
			c := einops.Convert{From: dtype.Uint16, To: to}
			if to == dtype.Float32 {
				c.Scale = []float32{1e-4}
			}
			b.Run(name+" "+to.String(), func(b *testing.B) {
				plan := mustPlan(b, "b y x", []einops.Axis{{"b", 1}, {"y", side}, {"x", side}}, nil)
				dst := einops.Target{Data: make([]byte, plan.Len()*to.Size())}
				blk := blk
				blk.Data, blk.DType = make([]byte, 2*side*side), dtype.Uint16
				cv := mustConverter(b, c)
				for b.Loop() {
					plan.Scatter(dst, cv, einops.Box{B1: 1, Y1: side, X1: side}, blk)
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/side/side, "ns/pixel")
			})
		}
	}
}
