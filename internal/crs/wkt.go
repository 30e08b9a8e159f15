package crs

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/chaski-eo/chaski/internal/lru"
)

// ByWKT returns the CRS of well-known text of version 1, as GDAL or ESRI write it: by its EPSG
// code, or the first CRS of the package with the same projection, datum and parameters. Of version
// 2 only the code is used.
func ByWKT(text string) (*CRS, bool) {
	root, ok := parseWKT(text)
	if !ok {
		return nil, false
	}
	if code := root.code(); code != 0 {
		return ByCode(code)
	}
	switch root.word {
	case "GEOGCS":
		return matchGeographic(root)
	case "PROJCS":
		definition, ok := root.definition()
		if !ok {
			return nil, false
		}
		return definition.Match()
	}
	return nil, false
}

// wktNode is WORD[text, number, node, …] of well-known text.
type wktNode struct {
	word string
	args []string // strings and numbers, in their order
	in   []wktNode
}

// Limits of well-known text: the EPSG dataset has texts of under 5,000 bytes and 8 levels.
const (
	maxWKT   = 1 << 16
	maxDepth = 32
)

func parseWKT(text string) (n wktNode, ok bool) {
	if len(text) > maxWKT {
		return n, false
	}
	n, rest, ok := parseNode(strings.TrimSpace(text), 0)
	return n, ok && strings.Trim(rest, " \t\r\n|\x00") == ""
}

func parseNode(s string, depth int) (n wktNode, rest string, ok bool) {
	open := strings.IndexAny(s, "[(")
	if open <= 0 || depth > maxDepth {
		return n, s, false
	}
	n.word = strings.ToUpper(strings.TrimSpace(s[:open]))
	for _, c := range n.word {
		letter, digit := 'A' <= c && c <= 'Z', '0' <= c && c <= '9'
		if !letter && !digit && c != '_' {
			return n, s, false
		}
	}
	for s = s[open+1:]; ; s = s[1:] {
		s = strings.TrimLeft(s, " \t\r\n")
		end := strings.IndexAny(s, ",])[(\"")
		switch {
		case end < 0:
			return n, s, false
		case s[end] == '"':
			if strings.TrimSpace(s[:end]) != "" {
				return n, s, false
			}
			quote := strings.IndexByte(s[end+1:], '"')
			if quote < 0 {
				return n, s, false
			}
			n.args = append(n.args, s[end+1:end+1+quote])
			s = s[end+quote+2:]
		case s[end] == '[' || s[end] == '(':
			var child wktNode
			if child, s, ok = parseNode(s, depth+1); !ok {
				return n, s, false
			}
			n.in = append(n.in, child)
		default:
			if word := strings.TrimSpace(s[:end]); word != "" {
				n.args = append(n.args, word)
			}
			s = s[end:]
		}
		s = strings.TrimLeft(s, " \t\r\n")
		if s == "" || !strings.ContainsRune(",])", rune(s[0])) {
			return n, s, false
		}
		if s[0] != ',' {
			return n, s[1:], true
		}
	}
}

func (n *wktNode) child(words ...string) *wktNode {
	for i := range n.in {
		if slices.Contains(words, n.in[i].word) {
			return &n.in[i]
		}
	}
	return nil
}

func (n *wktNode) name() string {
	if n == nil || len(n.args) == 0 {
		return ""
	}
	return n.args[0]
}

// number returns argument i, or 0 if it is not a number.
func (n *wktNode) number(i int) float64 {
	if n == nil || i >= len(n.args) {
		return 0
	}
	number, err := strconv.ParseFloat(n.args[i], 64)
	if err != nil || math.IsNaN(number) || math.IsInf(number, 0) {
		return 0
	}
	return number
}

// code returns the EPSG code in the node itself, or 0.
func (n *wktNode) code() int {
	authority := n.child("AUTHORITY", "ID")
	if authority == nil || len(authority.args) < 2 {
		return 0
	}
	if registry := authority.args[0]; !strings.EqualFold(registry, "EPSG") && !strings.EqualFold(registry, "ESRI") {
		return 0
	}
	code, err := strconv.Atoi(authority.args[1])
	if err != nil {
		return 0
	}
	return code
}

// words returns the name of a datum as systems has it: lower-case letters and digits, without
// ESRI's D_.
func words(name string) string {
	name = strings.TrimPrefix(strings.ToLower(name), "d_")
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return -1
	}, name)
}

// Definition is a projected CRS by its parameters, in place of a code.
type Definition struct {
	// Projection is PROJ's name of it: tmerc, merc, webmerc, lcc, aea, laea, stere, sterea, somerc,
	// omerc (variant B), omerc_a, cea, eqc, sinu, moll or poly.
	Projection string
	// A and RF are the ellipsoid's semi-major axis in metres and inverse flattening, 0 for a
	// sphere. If A is 0 the base says it.
	A, RF float64
	// Base is the EPSG code of the CRS of longitude and latitude; 0 leaves that to Datum, a name as
	// well-known text has it.
	Base  int
	Datum string
	// Values are parameters by PROJ's names: lon_0, lonc, lat_0, lat_1, lat_2, lat_ts, k_0, alpha
	// and gamma in degrees or as they are, x_0 and y_0 in metres, and unit, the metres of a unit.
	Values map[string]float64
}

// Definition returns the parameters of the CRS.
func (c *CRS) Definition() Definition {
	parameters, _ := split(c.line)
	definition := Definition{Projection: parameters.kind, A: parameters.a, RF: parameters.rf, Base: 4326,
		Values: parameters.num}
	if base, ok := parameters.num["on"]; ok {
		definition.Base = int(base)
	}
	definition.Values["unit"] = parameters.value("unit")
	return definition
}

// same is the largest difference of equal values of a parameter: well-known text has 10 digits or
// more.
var same = map[string]float64{"x_0": 1e-3, "y_0": 1e-3, "k_0": 1e-9, "unit": 1e-8}

// value returns a parameter with its default.
func (q *crsLine) value(name string) float64 {
	value, ok := q.num[name]
	switch {
	case ok:
		return value
	case name == "k_0" || name == "unit":
		return 1
	case name == "lat_2" && q.kind == "lcc":
		return q.num["lat_1"]
	case name == "gamma":
		return q.num["alpha"]
	}
	return 0
}

// Match returns the first CRS of the package that fits a definition; CRSs of EPSG come before
// CRSs of ESRI.
func (d *Definition) Match() (*CRS, bool) {
	want := crsLine{kind: d.Projection, a: d.A, rf: d.RF, num: d.Values}
	if base := find(d.Base); base != "" && want.a == 0 {
		if shape, ok := split(base); ok {
			want.a, want.rf = shape.a, shape.rf
		}
	}
	if want.kind == "omerc" && math.Abs(want.value("alpha")-90) < 1e-9 && math.Abs(want.value("gamma")-90) < 1e-9 {
		values := map[string]float64{"lon_0": want.num["lonc"]}
		for name, value := range want.num {
			if name != "lonc" && name != "alpha" && name != "gamma" {
				values[name] = value
			}
		}
		want.kind, want.num = "somerc", values
	}
	datum := words(d.Datum)
	kind := " " + want.kind + " "
	for rest := systems; ; {
		pos := strings.Index(rest, kind)
		if pos < 0 {
			return nil, false
		}
		start := strings.LastIndexByte(rest[:pos], '\n') + 1
		line, after, _ := strings.Cut(rest[start:], "\n")
		rest = after
		a, rf := shape(line)
		if !(math.Abs(a-want.a) <= 1e-3 && math.Abs(rf-want.rf) <= 1e-6) {
			continue
		}
		parameters, ok := split(line)
		if !ok || !parameters.near(&want) {
			continue
		}
		base, ok := parameters.num["on"]
		if !ok {
			base = 4326
		}
		sameBase := want.rf == 0 || hasDatum(find(int(base)), datum)
		if d.Base != 0 {
			sameBase = int(base) == d.Base
		}
		if !sameBase {
			continue
		}
		// The other codes of web Mercator are old. They come before it in the list, so it needs to be named.
		if parameters.kind == "webmerc" {
			parameters.code = 3857
		}
		return ByCode(parameters.code)
	}
}

// near reports whether all parameters of two CRSs are equal, up to rounding.
func (q *crsLine) near(other *crsLine) bool {
	for _, name := range [...]string{"lon_0", "lonc", "lat_0", "lat_1", "lat_2", "lat_ts", "k_0", "x_0", "y_0",
		"alpha", "gamma", "unit", "pm"} {
		factor := cmp.Or(same[name], 1e-8)
		apart := q.value(name) - other.value(name)
		if name == "lon_0" || name == "lonc" || name == "alpha" || name == "gamma" {
			apart = math.Remainder(apart, 360)
		}
		if !(math.Abs(apart) <= factor) {
			return false
		}
	}
	return q.text["axis"] == other.text["axis"]
}

// hasDatum reports whether the datum of a line has a name.
func hasDatum(line, datum string) bool {
	_, names, _ := strings.Cut(line, " datum=")
	for name := range strings.SplitSeq(names, ",") {
		if name == datum {
			return datum != ""
		}
	}
	return false
}

// matchGeographic returns the CRS of longitude and latitude for GEOGCS.
func matchGeographic(n wktNode) (*CRS, bool) {
	if unit := n.child("UNIT"); unit != nil && math.Abs(unit.number(1)-math.Pi/180) > 1e-9 {
		return nil, false
	}
	return byDatum(n.child("DATUM").name(), n.child("PRIMEM").number(1))
}

// ByDatum returns the first CRS of longitude and latitude from Greenwich with a name, its own or its datum's, or
// with the EPSG code of the datum. It compares letters and digits only, and ignores case.
func ByDatum(name string) (*CRS, bool) {
	key := words(name)
	if system, ok := byName.Get(key); ok {
		return system, system != nil
	}
	system, ok := byDatum(name, 0)
	if len(key) <= maxName {
		byName.Add(key, system, int64(len(key)))
	}
	return system, ok
}

// byName holds what ByDatum found by the words of a name, nil for a name that nothing has: the search for one goes
// through all lines of systems and takes 0.4 ms, which each file of a dataset would cost. It is bounded, because names
// in files may be anything: 64 KiB hold some 200.
var byName = lru.New[string, *CRS](64 << 10)

// maxName bounds the names that byName holds, in bytes.
const maxName = 256

func byDatum(name string, pm float64) (*CRS, bool) {
	datum := words(name)
	for line := range strings.SplitSeq(systems, "\n") {
		if strings.Contains(line, " longlat ") && hasDatum(line, datum) {
			system, ok := split(line)
			if ok && math.Abs(system.value("pm")-pm) < 1e-8 {
				return ByCode(system.code)
			}
		}
	}
	return nil, false
}

// projections are the names of PROJECTION in well-known text by GDAL and ESRI, as words writes them.
var projections = map[string]string{
	"transversemercator": "tmerc", "gausskruger": "tmerc", "mercatorauxiliarysphere": "webmerc", "mercator": "merc",
	"mercator1sp": "merc", "mercator2sp": "merc", "lambertconformalconic": "lcc", "lambertconformalconic1sp": "lcc",
	"lambertconformalconic2sp": "lcc", "albers": "aea", "albersconicequalarea": "aea",
	"lambertazimuthalequalarea": "laea",
	"polarstereographic":        "stere", "stereographicnorthpole": "stere", "stereographicsouthpole": "stere",
	"polarstereographicvarianta": "stere", "polarstereographicvariantb": "stere",
	"stereographic": "stere", "behrmann": "cea",
	"obliquestereographic": "sterea", "doublestereographic": "sterea", "cylindricalequalarea": "cea",
	"equirectangular": "eqc", "platecarree": "eqc", "equidistantcylindrical": "eqc", "sinusoidal": "sinu",
	"mollweide": "moll",
	"polyconic": "poly", "hotineobliquemercator": "omerc_a", "hotineobliquemercatorazimuthnaturalorigin": "omerc_a",
	"hotineobliquemercatorazimuthcenter": "omerc", "rectifiedskeworthomorphicnaturalorigin": "omerc_a",
	"rectifiedskeworthomorphiccenter": "omerc",
}

// keys are the names of PARAMETER, likewise.
var keys = map[string]string{
	"falseeasting": "x_0", "falsenorthing": "y_0", "centralmeridian": "lon_0", "longitudeofcenter": "lon_0",
	"longitudeoforigin":       "lon_0",
	"latitudeofnaturalorigin": "lat_0", "longitudeofnaturalorigin": "lon_0",
	"straightverticallongitudefrompole": "lon_0", "latitudeoforigin": "lat_0", "latitudeofcenter": "lat_0",
	"standardparallel1": "lat_1",
	"standardparallel2": "lat_2", "scalefactor": "k_0", "azimuth": "alpha", "rectifiedgridangle": "gamma",
	"xyplanerotation": "gamma",
}

// definition returns the parameters of PROJCS.
func (n *wktNode) definition() (d Definition, ok bool) {
	base := n.child("GEOGCS")
	if base == nil || n.child("PROJECTION") == nil {
		return d, false
	}
	d.Base, d.Datum = base.code(), base.child("DATUM").name()
	if datum := base.child("DATUM"); datum != nil {
		d.A, d.RF = datum.child("SPHEROID").number(1), datum.child("SPHEROID").number(2)
	}
	d.Projection, ok = projections[words(n.child("PROJECTION").name())]
	if !ok {
		return d, false
	}
	values := map[string]float64{}
	if pm := base.child("PRIMEM").number(1); pm != 0 {
		values["pm"] = pm
	}
	unit := 1.0
	if unitNode := n.child("UNIT"); unitNode != nil {
		unit = unitNode.number(1)
	}
	if !(unit > 0) {
		return d, false
	}
	degrees := 1.0 // in the unit of parameters that are angles; GDAL writes the prime meridian in degrees all the same
	if angle := base.child("UNIT"); angle != nil {
		// Rounded, because texts round the radians of a degree or grad.
		degrees = math.Round(angle.number(1)*180/math.Pi*1e9) / 1e9
	}
	if !(degrees > 0) {
		return d, false
	}
	for i := range n.in {
		if node := &n.in[i]; node.word == "PARAMETER" {
			if key, ok := keys[words(node.name())]; ok {
				if values[key] = node.number(1); key != "x_0" && key != "y_0" && key != "k_0" {
					values[key] *= degrees
				}
			} else if node.number(1) != 0 { // one that changes the map in a way that is not known
				return d, false
			}
		}
	}
	if extension := n.child("EXTENSION"); extension != nil && len(extension.args) == 2 && d.Projection == "merc" {
		if strings.Contains(extension.args[1], "+nadgrids=@null") {
			d.Projection = "webmerc" // as GDAL writes EPSG:3857
		}
	}
	if words(n.child("PROJECTION").name()) == "stereographic" && math.Abs(values["lat_0"]) != 90 { // it is oblique
		return d, false
	}
	values["x_0"], values["y_0"], values["unit"] = values["x_0"]*unit, values["y_0"]*unit, unit
	d.Values = values
	if NamesWebMercator(n.name()) {
		d = WebMercator(unit)
	}
	d.Canonical()
	return d, true
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
