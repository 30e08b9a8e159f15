package pattern_test

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/einops"
	"github.com/chaski-eo/chaski/einops/pattern"
)

func TestErrorsPointAtTheColumn(t *testing.T) {
	axes := []einops.Axis{{Name: "n", Len: 2}, {Name: "b", Len: 3}, {Name: "y", Len: 4}, {Name: "x", Len: 6}}
	for _, c := range []struct {
		pattern string
		sizes   map[string]int
		col     int
		msg     string
	}{
		{"", nil, 1, "empty"},
		{"   ", nil, 1, "empty"},
		{"n (b y x", nil, 3, "not closed"},
		{"n (b y -> x", nil, 3, "not closed"},
		{"n b) y x", nil, 4, "never opened"},
		{"n (b (y x))", nil, 6, "group inside"},
		{"n b y x -> n b -> y x", nil, 16, "second arrow"},
		{"n b y x n", nil, 9, "second time"},
		{"n b y x -> n b (y b) x", nil, 19, "second time"},
		{"... n ...", nil, 7, "second time"},
		{"n b 2 x", nil, 5, "neither a name nor 1"},
		{"n b 1y x", nil, 5, "neither a name nor 1"},
		{"n b _y x", nil, 5, "underscore"},
		{"n b y_ x", nil, 5, "underscore"},
		{"n b y, x", nil, 6, `','`},
		{"n é y x", nil, 3, `'é'`},
		{"n b . x", nil, 5, `'.'`},
		{"n b - x", nil, 5, `'-'`},
		{"n b y x\xff", nil, 8, "no meaning"},
		{"n b y x -> n b y", nil, 7, "not on the right"},
		{"n b y x -> n b y x z", nil, 20, "not on the left"},
		{"n b ... -> n b", nil, 5, "not on the right"},
		{"n b y x -> n b y x ...", nil, 20, "not on the left"},
		{"n b (y ...) -> n b y ...", nil, 8, "inside a group"},
		// With shapes.
		{"n b y z", nil, 7, "no axis z, only n b y x"},
		{"n t b y x", nil, 3, "no axis t"},
		{"n b y", nil, 5, "x of length 6 is left out"},
		{"b y x", nil, 5, "n of length 2 is left out"},
		{"n x y b -> n b y x", nil, 3, "place of input axis b"},
		{"b y x -> b y x", nil, 1, "place of input axis n"},
		{"(c 1) y x -> c y x", nil, 7, "place of input axis b"},
		{"n b y -> n b y", nil, 5, "x of length 6 is left out"},
		{"n t b y x -> n t b y x", nil, 3, "no axis t"},
		{"n b y x 1 -> n b y x", nil, 9, "no axis left"},
		{"n b y x ... w -> n b y x ... w", nil, 13, "no axis left"},
		{"n 1 y x -> n y x", nil, 3, "length 3"},
		{"n b (h p) x -> n b h p x", nil, 8, "unknown"},
		{"n b (h p) x -> n b h p x", map[string]int{"p": 3}, 5, "length 4, its factors 3"},
		{"n b (h p) x -> n b h p x", map[string]int{"h": 2, "p": 1}, 5, "length 4, its factors 2"},
		{"n b (h p) x -> n b h p x", map[string]int{"h": 3, "p": 3}, 8, "pass its length 4"},
		{"n b (h p) x -> n b h p x", map[string]int{"p": math.MaxInt}, 8, "pass its length 4"},
		{"n b (h p) x -> n b h p x", map[string]int{"p": 0}, 8, "size 0"},
		{"n b (h p) x -> n b h p x", map[string]int{"p": -2}, 8, "size -2"},
		{"n b () x -> n b x", nil, 5, "length 4, its factors 1"},
		{"n b y x -> n b y x", map[string]int{"b": 4}, 3, "length 3, and the size given for it is 4"},
		{"n b y x", map[string]int{"x": 4}, 7, "length 6, and the size given for it is 4"},
		{"n b y x", map[string]int{"q": 4}, 0, "q, which the pattern has not"},
		{strings.Repeat("n ", 4000), nil, 0, "8000 bytes"},
	} {
		p, err := pattern.Parse(c.pattern)
		if err == nil {
			_, err = p.Plan(axes, c.sizes)
		}
		var se *pattern.SyntaxError
		if !errors.As(err, &se) {
			t.Errorf("%q %v: error %v", c.pattern, c.sizes, err)
			continue
		}
		if se.Col != c.col || !strings.Contains(se.Msg, c.msg) {
			t.Errorf("%q %v: column %d %q, want column %d %q", c.pattern, c.sizes, se.Col, se.Msg, c.col, c.msg)
		}
	}
	err := error(&pattern.SyntaxError{Pattern: "n é", Col: 3, Msg: "wrong"})
	if err.Error() != `pattern "n é" column 3: wrong` {
		t.Error(err)
	}
}

func TestPlanRefusesAxes(t *testing.T) {
	p, err := pattern.Parse("... ")
	if err != nil {
		t.Fatal(err)
	}
	for _, axes := range [][]einops.Axis{
		{{Name: "z", Len: 1}}, {{Len: 1}}, {{Name: "ty", Len: 1}}, {{Name: "x"}}, {{Name: "x", Len: -1}},
		{{Name: "x", Len: 1}, {Name: "y", Len: 1}}, {{Name: "x", Len: 1}, {Name: "x", Len: 1}},
		{{Name: "n", Len: math.MaxInt}, {Name: "x", Len: math.MaxInt}}, {{Name: "x", Len: math.MaxInt / 4}},
	} {
		if _, err := p.Plan(axes, nil); err == nil {
			t.Errorf("%v is taken", axes)
		}
	}
	if plan, err := p.Plan(nil, nil); err != nil || plan.Len() != 1 || len(plan.Shape) != 0 {
		t.Errorf("no axes: %v %v", plan, err)
	}
}
