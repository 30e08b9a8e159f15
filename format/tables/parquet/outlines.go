package parquet

import (
	"cmp"
	"encoding/json"
	"regexp"
	"strings"
)

// geoKey is the entry of the metadata that describes columns of geometries, as GeoParquet 1.1 has it.
const geoKey = "geo"

// geometryType is what the type GEOMETRY or GEOGRAPHY of a column says.
type geometryType struct {
	column, crs string
	spherical   bool // edges between points follow the globe
}

// outlineType reads GeometryType or GeographyType: a CRS and, of the latter, how edges are drawn.
func (p *footerParser) outlineType(typ byte, spherical bool) *geometryType {
	if !p.want(typ, tStruct) {
		return nil
	}
	outlines := &geometryType{spherical: spherical}
	var crs []byte
	p.fields(&crs)
	outlines.crs = string(crs)
	return outlines
}

var (
	sridPattern = regexp.MustCompile(`^(?:srid:)?([0-9]{1,9})$`)
	codePattern = regexp.MustCompile(`^([A-Za-z]+):([A-Za-z0-9]+)$`)
)

// describe adds what types say of geometries to the metadata, in the words of GeoParquet 1.1, unless the file has its
// own description. GeoParquet 2.0 has no other (https://github.com/apache/parquet-format, Geospatial.md).
func (p *footerParser) describe() {
	// The file's own description says more, so it must not be replaced.
	if _, described := p.f.Meta[geoKey]; described || len(p.geo) == 0 {
		return
	}
	type column struct {
		Encoding string          `json:"encoding"`
		CRS      json.RawMessage `json:"crs,omitempty"` // absent: OGC:CRS84
		Edges    string          `json:"edges"`
	}
	geo := struct {
		Primary string            `json:"primary_column"`
		Columns map[string]column `json:"columns"`
	}{Columns: map[string]column{}}
	for _, outlines := range p.geo {
		if p.f.Column(outlines.column) < 0 { // in a group
			continue
		}
		described := column{Encoding: "WKB", Edges: "planar", CRS: p.crs(outlines.crs)}
		if outlines.spherical {
			described.Edges = "spherical"
		}
		geo.Primary = cmp.Or(geo.Primary, outlines.column)
		geo.Columns[outlines.column] = described
	}
	text, err := json.Marshal(geo)
	if err != nil || geo.Primary == "" || !p.spend(len(text), 1) {
		return
	}
	if p.f.Meta == nil {
		p.f.Meta = map[string]string{}
	}
	p.f.Meta[geoKey] = string(text)
}

// crs returns the PROJJSON of a CRS that a type names: by an SRID or a code of an authority, by an entry of the
// metadata (projjson:KEY), or by itself. A name of another form is kept as a name, whose CRS readers do not know.
func (p *footerParser) crs(text string) json.RawMessage {
	if key, ok := strings.CutPrefix(text, "projjson:"); ok {
		text = p.f.Meta[key]
	}
	id := map[string]string{"authority": "EPSG"}
	switch found := codePattern.FindStringSubmatch(text); {
	case text == "":
		return nil
	case json.Valid([]byte(text)) && strings.HasPrefix(text, "{"):
		return json.RawMessage(text)
	case found != nil && found[1] != "srid":
		id["authority"], id["code"] = found[1], found[2]
	case sridPattern.MatchString(text):
		id["code"] = sridPattern.FindStringSubmatch(text)[1]
	}
	data, err := json.Marshal(map[string]any{"name": text, "id": id})
	if err != nil {
		return json.RawMessage("null") // of texts that is not possible
	}
	return data
}
