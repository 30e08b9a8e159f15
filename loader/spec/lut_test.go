package spec

import (
	"reflect"
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/format/chunk"
)

// TestLUT: the short forms of a look-up table stand for the long one.
func TestLUT(t *testing.T) {
	for text, want := range map[string]*LUT{
		`{"10": 0, "-2": 1.5}`:                   {From: []int{10, -2}, To: []Values{{0}, {1.5}}},
		`[3, 4]`:                                 {To: []Values{{3}, {4}}},
		`{"7": [1, 2, 3]}`:                       {From: []int{7}, To: []Values{{1, 2, 3}}},
		`{"from": [7], "to": [[1, 2]]}`:          {From: []int{7}, To: []Values{{1, 2}}},
		`{"1,2,3": 4, "0,0,0": [5]}`:             {Colours: [][]int{{1, 2, 3}, {0, 0, 0}}, To: []Values{{4}, {5}}},
		`{"1,2,3": 4, "5": 5}`:                   nil,
		`{"1,2,3": 4, "1,2,3,4": 5}`:             nil,
		`{"1,2": 4}`:                             nil,
		`{"1,2,": 4}`:                            nil,
		`{"1,2,3": 4, "01,2,3": 5}`:              nil,
		`{"1,2,65536": 4}`:                       nil,
		`{"x": 1}`:                               nil,
		`{}`:                                     nil,
		`[]`:                                     nil,
		`"a"`:                                    nil,
		`[[1, 2], [1]]`:                          nil,
		`[[]]`:                                   nil,
		`{"from": [1, 1], "to": [2, 3]}`:         nil,
		`{"from": [1], "to": [2, 3]}`:            nil,
		`[` + strings.Repeat("0,", 1<<16) + `0]`: nil,
	} {
		sp, err := ParseSpec([]byte(`{"source": "d", "batch_size": 1,
			"fields": [{"name": "a", "fill": 0, "lut": ` + text + `}]}`))
		if (err == nil) != (want != nil) || want != nil && !reflect.DeepEqual(sp.Fields[0].LUT, want) {
			t.Errorf("%.60s: %v, %+v", text, err, sp.Fields)
		}
	}
	for _, with := range []string{`"resample": "bilinear"`, `"normalize": "mean_std"`, `"kind": "number"`,
		`"columns": ["a", "b"], "lut": [[1, 2]]`} {
		text := `{"source": "d", "batch_size": 1, "stats": {"a": {"bands": [{"mean": 1, "std": 1}]}},
			"fields": [{"name": "a", "dtype": "float32", "lut": [[1, 2]], ` + with + `}]}`
		text = strings.Replace(text, `"lut": [[1, 2]], "columns"`, `"columns"`, 1)
		if _, err := ParseSpec([]byte(text)); err == nil {
			t.Errorf("%s: no error", with)
		}
	}
}

// TestLUTNumbers: a list has the values of 0, 1 and so on, and a whole one of a signed type its negative numbers at the
// end.
func TestLUTNumbers(t *testing.T) {
	whole := (&LUT{To: make([]Values, 256)}).Numbers(chunk.Int8)
	if whole[0] != 0 || whole[127] != 127 || whole[128] != -128 || whole[255] != -1 {
		t.Errorf("int8: %v", whole)
	}
	if some := (&LUT{To: make([]Values, 200)}).Numbers(chunk.Uint16); some[199] != 199 {
		t.Errorf("uint16: %v", some)
	}
}
