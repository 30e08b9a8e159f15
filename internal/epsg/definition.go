package epsg

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Definition is a CRS by its parameters. Code, West and Shift are set for the CRSs of the package only.
type Definition struct {
	Code int // of EPSG or ESRI; 0 for a CRS without one
	// Projection is PROJ's name of it: tmerc, merc, webmerc, lcc, aea, laea, stere, sterea, somerc,
	// omerc (variant B), omerc_a, cea, eqc, sinu, moll or poly; longlat for longitude and latitude.
	Projection string
	// A and RF are the ellipsoid's semi-major axis in metres and inverse flattening, 0 for a
	// sphere. If A is 0 the base says it.
	A, RF float64
	// Base is the EPSG code of the CRS of longitude and latitude; 0 leaves that to Datum, a name as
	// well-known text has it. A CRS of longitude and latitude of the package has its code and names of its datum there.
	Base  int
	Datum string
	// Values are parameters by PROJ's names: lon_0, lonc, lat_0, lat_1, lat_2, lat_ts, k_0, alpha, gamma and pm in
	// degrees or as they are, x_0 and y_0 in metres, and unit, the metres of a unit.
	Values map[string]float64
	West   bool   // x and y count to the west and south
	Shift  string // of longitude and latitude: the parameters of its way to WGS 84, "?" for unknown, "" for none
}

// same is the largest difference of equal values of a parameter: well-known text has 10 digits or
// more.
var same = map[string]float64{"x_0": 1e-3, "y_0": 1e-3, "k_0": 1e-9, "unit": 1e-8}

// Value returns a parameter with its default.
func (d *Definition) Value(name string) float64 {
	value, ok := d.Values[name]
	switch {
	case ok:
		return value
	case name == "k_0" || name == "unit":
		return 1
	case name == "lat_2" && d.Projection == "lcc":
		return d.Values["lat_1"]
	case name == "gamma":
		return d.Values["alpha"]
	}
	return 0
}

// Match returns the code of the first CRS of the package that fits a definition, or 0; CRSs of EPSG come before
// CRSs of ESRI.
func (d *Definition) Match() int {
	want := *d
	if base, ok := ByCode(d.Base); ok && want.A == 0 {
		want.A, want.RF = base.A, base.RF
	}
	if want.Projection == "omerc" && math.Abs(want.Value("alpha")-90) < 1e-9 &&
		math.Abs(want.Value("gamma")-90) < 1e-9 {
		values := map[string]float64{"lon_0": want.Values["lonc"]}
		for name, value := range want.Values {
			if name != "lonc" && name != "alpha" && name != "gamma" {
				values[name] = value
			}
		}
		want.Projection, want.Values = "somerc", values
	}
	datum := words(d.Datum)
	kind := " " + want.Projection + " "
	for rest := systems; ; {
		pos := strings.Index(rest, kind)
		if pos < 0 {
			return 0
		}
		start := strings.LastIndexByte(rest[:pos], '\n') + 1
		line, after, _ := strings.Cut(rest[start:], "\n")
		rest = after
		a, rf := shape(line)
		if !(math.Abs(a-want.A) <= 1e-3 && math.Abs(rf-want.RF) <= 1e-6) {
			continue
		}
		system, ok := parse(line)
		if !ok || !system.near(&want) {
			continue
		}
		sameBase := want.RF == 0 || hasDatum(find(system.Base), datum)
		if d.Base != 0 {
			sameBase = system.Base == d.Base
		}
		switch {
		case !sameBase:
			continue
		// The other codes of web Mercator are old. They come before it in the list, so it needs to be named.
		case system.Projection == "webmerc":
			return 3857
		}
		return system.Code
	}
}

// near reports whether all parameters of two CRSs are equal, up to rounding.
func (d *Definition) near(other *Definition) bool {
	for _, name := range [...]string{"lon_0", "lonc", "lat_0", "lat_1", "lat_2", "lat_ts", "k_0", "x_0", "y_0",
		"alpha", "gamma", "unit", "pm"} {
		factor := cmp.Or(same[name], 1e-8)
		apart := d.Value(name) - other.Value(name)
		if name == "lon_0" || name == "lonc" || name == "alpha" || name == "gamma" {
			apart = math.Remainder(apart, 360)
		}
		if !(math.Abs(apart) <= factor) {
			return false
		}
	}
	return d.West == other.West
}

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

// NamesWebMercator reports whether a projected CRS is web Mercator by its name alone, whatever its parameters are, as
// for PROJ: writers describe EPSG:3857 as a Mercator projection of the ellipsoid, which is up to 40 km from it. Letters
// and digits are compared, as PROJ does, for which WGS 84 is WGS 1984.
func NamesWebMercator(name string) bool {
	switch strings.Replace(words(name), "wgs1984", "wgs84", 1) {
	case "wgs84pseudomercator", "wgs84webmercator":
		return true
	}
	return false
}

// WebMercator returns EPSG:3857 with another unit of so many metres.
func WebMercator(unit float64) Definition {
	return Definition{Projection: "webmerc", Base: 4326, Values: map[string]float64{"unit": unit}}
}

// Canonical writes the parameters of a definition, whose latitude of origin and first standard
// parallel may stand for each other, as the package's CRSs have them.
func (d *Definition) Canonical() {
	values := d.Values
	move := func(from, to string) {
		if value, ok := values[from]; ok {
			values[to] = value
			delete(values, from)
		}
	}
	_, has1 := values["lat_1"]
	switch d.Projection {
	case "lcc":
		if !has1 {
			values["lat_1"] = values["lat_0"]
		}
	case "merc", "cea", "eqc":
		move("lat_1", "lat_ts")
		if d.Projection == "eqc" && values["lat_ts"] == 0 {
			move("lat_0", "lat_ts")
		}
	case "webmerc":
		delete(values, "lat_1")
	case "stere":
		move("lat_1", "lat_ts")
		if lat := values["lat_0"]; lat != 0 && math.Abs(lat) != 90 {
			values["lat_ts"] = lat
		}
		ts := values["lat_ts"]
		if values["lat_0"] != 0 {
			ts = values["lat_0"]
		}
		if ts == 0 { // nothing says which pole
			return
		}
		values["lat_0"] = math.Copysign(90, ts)
		if math.Abs(values["lat_ts"]) == 90 {
			delete(values, "lat_ts")
		}
	case "omerc", "omerc_a":
		move("lon_0", "lonc")
	}
}
