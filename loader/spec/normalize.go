package spec

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
)

// Values are one for each band, or one for all.
type Values []float64

// Normalize computes y = f32(f32(x*s) + o), and then clips y. s and o are the scale and the offset of
// the band, rounded to float32 once.
type Normalize struct {
	// Scale and Offset have one value for each picked band, or one for all. Scale must not be 0. Default in JSON: 1
	// and 0.
	Scale  Values `json:"scale"`
	Offset Values `json:"offset"`
	// Clip holds the least and the greatest value of the result. Default: none.
	Clip *[2]Float `json:"clip,omitempty"`
	// Method computes Scale, Offset and Clip from Stats, in their place: "mean_std" gives mean 0 and standard
	// deviation 1, "min_max" brings the least value to 0 and the greatest to 1, and "percentile" brings the 2.5th
	// percentile to 0 and the 98.5th to 1 and clips. ParseSpec puts the numbers in its place.
	Method string `json:"method,omitempty"`
	// Stats holds the statistics of the field: the member of `fields` with its name in the JSON of chaski stats.
	// Default: the member of `stats` of the spec.
	Stats json.RawMessage `json:"stats,omitempty"`
}

// complete fills in a scale or offset that is not given, and repeats one that is for all bands.
func (n *Normalize) complete() {
	if n.Scale == nil {
		n.Scale = Values{1}
	}
	if n.Offset == nil {
		n.Offset = Values{0}
	}
	if many := max(len(n.Scale), len(n.Offset)); len(n.Scale) == 1 {
		n.Scale = slices.Repeat(n.Scale, many)
	} else if len(n.Offset) == 1 {
		n.Offset = slices.Repeat(n.Offset, many)
	}
	positiveZeros(n.Offset)
}

// positiveZeros makes 0 of -0, so that an offset of 0 has one spec hash.
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
