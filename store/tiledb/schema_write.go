package tiledb

import (
	"encoding/binary"
	"math"

	"github.com/chaski-eo/chaski/store/tiledb/filter"
)

// append appends the content of a schema file. The encryption filters that an open encrypted array
// has in its pipelines are left out.
func (s *Schema) append(b []byte) []byte {
	kind := byte(1)
	if s.Dense {
		kind = 0
	}
	b = binary.LittleEndian.AppendUint32(b, Version)
	b = append(b, kind, byte(s.TileOrder), byte(s.CellOrder))
	b = binary.LittleEndian.AppendUint64(b, s.Capacity)
	b = appendUnencrypted(s.Offsets, appendUnencrypted(s.Coords, b))
	b = append(b, byte(s.DimType))
	b = binary.LittleEndian.AppendUint32(b, uint32(len(s.Dims)))
	for i := range s.Dims {
		b = s.appendDim(b, &s.Dims[i])
	}
	b = binary.LittleEndian.AppendUint32(b, uint32(len(s.Attrs)))
	for i := range s.Attrs {
		attr := &s.Attrs[i]
		b = binary.LittleEndian.AppendUint32(b, uint32(len(attr.Name)))
		b = append(append(b, attr.Name...), byte(attr.Type))
		b = binary.LittleEndian.AppendUint32(b, attr.Values)
		b = appendUnencrypted(attr.Pipeline, b)
	}
	return b
}

// appendUnencrypted appends a pipeline without its encryption filter.
func appendUnencrypted(p filter.Pipeline, b []byte) []byte {
	pipeline := filter.Pipeline{MaxChunk: p.MaxChunk}
	for _, kept := range p.Filters {
		if kept.ID != filter.AES256GCM {
			pipeline.Filters = append(pipeline.Filters, kept)
		}
	}
	return pipeline.Append(b)
}

func (s *Schema) appendDim(b []byte, d *Dim) []byte {
	b = binary.LittleEndian.AppendUint32(b, uint32(len(d.Name)))
	b = append(b, d.Name...)
	b = s.DimType.store(s.DimType.store(b, d.Domain.Lo), d.Domain.Hi)
	switch {
	case d.Extent == 0:
		return append(b, 1)
	case s.DimType.Real():
		return s.DimType.store(append(b, 0), s.DimType.CoordOfFloat(math.Float64frombits(d.Extent)))
	}
	return s.DimType.store(append(b, 0), s.DimType.CoordOf(0)+Coord(d.Extent))
}

func (s *Schema) appendBox(b []byte, box Box) []byte {
	for d, i := range box {
		typ := s.Type(d)
		b = typ.store(typ.store(b, i.Lo), i.Hi)
	}
	return b
}

// encrypt adds the encryption filter to every pipeline. Schemas of encrypted arrays do not list it.
func (s *Schema) encrypt() {
	s.Encrypted = true
	last := filter.Filter{ID: filter.AES256GCM}
	s.Coords, s.Offsets, s.Validity = s.Coords.With(last), s.Offsets.With(last), s.Validity.With(last)
	form, _ := formatOf(s.version())
	for i := range s.Dims {
		// Otherwise the filters of Coords count, which are encrypted already.
		if len(s.Dims[i].Pipeline.Filters) > 0 || !form.dimTypes {
			s.Dims[i].Pipeline = s.Dims[i].Pipeline.With(last)
		}
	}
	for i := range s.Attrs {
		s.Attrs[i].Pipeline = s.Attrs[i].Pipeline.With(last)
	}
}
