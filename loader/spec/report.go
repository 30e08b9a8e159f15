package spec

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/chaski-eo/chaski/stats"
)

// reports are the statistics of a spec by field.
type reports struct {
	given map[string]json.RawMessage
	left  int // how many bytes of them normalize may still read
}

// maxStatsBytes bounds the statistics in a spec, counted once for each field and source that reads them: 16 times the
// bytes of a spec, or 80 KiB for each of 200 fields.
const maxStatsBytes = 16 * maxSpecBytes

// normalize completes the normalisation of fields, also in sources, and puts numbers in place of methods.
func (r *reports) normalize(fields []Field, sources []Source) error {
	for i := range fields {
		field := &fields[i]
		if field.Normalize == nil {
			continue
		}
		if field.Normalize.Method == "" && field.Normalize.Stats == nil {
			field.Normalize.complete()
			continue
		}
		normalize, err := r.byStats(field)
		if err != nil {
			return within(fmt.Sprintf("field %q: normalize", field.Name), err)
		}
		field.Normalize = normalize
	}
	for _, s := range sources {
		if err := r.normalize(s.Fields, s.Sources); err != nil {
			return InSource(s.Name, err)
		}
	}
	return nil
}

// byStats returns the numbers that the method of a field stands for, for the bands that it picks by index or by name.
func (r *reports) byStats(f *Field) (*Normalize, error) {
	normalize, text := f.Normalize, f.Normalize.Stats
	if text == nil {
		text = r.given[f.Name]
	}
	r.left -= len(text)
	switch {
	case normalize.Scale != nil || normalize.Offset != nil || normalize.Clip != nil:
		return nil, fmt.Errorf("method computes scale, offset and clip: give either method and stats, or these")
	case text == nil && r.given == nil:
		return nil, fmt.Errorf("%q needs stats", normalize.Method)
	case text == nil:
		return nil, fmt.Errorf("%q needs statistics of the field, and stats has %q", normalize.Method,
			slices.Sorted(maps.Keys(r.given)))
	case r.left < 0:
		return nil, fmt.Errorf("fields use over %d bytes of stats", maxStatsBytes)
	}
	var s stats.FieldReport
	if err := json.Unmarshal(text, &s); err != nil {
		if wrong := (*json.UnmarshalTypeError)(nil); errors.As(err, &wrong) {
			return nil, fmt.Errorf("stats: %s is a %s, and not what chaski stats writes",
				cmp.Or(wrong.Field, "it"), wrong.Value)
		}
		return nil, within("stats", err)
	}
	if len(s.Bands) == 0 {
		return nil, fmt.Errorf("stats has no bands")
	}
	out, err := NormalizeByStats(&s, normalize.Method, f)
	if err != nil {
		return nil, within("stats", err)
	}
	return out, nil
}

// NormalizeByStats returns the normalisation that a method (such as stats.MeanStd) makes of the statistics of a field,
// for the bands that the field picks by index or by name.
func NormalizeByStats(r *stats.FieldReport, method string, f *Field) (*Normalize, error) {
	bands := slices.Clone(f.Bands)
	named := map[string][]int{} // one map, because names and bands may both be many
	for i, b := range r.Bands {
		named[b.Name] = append(named[b.Name], i)
	}
	for _, name := range f.BandNames {
		if n := len(named[name]); n != 1 {
			return nil, fmt.Errorf("it must have one band called %q: of %d bands it has %d", name, len(r.Bands), n)
		}
		bands = append(bands, named[name][0])
	}
	scale, offset, clip, err := r.Normalizer(method, bands)
	if err != nil {
		return nil, err
	}
	positiveZeros(offset)
	out := &Normalize{Scale: scale, Offset: offset}
	if clip != nil {
		out.Clip = &[2]Float{Float(clip[0]), Float(clip[1])}
	}
	return out, nil
}
