package tiledb

import (
	"cmp"
	"encoding/binary"
	"math"
	"strings"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/store/tiledb/filter"
)

// DefaultFilters is the pipeline that TileDB gives coordinates and offsets where nothing else is said.
func DefaultFilters() filter.Pipeline {
	return filter.Pipeline{MaxChunk: filter.DefaultMaxChunk, Filters: []filter.Filter{{ID: filter.Zstd, Level: -1}}}
}

// Validate says why no array is made of a schema. One that does not make sense is an error of the kind that reading it would
// give, names of attributes that make files of one name are fault.Unsupported.
func (s *Schema) Validate() error {
	if _, err := parseSchema(s.append(nil), DefaultMaxTile); err != nil {
		return err
	}
	return s.checkNames()
}

// anonymous is what TileDB calls the one attribute of an array that may have no name.
const anonymous = "__attr"

// checkNames refuses attributes that would write over other files of a fragment: as in TileDB's library, names that begin like its own
// files do, and, which that library lets pass, one that is called like the var-length data of another.
func (s *Schema) checkNames() error {
	for i := range s.Attrs {
		name := s.Attrs[i].Name
		if strings.HasPrefix(name, "__") && name != anonymous {
			return fault.New(fault.Unsupported, "attribute "+name, fault.NoOffset, "names that begin with __ are those of TileDB's own files")
		}
		if k := s.Attr(name + "_var"); s.Attrs[i].Var() && k >= 0 {
			return fault.New(fault.Unsupported, "attribute "+name, fault.NoOffset, "its values and those of %s have the same file", s.Attrs[k].Name)
		}
	}
	return nil
}

// writable refuses what no fragment is written for: names of files that are not the attributes' own, and pipelines with bzip2.
func (s *Schema) writable() error {
	check := func(what string, p filter.Pipeline) error {
		if p.Has(filter.Bzip2) {
			return fault.New(fault.Unsupported, what, fault.NoOffset, "its filters have bzip2, which is read but not written: no fragment is added to the array, and none merged")
		}
		return nil
	}
	for i := range s.Attrs {
		if err := check("attribute "+s.Attrs[i].Name, s.Attrs[i].Pipeline); err != nil {
			return err
		}
	}
	return cmp.Or(check("coordinates", s.Coords), check("offsets", s.Offsets), s.checkNames())
}

// append appends the content of a schema file. What an open encrypted array has in its pipelines besides is
// left out.
func (s *Schema) append(b []byte) []byte {
	kind := byte(1)
	if s.Dense {
		kind = 0
	}
	b = binary.LittleEndian.AppendUint32(b, Version)
	b = append(b, kind, byte(s.TileOrder), byte(s.CellOrder))
	b = binary.LittleEndian.AppendUint64(b, s.Capacity)
	b = without(s.Offsets, without(s.Coords, b))
	b = append(b, byte(s.DimType))
	b = binary.LittleEndian.AppendUint32(b, uint32(len(s.Dims)))
	for i := range s.Dims {
		b = s.appendDim(b, &s.Dims[i])
	}
	b = binary.LittleEndian.AppendUint32(b, uint32(len(s.Attrs)))
	for i := range s.Attrs {
		a := &s.Attrs[i]
		b = binary.LittleEndian.AppendUint32(b, uint32(len(a.Name)))
		b = append(append(b, a.Name...), byte(a.Type))
		b = binary.LittleEndian.AppendUint32(b, a.Values)
		b = without(a.Pipeline, b)
	}
	return b
}

// without appends a pipeline but for its encryption.
func without(p filter.Pipeline, b []byte) []byte {
	q := filter.Pipeline{MaxChunk: p.MaxChunk}
	for _, f := range p.Filters {
		if f.ID != filter.AES256GCM {
			q.Filters = append(q.Filters, f)
		}
	}
	return q.Append(b)
}

func (s *Schema) appendDim(b []byte, d *Dim) []byte {
	b = binary.LittleEndian.AppendUint32(b, uint32(len(d.Name)))
	b = append(b, d.Name...)
	b = s.DimType.store(s.DimType.store(b, d.Domain.Lo), d.Domain.Hi)
	switch {
	case d.Extent == 0:
		return append(b, 1)
	case s.DimType.real():
		return s.DimType.store(append(b, 0), s.DimType.CoordOfFloat(math.Float64frombits(d.Extent)))
	}
	return s.DimType.store(append(b, 0), s.DimType.CoordOf(0)+Coord(d.Extent))
}

func (s *Schema) appendBox(b []byte, box Box) []byte {
	for _, i := range box {
		b = s.DimType.store(s.DimType.store(b, i.Lo), i.Hi)
	}
	return b
}

// encrypt adds to every pipeline the filter that encrypted arrays have without saying so.
func (s *Schema) encrypt() {
	s.Encrypted = true
	last := filter.Filter{ID: filter.AES256GCM}
	s.Coords, s.Offsets = s.Coords.With(last), s.Offsets.With(last)
	for i := range s.Attrs {
		s.Attrs[i].Pipeline = s.Attrs[i].Pipeline.With(last)
	}
}
