package spec

import "slices"

// SourceColumn is the tensor in the batches of a mixture that holds the dataset of each row.
const SourceColumn = "source"

// WindowMember is the tensor of Spec.Windows, int64 (n, 4): y, x, height and width of the window of
// each row, in pixels of the first raster field, before it is resampled, flipped or turned. y +
// height and x + width may lie past the edge if the field pads. Rows without a sample hold -1. All
// steps of a sequence share the window.
const WindowMember = "window"

// IDMember is the tensor of Spec.Only with what samples are called.
const IDMember = "id"

// GeoMembers are the tensors of Spec.Geo, int64 (n) of EPSG codes and else float64. They describe the first raster
// field's window as it lies in the tensor: resampled, flipped and turned. All steps of a sequence have the values of
// the first. Rows without a sample, and rasters that lack a place, have the EPSG code 0 and NaN; with an unknown CRS,
// "geo.lonlat" and "geo.gsd" have NaN.
var GeoMembers = [...]string{"geo.transform", "geo.epsg", "geo.bounds", "geo.lonlat", "geo.gsd"}

// GeoTime is the tensor of Spec.Geo with the times of rows, int64 (n), or (n t) of sequences and of arrays with an axis
// t: microseconds since 1970 UTC, and the least int64 for a row without a time.
const GeoTime = "geo.time"

// ThereMember returns the name of the tensor that says in which rows a field is there: uint8 (n), or (n t) of a field
// with steps. Batches with BadFill, or with a field that may lack, have one for each field.
func ThereMember(field string) string { return "there." + field }

// SaysWhatIsThere reports whether batches have a tensor ThereMember for each field.
func (s *Spec) SaysWhatIsThere() bool {
	lacks := func(f Field) bool { return f.MayLack() }
	return (s.BadSamples == BadFill || slices.ContainsFunc(s.Fields, lacks)) && len(s.Only) == 0
}

// ClockColumns returns the columns that GeoTime looks at, in this order: the one that orders sequences, the columns of
// the rules by which scenes and their steps stand, and the usual ones.
func (s *Source) ClockColumns(o *Sampler) (names []string) {
	if s.Time != nil {
		names = append(names, s.Time.Order)
	}
	if o.Kind == GeoWindow {
		names = append(names, o.rules()...)
	}
	return append(names, TimeColumns...)
}

// extras returns the names of the tensors of a batch that are not fields.
func (s *Spec) extras() (names []string) {
	if len(s.Sources) > 0 {
		names = append(names, SourceColumn)
	}
	if s.Windows {
		names = append(names, WindowMember)
	}
	if s.Geo {
		names = append(append(append(names, "geo"), GeoMembers[:]...), GeoTime)
	}
	if s.SaysWhatIsThere() {
		names = append(names, "there")
		for _, field := range s.Fields {
			names = append(names, ThereMember(field.Name))
		}
	}
	fixed := len(names)
	_ = s.walk(func(src Source, _ int) error {
		if t := s.SequenceOf(&src); t != nil && !slices.Contains(names[fixed:], t.Validity) {
			names = append(names, t.Validity)
		}
		return nil
	})
	return names
}
