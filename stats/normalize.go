package stats

import (
	"fmt"
	"slices"
)

// Kinds of normalisation that a Report has numbers for.
const (
	MeanStd    = "mean_std"
	MinMax     = "min_max"
	Percentile = "percentile"
	None       = "none"
)

// Normalizer returns, for the picked bands of a field (nil: all), scale and offset of
// y = x·scale + offset and the bounds that y is clipped to, or nil. With float64 arithmetic:
//
//	mean_std    scale = 1/std,         offset = -mean/std;         of std 0: scale 1, offset -mean
//	min_max     scale = 1/(max-min),   offset = -min/(max-min);    of max = min: scale 1, offset -min
//	percentile  scale = 1/(hi-lo),     offset = -lo/(hi-lo), clip [0, 1], where lo and hi are
//	            percentiles 2.5 and 98.5;                          of hi = lo: scale 1, offset -lo
//	none        scale and offset are nil
//
// A band without valid samples is an error, and so is an infinite scale.
func (r *Report) Normalizer(field, kind string, bands []int) (scale, offset []float64, clip *[2]float64, err error) {
	report, ok := r.Fields[field]
	if !ok {
		return nil, nil, nil, fmt.Errorf("stats: no field %q", field)
	}
	scale, offset, clip, err = report.Normalizer(kind, bands)
	if err != nil {
		err = fmt.Errorf("stats: field %q: %w", field, err)
	}
	return scale, offset, clip, err
}

// Normalizer does what [Report.Normalizer] does, for one field.
func (f *FieldReport) Normalizer(kind string, bands []int) (scale, offset []float64, clip *[2]float64, err error) {
	switch kind {
	case MeanStd, MinMax, Percentile:
	case None:
		return nil, nil, nil, nil
	default:
		return nil, nil, nil, fmt.Errorf("normalisation is %q: it must be %q, %q, %q or %q", kind, MeanStd, MinMax,
			Percentile, None)
	}
	places, err := f.Places(bands)
	if err != nil {
		return nil, nil, nil, err
	}
	for _, i := range places {
		zero, unit, err := f.Bands[i].anchor(kind)
		if err != nil {
			return nil, nil, nil, fmt.Errorf("band %d: %w", i, err)
		}
		if unit < 0 {
			return nil, nil, nil, fmt.Errorf("band %d: the difference for %s is %g: it must not be negative", i, kind,
				unit)
		}
		if unit == 0 {
			unit = 1
		}
		scale = append(scale, 1/unit)
		offset = append(offset, -zero/unit)
		if s, o := 1/unit, -zero/unit; s-s != 0 || o-o != 0 {
			return nil, nil, nil, fmt.Errorf("band %d: %s by %g overflows", i, kind, unit)
		}
	}
	if kind == Percentile {
		clip = &[2]float64{0, 1}
	}
	return scale, offset, clip, nil
}

// Places returns where the statistics of bands of the rasters are in Bands; nil are all bands. It is an error if they
// are not there, as only those that were asked for are.
func (f *FieldReport) Places(bands []int) (places []int, err error) {
	if bands == nil {
		for i, band := range f.Bands {
			if f.Picked && band.Number() != i {
				return nil, fmt.Errorf("they are of bands that were picked: pick the bands here, too")
			}
			places = append(places, i)
		}
		return places, nil
	}
	for _, band := range bands {
		place := band
		if f.Picked {
			place = slices.IndexFunc(f.Bands, func(b Band) bool { return b.Number() == band })
		}
		if band < 0 || place < 0 || place >= len(f.Bands) {
			return nil, fmt.Errorf("no band %d of %d bands", band, len(f.Bands))
		}
		places = append(places, place)
	}
	return places, nil
}

// MeanStdBands returns the bands of a FieldReport with nothing but means and standard deviations.
func MeanStdBands(mean, std []float64) []Band {
	bands := make([]Band, len(mean))
	for i := range bands {
		bands[i] = Band{Mean: &mean[i], Std: &std[i]}
	}
	return bands
}

// anchor returns the value that normalisation maps to 0, and the difference that it maps to 1.
func (b *Band) anchor(kind string) (zero, unit float64, err error) {
	bad := fmt.Errorf("its statistics have not what %s needs: a band without valid samples has none", kind)
	switch kind {
	case MeanStd:
		if b.Mean == nil || b.Std == nil {
			return 0, 0, bad
		}
		return *b.Mean, *b.Std, nil
	case MinMax:
		if b.Min == nil || b.Max == nil {
			return 0, 0, bad
		}
		lowest, err := b.Min.Float64()
		if err != nil {
			return 0, 0, err
		}
		highest, err := b.Max.Float64()
		return lowest, highest - lowest, err
	}
	low, ok1 := b.Percentiles["2.5"]
	high, ok2 := b.Percentiles["98.5"]
	if !ok1 || !ok2 {
		return 0, 0, bad
	}
	return low, high - low, nil
}
