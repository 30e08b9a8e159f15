package taco3

import (
	"encoding/binary"
	"hash/fnv"
	"slices"
	"strings"

	"github.com/chaski-eo/chaski/format/tables"
	"github.com/chaski-eo/chaski/store/taco/internal/model"
)

// TableName returns the name of the table of a level in a catalog; elsewhere it is in the folder METADATA.
func TableName(level string) string { return strings.ReplaceAll(level, "/", "__") + ".parquet" }

// CheckCollection checks COLLECTION.json by the rules of readers.
func CheckCollection(doc []byte) error {
	_, err := parseCollection(doc)
	return err
}

// AppendIndex appends the index of an archive: an entry for each name, with the places of their bytes. Its length
// depends on the names alone. Numbers are little-endian (cozip 1.0, "Index").
func AppendIndex(b []byte, names []string, places []model.Span) []byte {
	b = append(b, "CZIP"...)
	b = binary.LittleEndian.AppendUint16(b, 1)
	b = append(b, profileTACO)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(names)))
	for _, name := range names {
		b = binary.LittleEndian.AppendUint16(b, uint16(len(name)))
	}
	for _, name := range names {
		b = append(b, name...)
	}
	for _, place := range places {
		b = binary.LittleEndian.AppendUint64(b, uint64(place.Off))
	}
	for _, place := range places {
		b = binary.LittleEndian.AppendUint64(b, uint64(place.Size))
	}
	return b
}

// IndexExtra returns the extra field of the index's local header, with a checksum.
func IndexExtra(checksum uint64) []byte {
	b := binary.LittleEndian.AppendUint16(nil, extraID)
	b = binary.LittleEndian.AppendUint16(b, 8)
	return binary.LittleEndian.AppendUint64(b, checksum)
}

// Checksum returns the checksum of an archive of size bytes: of its index, and of its tail, the last TailBytes, but for
// those that are in the index.
func Checksum(index, tail []byte, size int64) uint64 {
	sum := fnv.New64a()
	_, _ = sum.Write(index) // a hash takes all bytes
	start := size - int64(len(tail))
	_, _ = sum.Write(tail[max(start, indexAt+int64(len(index)))-start:])
	return sum.Sum64()
}

// Group is a group of columns of places and times. Readers want all its columns in a level, of these types.
type Group struct {
	Name    string
	Columns []tables.Column // named without the group
}

// Types of columns of groups. Required ones are never null.
var (
	requiredForm = &tables.Form{Required: true}
	double       = tables.Type{Kind: tables.Float64, Bits: 64, Form: requiredForm}
	degrees      = tables.Type{Kind: tables.Float64, Bits: 32, Form: requiredForm}
	long         = tables.Type{Kind: tables.Int64, Bits: 64, Form: requiredForm}
	utc          = tables.Type{Kind: tables.Timestamp, UTC: true}
)

// noted returns a column with a description.
func noted(name string, t tables.Type, note string) tables.Column {
	f := t.Stored()
	f.Note = note
	t.Form = &f
	return tables.Column{Name: name, Type: t}
}

var (
	whereColumns = []tables.Column{
		noted("geometry", tables.Type{Kind: tables.Binary}, "Footprint as WKB, in degrees of EPSG:4326"),
		noted("bbox", tables.Type{Kind: tables.List, Elem: &double},
			"West, south, east and north of the footprint in degrees; west > east crosses the antimeridian"),
		noted("centroid", tables.Type{Kind: tables.Struct, Form: requiredForm,
			Fields: []tables.Column{{Name: "lon", Type: degrees}, {Name: "lat", Type: degrees}}},
			"Centre of the grid or of the footprint, in degrees of EPSG:4326"),
	}
	whenColumns = []tables.Column{
		noted("datetime", utc, "Time of acquisition; null if only a range is known"),
		noted("start_datetime", utc, "First time of the observation"),
		noted("end_datetime", utc, "Last time of the observation"),
	}
	gridColumns = []tables.Column{
		noted("proj_code", tables.Strings, "CRS of the grid, such as EPSG:32718"),
		noted("proj_shape", tables.Type{Kind: tables.List, Elem: &long}, "Height and width of the grid in pixels"),
		noted("proj_transform", tables.Type{Kind: tables.List, Elem: &double},
			"a, b, c, d, e, f: x = a*column + b*row + c, y = d*column + e*row + f"),
	}
)

// Groups are the groups. A level has one of them at most.
var Groups = []Group{
	{"spatial", slices.Concat(whereColumns, gridColumns)},
	{"temporal", whenColumns},
	{"stac", slices.Concat(whereColumns, whenColumns, gridColumns)},
}

// groupColumns returns the columns of a group, none for another namespace.
func groupColumns(name string) []tables.Column {
	for _, g := range Groups {
		if g.Name == name {
			return g.Columns
		}
	}
	return nil
}

// RumiColumn reports whether a column is one of the extension rumi.
func RumiColumn(name string) bool { return rumiPattern.MatchString(name) }

// ColumnName reports whether readers take a name for the name of a user's column.
func ColumnName(name string) bool {
	space, _, _ := strings.Cut(name, ":")
	return columnPattern.MatchString(name) && !strings.Contains(name, "__") &&
		!slices.Contains(reservedSpaces, space)
}

// Form returns a type with what a declaration says of it: whether it and what is in it may be null, and its
// description.
func (d *Declared) Form(t tables.Type) tables.Type {
	t = nullability(t, d.Type)
	return t.With(func(f *tables.Form) {
		f.Required = d.Nullable != nil && !*d.Nullable
		if d.Description != nil {
			f.Note = *d.Description
		}
	})
}

// nullability returns a type whose parts are required unless the declared type marks them with "?".
func nullability(t tables.Type, declared string) tables.Type {
	begin, end := strings.IndexByte(declared, '<'), strings.LastIndexByte(declared, '>')
	if begin < 0 || end < begin {
		return t
	}
	parts := splitTypes(declared[begin+1 : end])
	below := func(t tables.Type, part string) tables.Type {
		maybe := strings.HasSuffix(part, "?")
		return nullability(t, strings.TrimSuffix(part, "?")).With(func(f *tables.Form) { f.Required = !maybe })
	}
	switch {
	case t.Kind == tables.List && t.Stored().Store == tables.Map && len(parts) == 2:
		elem := *t.Elem
		elem.Fields = []tables.Column{elem.Fields[0],
			{Name: elem.Fields[1].Name, Type: below(elem.Fields[1].Type, parts[1])}}
		t.Elem = &elem
	case t.Kind == tables.List && len(parts) > 0:
		elem := below(*t.Elem, parts[0])
		t.Elem = &elem
	case t.Kind == tables.Struct && len(parts) == len(t.Fields):
		t.Fields = slices.Clone(t.Fields)
		for i, part := range parts {
			_, typ, _ := strings.Cut(part, ":")
			t.Fields[i].Type = below(t.Fields[i].Type, strings.TrimSpace(typ))
		}
	}
	return t
}

// splitTypes splits a text at the commas that are in no brackets.
func splitTypes(text string) (parts []string) {
	depth, begin := 0, 0
	for i, c := range text {
		switch c {
		case '<', '[', '(':
			depth++
		case '>', ']', ')':
			depth--
		case ',':
			if depth == 0 {
				parts, begin = append(parts, strings.TrimSpace(text[begin:i])), i+1
			}
		}
	}
	return append(parts, strings.TrimSpace(text[begin:]))
}
