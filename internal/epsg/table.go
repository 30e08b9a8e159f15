// Package epsg knows coordinate reference systems (CRSs) by their codes, names, well-known text and parameters. Package
// internal/crs projects by them.
//
// systems.txt lists the known ones: 5,600 projected CRSs of the EPSG dataset, 680 of longitude and latitude, and ESRI's
// projections of the world and of continents (codes 53001 and up). Projections not implemented are Krovak,
// Cassini-Soldner, azimuthal equidistant, Equal Earth, the New Zealand Map Grid, Bonne and some that one country uses;
// CRSs whose axes are in other units than degrees or one length are not read either.
package epsg

import (
	_ "embed"
	"math"
	"strconv"
	"strings"

	"github.com/chaski-eo/chaski/internal/lru"
)

// systems has a line for each CRS, in the order of the codes: the code, the projection by PROJ's name, the ellipsoid's
// semi-major axis and inverse flattening (0 for a sphere), and what differs from its default of
//
//	on      code of the CRS of longitude and latitude (4326), 0 for none with a code
//	pm      prime meridian, in degrees from Greenwich (0)
//	lon_0, lonc, lat_0, lat_1, lat_2, lat_ts, k_0, x_0, y_0, alpha, gamma   as PROJ has them (0; k_0 is 1)
//	unit    metres of a unit (1)
//	axis    wsu: x and y count to the west and south
//	wgs     the way to WGS 84, of CRSs of longitude and latitude: up to 7 parameters of
//	        EPSG method 9606, or ? for unknown
//	datum   EPSG code of the datum, and names of it and of the CRS, as words writes them
//
// systems.py makes it.
//
//go:embed systems.txt
var systems string

// ByCode returns the CRS with a code of EPSG or ESRI, or false if the package does not know it.
func ByCode(code int) (d Definition, ok bool) { return parse(find(code)) }

// Projection returns PROJ's name of the projection of a code, longlat for longitude and latitude, or "" if the package
// does not know the code.
func Projection(code int) string {
	_, rest, _ := strings.Cut(find(code), " ")
	name, _, _ := strings.Cut(rest, " ")
	return name
}

// find returns the line of a code, or "".
func find(code int) string {
	if code <= 0 {
		return ""
	}
	for rest := systems; rest != ""; {
		start := strings.LastIndexByte(rest[:len(rest)/2], '\n') + 1
		line, after, _ := strings.Cut(rest[start:], "\n")
		number, _, _ := strings.Cut(line, " ")
		n, _ := strconv.Atoi(number) // 0 in comments, which come first
		switch {
		case n == code:
			return line
		case n < code:
			rest = after
		default:
			rest = rest[:start]
		}
	}
	return ""
}

// parse returns the contents of a line.
func parse(line string) (d Definition, ok bool) {
	words := strings.Fields(line)
	if len(words) < 3 {
		return d, false
	}
	var err error
	d = Definition{Projection: words[1], Base: 4326, Values: map[string]float64{}}
	if d.Code, err = strconv.Atoi(words[0]); d.Projection == "longlat" {
		d.Base = d.Code
	}
	d.A, d.RF = shape(line)
	for _, word := range words[3:] {
		name, value, _ := strings.Cut(word, "=")
		switch name {
		case "on":
			d.Base, err = strconv.Atoi(value)
		case "axis":
			d.West = value == "wsu"
		case "wgs":
			d.Shift = value
		case "datum":
			d.Datum = value
		default:
			d.Values[name], err = strconv.ParseFloat(value, 64)
		}
		if err != nil {
			return d, false
		}
	}
	return d, err == nil && d.A > 0
}

// shape returns the ellipsoid of a line, or zeros if it has none.
func shape(line string) (a, rf float64) {
	_, line, _ = strings.Cut(line, " ")
	_, line, _ = strings.Cut(line, " ")
	line, _, _ = strings.Cut(line, " ")
	first, second, _ := strings.Cut(line, ",")
	a, err1 := strconv.ParseFloat(first, 64)
	rf, err2 := strconv.ParseFloat(second, 64)
	if err1 != nil || err2 != nil {
		return 0, 0
	}
	return a, rf
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

// ByDatum returns the code of the first CRS of longitude and latitude from Greenwich with a name, its own or its
// datum's, or with the EPSG code of the datum; 0 if it finds no CRS. It compares letters and digits only, and ignores
// case.
func ByDatum(name string) int {
	key := words(name)
	if code, ok := byName.Get(key); ok {
		return code
	}
	code := byDatum(key, 0)
	if len(key) <= maxName {
		byName.Add(key, code, int64(len(key)))
	}
	return code
}

// byName holds what ByDatum found by the words of a name, 0 for a name that nothing has: the search for one goes
// through all lines of systems and takes 0.4 ms, which each file of a dataset would cost. It is bounded, because names
// in files may be anything: 64 KiB hold some 200.
var byName = lru.New[string, int](64 << 10)

// maxName bounds the names that byName holds, in bytes.
const maxName = 256

// byDatum is ByDatum for a name as words writes it, from the prime meridian pm.
func byDatum(name string, pm float64) int {
	for line := range strings.SplitSeq(systems, "\n") {
		if strings.Contains(line, " longlat ") && hasDatum(line, name) {
			if system, ok := parse(line); ok && math.Abs(system.Value("pm")-pm) < 1e-8 {
				return system.Code
			}
		}
	}
	return 0
}
