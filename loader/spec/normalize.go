package spec

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"

	"github.com/chaski-eo/chaski/stats"
)

// Normalize computes y = f32(f32(x*s) + o), and then clips y. s and o are the scale and the offset of
// the band, rounded to float32 once.
type Normalize struct {
	// Scale and Offset have one value for each picked band, or one for all. Scale must not be 0.
	Scale  []float64 `json:"scale"`
	Offset []float64 `json:"offset"`
	// Clip holds the least and the greatest value of the result. Default: none.
	Clip *[2]Float `json:"clip,omitempty"`
	// Method computes Scale, Offset and Clip from Stats, in their place: "mean_std" gives mean 0 and standard
	// deviation 1, "min_max" brings the least value to 0 and the greatest to 1, and "percentile" brings the 2.5th
	// percentile to 0 and the 98.5th to 1 and clips. ParseSpec puts the numbers in its place.
	Method string `json:"method,omitempty"`
	// Stats holds the statistics of the field: the member of `fields` with its name in the JSON of chaski stats.
	Stats json.RawMessage `json:"stats,omitempty"`
}

// byStats returns the numbers that the method of n stands for, for the bands that a field picks by
// index or by name.
func (n *Normalize) byStats(bands []int, names []string) (*Normalize, error) {
	if n.Scale != nil || n.Offset != nil || n.Clip != nil {
		return nil, fmt.Errorf("method computes scale, offset and clip: give either method and stats, or these")
	}
	var s stats.FieldReport
	if err := json.Unmarshal(n.Stats, &s); n.Stats != nil && err != nil {
		if wrong := (*json.UnmarshalTypeError)(nil); errors.As(err, &wrong) {
			return nil, fmt.Errorf("stats: %s is a %s, and not what chaski stats writes",
				cmp.Or(wrong.Field, "it"), wrong.Value)
		}
		return nil, fmt.Errorf("stats: %w", err)
	}
	if len(s.Bands) == 0 {
		return nil, fmt.Errorf("stats has no bands")
	}
	named := map[string][]int{} // one map, because names and bands may both be many
	for i, b := range s.Bands {
		named[b.Name] = append(named[b.Name], i)
	}
	for _, name := range names {
		if n := len(named[name]); n != 1 {
			return nil, fmt.Errorf("stats must have one band called %q: of %d bands it has %d", name, len(s.Bands), n)
		}
		bands = append(bands, named[name][0])
	}
	out, err := NormalizeByStats(&s, n.Method, bands)
	if err != nil {
		return nil, fmt.Errorf("stats: %w", err)
	}
	return out, nil
}

// NormalizeByStats returns the normalisation that a method (such as stats.MeanStd) makes of the statistics of a field,
// for some of its bands, or for all if bands is nil.
func NormalizeByStats(f *stats.FieldReport, method string, bands []int) (*Normalize, error) {
	scale, offset, clip, err := f.Normalizer(method, bands)
	if err != nil {
		return nil, err
	}
	for i := range offset {
		offset[i] += 0 // makes 0 of -0, so that a least value of 0 has one spec hash
	}
	out := &Normalize{Scale: scale, Offset: offset}
	if clip != nil {
		out.Clip = &[2]Float{Float(clip[0]), Float(clip[1])}
	}
	return out, nil
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
