package spec

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/chaski-eo/chaski/stats"
)

// Normalize computes y = f32(f32(x*s) + o), and then clips y. s and o are the scale and the offset of
// the band, rounded to float32 once; the other members stand for them.
type Normalize struct {
	// Scale and Offset have one value for each picked band, or one for all. Scale must not be 0. Default: 1 and 0.
	Scale  Values `json:"scale"`
	Offset Values `json:"offset"`
	// Clip holds the least and the greatest value of the result. Default: none.
	Clip *[2]Float `json:"clip,omitempty"`
	// Mean and Std are given together, in place of Scale and Offset, as published models have them: the result is
	// (x-mean)/std. They have one value for each picked band, or one for all, in units of the pixels before it. A
	// std is above 0.
	Mean Values `json:"mean,omitempty"`
	Std  Values `json:"std,omitempty"`
	// Method computes Scale, Offset and Clip from Stats, in their place: "mean_std" gives mean 0 and standard
	// deviation 1, "min_max" brings the least value to 0 and the greatest to 1, and "percentile" brings the 2.5th
	// percentile to 0 and the 98.5th to 1 and clips. A spec with defaults has the numbers in its place.
	Method string `json:"method,omitempty"`
	// Stats holds the statistics of the field: the member of `fields` with its name in the JSON of chaski stats.
	// Default in JSON: the member of `stats` of the spec.
	Stats json.RawMessage `json:"stats,omitempty"`
}

// byStats reports whether the numbers come of statistics, and so depend on the bands that are picked.
func (n *Normalize) byStats() bool { return n != nil && (n.Method != "" || n.Stats != nil) }

// numbers returns n with a scale and an offset in place of every other form, for the bands of field f.
func (n *Normalize) numbers(f *Field) (*Normalize, error) {
	switch {
	case n == nil:
		return nil, nil
	case n.byStats():
		if n.Scale != nil || n.Offset != nil || n.Clip != nil || n.Mean != nil || n.Std != nil {
			return nil, errors.New("method computes scale, offset and clip: give either method and stats, or these")
		}
		return n.ofStats(f)
	case n.Mean != nil || n.Std != nil:
		return n.ofMeanStd()
	case n.Scale == nil && n.Offset == nil && n.Clip == nil:
		return nil, errors.New("it is empty: give scale, offset, clip, or mean and std; or leave it out")
	}
	scale, offset := paired(n.Scale, 1, n.Offset, 0)
	positiveZeros(offset)
	return &Normalize{Scale: scale, Offset: offset, Clip: n.Clip}, nil
}

// ofStats returns the numbers that the method of n makes of its statistics for field f.
func (n *Normalize) ofStats(f *Field) (*Normalize, error) {
	if n.Stats == nil {
		return nil, fmt.Errorf("%q needs stats", n.Method)
	}
	var s stats.FieldReport
	if err := json.Unmarshal(n.Stats, &s); err != nil {
		if wrong := (*json.UnmarshalTypeError)(nil); errors.As(err, &wrong) {
			return nil, fmt.Errorf("stats: %s is a %s, and not what chaski stats writes",
				cmp.Or(wrong.Field, "it"), wrong.Value)
		}
		return nil, within("stats", err)
	}
	if f.Physical == nil { // the statistics say of which values they are
		f.Physical = new(s.Physical)
	}
	if physical := f.IsPhysical(); s.Physical != physical {
		return nil, fmt.Errorf("physical is %t, and of the field that stats measured it is %t", physical, s.Physical)
	}
	out, err := NormalizeByStats(&s, n.Method, f.Bands, f.BandNames)
	return out, within("stats", err)
}

// NormalizeByStats returns the normalisation that a method (such as stats.MeanStd) makes of the statistics of a field,
// for the bands that the field picks by index or by name.
func NormalizeByStats(r *stats.FieldReport, method string, bands []int, names []string) (*Normalize, error) {
	if len(r.Bands) == 0 {
		return nil, errors.New("it has no bands")
	}
	// One map serves all bands, because names and bands may both be many.
	named := map[string][]stats.Band{}
	for _, band := range r.Bands {
		if known := named[band.Name]; len(known) == 0 || !r.Picked || known[0].Number() != band.Number() {
			named[band.Name] = append(known, band) // a band that is picked twice has the same number
		}
	}
	if names != nil {
		byName := &stats.FieldReport{}
		for _, name := range names {
			if n := len(named[name]); n != 1 {
				return nil, fmt.Errorf("it must have one band called %q: of %d bands it has %d", name, len(r.Bands), n)
			}
			byName.Bands = append(byName.Bands, named[name][0])
		}
		r = byName
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

// ofMeanStd returns n with a scale and an offset in place of its mean and std.
func (n *Normalize) ofMeanStd() (*Normalize, error) {
	mean, std := paired(n.Mean, 0, n.Std, 1)
	switch {
	case n.Scale != nil || n.Offset != nil:
		return nil, errors.New("mean and std stand for scale and offset: give either the former or the latter")
	case len(n.Mean) == 0 || len(n.Std) == 0 || len(mean) != len(std):
		return nil, fmt.Errorf("mean has %d values and std has %d: both need as many, one for each band", len(n.Mean),
			len(n.Std))
	case slices.Min(std) <= 0:
		return nil, fmt.Errorf("std has %g: it must be above 0", slices.Min(std))
	}
	out, err := NormalizeByStats(&stats.FieldReport{Bands: stats.MeanStdBands(mean, std)}, stats.MeanStd, nil, nil)
	if err == nil {
		out.Clip = n.Clip
	}
	return out, err
}

// paired returns copies of two lists in which a nil one has its default, and a single value is repeated for all bands
// of the other list.
func paired(a Values, defaultA float64, b Values, defaultB float64) (Values, Values) {
	if a == nil {
		a = Values{defaultA}
	}
	if b == nil {
		b = Values{defaultB}
	}
	repeated := func(v Values) Values {
		if len(v) == 1 {
			return slices.Repeat(v, max(len(a), len(b)))
		}
		return slices.Clone(v)
	}
	return repeated(a), repeated(b)
}

// positiveZeros makes 0 of -0: an offset of 0 has one spec hash.
func positiveZeros(values []float64) {
	for i := range values {
		values[i] += 0
	}
}

// Validate checks the scales, the offsets and the clip for a tensor of a dtype. A nil n is valid.
func (n *Normalize) Validate(dtype string) error {
	if n == nil {
		return nil
	}
	if dtype == "native" || dtype == "int64" {
		return fmt.Errorf("normalize needs dtype float32, float16, bfloat16 or uint8, and dtype is %q", dtype)
	}
	if len(n.Scale) == 0 || len(n.Scale) != len(n.Offset) {
		return fmt.Errorf("normalize: scale has %d values and offset has %d: both need as many, one for each band",
			len(n.Scale), len(n.Offset))
	}
	for i := range n.Scale {
		if n.Scale[i] == 0 {
			return fmt.Errorf("normalize: scale %d of %d is 0: every sample of the band would become its offset",
				i, len(n.Scale))
		}
		// Pixels are computed in float32, where a tiny scale would become 0 and a large offset
		// infinite.
		if underflows(n.Scale[i]) || underflows(n.Offset[i]) {
			return fmt.Errorf("normalize: scale %g and offset %g are not numbers of float32", n.Scale[i], n.Offset[i])
		}
	}
	// A bound may be infinite, but must not be NaN, for which the comparison is false.
	if n.Clip != nil && !(n.Clip[0] <= n.Clip[1]) {
		return fmt.Errorf("normalize: clip is [%g, %g]: the first must not be above the second", n.Clip[0], n.Clip[1])
	}
	return nil
}

// underflows reports whether v is NaN, or becomes 0 or infinite as float32.
func underflows(v float64) bool {
	f := float64(float32(v))
	return math.IsNaN(v) || math.IsInf(f, 0) || f == 0 && v != 0
}
