package build

import (
	"context"
	"math"
	"slices"
	"time"

	"github.com/chaski-eo/chaski/store/taco"
	"github.com/chaski-eo/chaski/tables"
)

// extentOf returns the extent of the first level that has points of STAC or ISTAC, or nil. Its times come from the
// first level that has times, because computed points of STAC may stand beside times of ISTAC.
func extentOf(ctx context.Context, levels []*Level) (*Extent, error) {
	var e Extent
	for _, level := range levels {
		for _, prefix := range []string{"stac:", "istac:", "spatial:", "temporal:"} {
			var err error
			if e.Spatial == nil {
				if e.Spatial, err = boxOf(ctx, level.Table, prefix+"centroid"); err != nil {
					return nil, err
				}
			}
			if e.Temporal == nil {
				e.Temporal, err = timesOf(ctx, level.Table, prefix+"time_start", prefix+"time_end",
					prefix+"datetime", prefix+"start_datetime", prefix+"end_datetime")
				if err != nil {
					return nil, err
				}
			}
		}
	}
	if e.Spatial == nil {
		return nil, nil
	}
	return &e, nil
}

// world is the extent of samples without known positions.
func world() *Extent { return &Extent{Spatial: []float64{-180, -90, 180, 90}} }

// cover extends an extent to another. A box whose west lies east of its east crosses the antimeridian; together with
// any other it is taken to go around the globe. A time that is not in ISO 8601 does not extend the others.
func (e *Extent) cover(o *Extent) {
	a, b := e.Spatial, o.Spatial
	box := []float64{min(a[0], b[0]), min(a[1], b[1]), max(a[2], b[2]), max(a[3], b[3])}
	if !slices.Equal(a, b) && (a[0] > a[2] || b[0] > b[2]) {
		box[0], box[2] = -180, 180
	}
	e.Spatial = box
	switch {
	case len(o.Temporal) != 2:
	case len(e.Temporal) != 2:
		e.Temporal = slices.Clone(o.Temporal)
	default:
		first, last := e.Temporal[0], e.Temporal[1]
		if before(o.Temporal[0], first) {
			first = o.Temporal[0]
		}
		if before(last, o.Temporal[1]) {
			last = o.Temporal[1]
		}
		e.Temporal = []string{first, last}
	}
}

// before compares two times in ISO 8601. It reports false if one of them is not a time.
func before(a, b string) bool {
	x, err := time.Parse(time.RFC3339, a)
	y, err2 := time.Parse(time.RFC3339, b)
	return err == nil && err2 == nil && x.Before(y)
}

// boxOf returns the bounding box of a column of points in degrees, WKB or structs of lon and lat, or nil.
func boxOf(ctx context.Context, t *tables.Table, name string) ([]float64, error) {
	i := t.Index(name)
	if i < 0 {
		return nil, nil
	}
	values, err := t.At(ctx, i)
	if err != nil {
		return nil, err
	}
	box := []float64{math.Inf(1), math.Inf(1), math.Inf(-1), math.Inf(-1)}
	for i := range values.Len() {
		x, y, err := taco.Centroid(values, i)
		if err != nil || !(math.Abs(x) <= 180 && math.Abs(y) <= 90) {
			continue // no point, or none on the globe, does not say where the sample is
		}
		box[0], box[1] = min(box[0], x), min(box[1], y)
		box[2], box[3] = max(box[2], x), max(box[3], y)
	}
	if box[0] > box[2] {
		return nil, nil
	}
	return box, nil
}

// timesOf returns the first and the last time of two columns, or nil.
func timesOf(ctx context.Context, t *tables.Table, names ...string) ([]string, error) {
	first, last := int64(math.MaxInt64), int64(math.MinInt64)
	for _, name := range names {
		i := t.Index(name)
		if i < 0 || t.Columns()[i].Type.Kind != tables.Timestamp {
			continue
		}
		values, err := t.At(ctx, i)
		if err != nil {
			return nil, err
		}
		for i := range values.Len() {
			if !values.Null(i) {
				first, last = min(first, values.Int(i)), max(last, values.Int(i))
			}
		}
	}
	if first > last {
		return nil, nil
	}
	text := func(us int64) string { return time.UnixMicro(us).UTC().Format(time.RFC3339) }
	return []string{text(first), text(last)}, nil
}
