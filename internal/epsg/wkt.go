package epsg

import (
	"math"
	"slices"
	"strconv"
	"strings"
)

// ByName returns the code of the CRS with a name: "EPSG:32633", also for ESRI's codes, "OGC:CRS84", or WKT (see
// ByWKT). It returns 0 for other strings, and for a CRS that the package does not know.
func ByName(text string) int {
	text = strings.TrimSpace(text)
	authority, code, ok := strings.Cut(text, ":")
	if !ok || strings.ContainsAny(text, "[(") {
		return ByWKT(text)
	}
	switch strings.ToUpper(authority) {
	case "EPSG", "ESRI":
		if number, err := strconv.Atoi(code); err == nil {
			return listed(number)
		}
	case "OGC":
		if strings.EqualFold(code, "CRS84") {
			return 4326
		}
	}
	return 0
}

// listed returns a code if the package knows it, or else 0.
func listed(code int) int {
	if find(code) == "" {
		return 0
	}
	return code
}

// ByWKT returns the code of the CRS of well-known text of version 1, as GDAL or ESRI write it: its EPSG
// code, or the first CRS of the package with the same projection, datum and parameters; 0 for one that the package does
// not know. Of version 2 only the code is used.
func ByWKT(text string) int {
	root, ok := parseWKT(text)
	if !ok {
		return 0
	}
	if code := root.code(); code != 0 {
		return listed(code)
	}
	switch root.word {
	case "GEOGCS":
		if unit := root.child("UNIT"); unit != nil && math.Abs(unit.number(1)-math.Pi/180) > 1e-9 {
			return 0
		}
		return byDatum(words(root.child("DATUM").name()), root.child("PRIMEM").number(1))
	case "PROJCS":
		if definition, ok := root.definition(); ok {
			return definition.Match()
		}
	}
	return 0
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

// Described returns what a text says about a CRS, which is a name or well-known text as of ByName: its EPSG code, which
// the package need not know, or else its parameters as Definition.String writes them. Both are zero if the text says
// neither in a way that the package reads.
func Described(text string) (code int, parameters string) {
	text = strings.TrimSpace(text)
	if code = ByName(text); code != 0 {
		return code, ""
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
