package vector

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"reflect"
	"strconv"
	"strings"
	"testing"
)

// TestNumbers: numbers and lists of them are, to the bit, those of strconv and encoding/json; what the quick way does
// not know it leaves to these.
func TestNumbers(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	for range 20000 {
		v := (r.Float64() - 0.5) * math.Pow(10, float64(r.IntN(20)-4))
		text := strconv.FormatFloat(v, "feg"[r.IntN(3)], r.IntN(18)-1, 64)
		want, err := strconv.ParseFloat(text, 64)
		got, end, ok := number([]byte(text), 0)
		if !ok || end != len(text) || err != nil || math.Float64bits(got) != math.Float64bits(want) {
			t.Fatalf("%s: %v (%v), want %v (%v)", text, got, ok, want, err)
		}
	}
	var memory [][]float64
	for _, text := range []string{"[]", "[[]]", "[[1, 2.5 ,-3e2],\n[ 4 ], []]", " [ [0.1,-0] , [] ] ",
		"[[" + strings.Repeat("123456789012345678.25,", 40) + "9007199254740993]]"} {
		var want [][]float64
		if err := json.Unmarshal([]byte(text), &want); err != nil {
			t.Fatal(text, err)
		}
		got, ok := numberLists([]byte(text), memory)
		if !ok || len(got) != len(want) {
			t.Fatalf("%s: %v (%v), want %v", text, got, ok, want)
		}
		for i := range want {
			if len(got[i])+len(want[i]) > 0 && !reflect.DeepEqual(got[i], want[i]) {
				t.Errorf("%s: %v, want %v", text, got, want)
			}
		}
		memory = got
	}
	for _, text := range []string{"{}", "[1]", "[null]", "[[null]]", `[["1"]]`, "[[[1]]]", "[[true]]", "[[1e999]]",
		"null"} {
		if got, ok := numberLists([]byte(text), nil); ok {
			t.Errorf("%s: %v, want the slow way", text, got)
		}
	}
}
