package crs

import (
	"strconv"
	"strings"
)

// ByName returns the CRS with a name: "EPSG:32633", also for ESRI's codes, "OGC:CRS84", or WKT (see
// ByWKT). It returns false for other strings, and for a CRS that the package does not know.
func ByName(text string) (*CRS, bool) {
	text = strings.TrimSpace(text)
	authority, code, ok := strings.Cut(text, ":")
	if !ok || strings.ContainsAny(text, "[(") {
		return ByWKT(text)
	}
	switch strings.ToUpper(authority) {
	case "EPSG", "ESRI":
		if number, err := strconv.Atoi(code); err == nil {
			return ByCode(number)
		}
	case "OGC":
		if strings.EqualFold(code, "CRS84") {
			return ByCode(4326)
		}
	}
	return nil, false
}
