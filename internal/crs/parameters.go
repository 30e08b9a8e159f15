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
	for _, name := range []string{"base", "a", "rf"} {
		first, hasX := left[name]
		second, hasY := right[name]
		if hasX && hasY && math.Abs(first-second) > 1e-6 { // ellipsoids have 6 decimals
			return false
		}
		delete(left, name)
		delete(right, name)
	}
	names := maps.Clone(left)
	maps.Copy(names, right)
	for name := range names {
		missing := 0.0
		if name == "k_0" || name == "unit" {
			missing = 1
		}
		first, second := missing, missing
		if value, ok := left[name]; ok {
			first = value
		}
		if value, ok := right[name]; ok {
			second = value
		}
		if !(math.Abs(first-second) <= cmp.Or(same[name], 1e-9)) {
			return false
		}
	}
	return true
}

// parametersIn splits a text of Definition.String. Values that are no numbers are NaN, which differs from
// all.
func parametersIn(text string) (kind string, values map[string]float64) {
	kind, rest, _ := strings.Cut(text, " ")
	values = map[string]float64{}
	for word := range strings.FieldsSeq(rest) {
		name, value, _ := strings.Cut(word, "=")
		number, err := strconv.ParseFloat(value, 64)
		if err != nil {
			number = math.NaN()
		}
		values[name] = number
	}
	return kind, values
}

// ParseDefinition reads a text of Definition.String.
func ParseDefinition(text string) Definition {
	definition := Definition{}
	definition.Projection, definition.Values = parametersIn(text)
	for name, target := range map[string]*float64{"a": &definition.A, "rf": &definition.RF} {
		*target = definition.Values[name]
		delete(definition.Values, name)
	}
	definition.Base = int(definition.Values["base"])
	delete(definition.Values, "base")
	return definition
}

// Described returns what a text says about a CRS, which is a name or well-known text as of ByName: its EPSG code, which
// the package need not know, or else its parameters as Definition.String writes them. Both are zero if the text says
// neither in a way that the package reads.
func Described(text string) (code int, parameters string) {
	text = strings.TrimSpace(text)
	if known, ok := ByName(text); ok {
		return known.Code(), ""
	}
	if authority, number, ok := strings.Cut(text, ":"); ok && strings.EqualFold(authority, "EPSG") {
		n, err := strconv.ParseUint(number, 10, 31)
		if err != nil {
			return 0, ""
		}
		return int(n), ""
	}
	root, ok := parseWKT(text)
	if !ok {
		return 0, ""
	}
	if code = root.code(); code != 0 || root.word != "PROJCS" {
		return code, ""
	}
	if definition, ok := root.definition(); ok {
		return 0, definition.String()
	}
	return 0, ""
}

// datums is how far two datums may have one place apart, in metres: datums of national maps differ by up to some
// hundred.
const datums = 1000

// MayBe reports whether a CRS with parameters, as Definition.String writes them, may be the one with a code: it has the
// points, in units of the CRS, at the places on the Earth where the other has them, but for the datum. What the package
// does not know may be the same.
func MayBe(code int, parameters string, points []Point) bool {
	known, ok := ByCode(code)
	definition := ParseDefinition(parameters)
	other, err := definition.CRS()
	if !ok || err != nil {
		return true
	}
	places, others := make([]Point, len(points)), make([]Point, len(points))
	known.Inverse(places, points)
	other.Inverse(others, points)
	const degree = 111_320 // metres of a degree of latitude, or of longitude at the equator
	for i := range places {
		across := math.Abs(math.Remainder(places[i][0]-others[i][0], 360)) * math.Cos(places[i][1]*math.Pi/180)
		far := degree * math.Hypot(across, places[i][1]-others[i][1])
		if far > datums || math.IsNaN(far) != math.IsNaN(places[i][0]) {
			return false
		}
	}
	return true
}
