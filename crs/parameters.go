package crs

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
)

// String returns the parameters as text for SameParameters, such as "laea lat_0=45 lon_0=9 base=4326". Values that are
// PROJ's defaults are left out: 0, and 1 for k_0 and unit.
func (d Definition) String() string {
	words := []string{d.Projection}
	for _, name := range slices.Sorted(maps.Keys(d.Values)) {
		value := d.Values[name]
		if value == 0 || value == 1 && (name == "k_0" || name == "unit") {
			continue
		}
		words = append(words, name+"="+strconv.FormatFloat(value, 'g', -1, 64))
	}
	switch {
	case d.Base != 0:
		words = append(words, "base="+strconv.Itoa(d.Base))
	case d.A != 0:
		words = append(words, "a="+strconv.FormatFloat(d.A, 'g', -1, 64), "rf="+strconv.FormatFloat(d.RF, 'g', -1, 64))
	}
	return strings.Join(words, " ")
}

// SameParameters reports whether two texts of Definition.String may be one CRS: one projection with equal parameters.
// The datum is compared only if both name it in the same way, by a base or by an ellipsoid: writers have one datum in
// several words.
func SameParameters(a, b string) bool {
	kind, left := parametersIn(a)
	other, right := parametersIn(b)
	if kind != other {
		return false
	}
	for _, datum := range []string{"base", "a", "rf"} {
		x, hasX := left[datum]
		y, hasY := right[datum]
		if hasX && hasY && math.Abs(x-y) > 1e-6 { // ellipsoids have 6 decimals
			return false
		}
		delete(left, datum)
		delete(right, datum)
	}
	names := maps.Clone(left)
	maps.Copy(names, right)
	for name := range names {
		missing := 0.0
		if name == "k_0" || name == "unit" {
			missing = 1
		}
		x, y := missing, missing
		if v, ok := left[name]; ok {
			x = v
		}
		if v, ok := right[name]; ok {
			y = v
		}
		if !(math.Abs(x-y) <= cmp.Or(same[name], 1e-9)) {
			return false
		}
	}
	return true
}

// parametersIn splits a text of Definition.String. Values that are no numbers are NaN, which equals nothing.
func parametersIn(text string) (kind string, values map[string]float64) {
	kind, rest, _ := strings.Cut(text, " ")
	values = map[string]float64{}
	for word := range strings.FieldsSeq(rest) {
		name, value, _ := strings.Cut(word, "=")
		v, err := strconv.ParseFloat(value, 64)
		if err != nil {
			v = math.NaN()
		}
		values[name] = v
	}
	return kind, values
}
