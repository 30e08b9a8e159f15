package build

import (
	"context"
	"math"
	"time"

	"github.com/chaski-eo/chaski/tables"
	"github.com/chaski-eo/chaski/tables/wkb"
)

// extentOf returns the extent of the first level that has points of STAC or ISTAC, or nil.
func extentOf(ctx context.Context, levels []*level) (*Extent, error) {
	for _, l := range levels {
		for _, prefix := range []string{"stac:", "istac:"} {
			box, err := boxOf(ctx, l.columns, prefix+"centroid")
			if err != nil {
				return nil, err
			}
			if box == nil {
				continue
			}
			e := &Extent{Spatial: box}
			e.Temporal, err = timesOf(ctx, l.columns, prefix+"time_start", prefix+"time_end")
			return e, err
		}
	}
	return nil, nil
}

// world is the extent of samples of which nothing is known.
func world() *Extent { return &Extent{Spatial: []float64{-180, -90, 180, 90}} }

// boxOf returns the bounding box of a column of points in degrees, or nil.
func boxOf(ctx context.Context, t *tables.Table, name string) ([]float64, error) {
	i := t.Index(name)
	if i < 0 || t.Columns()[i].Type.Kind != tables.Binary {
		return nil, nil
	}
	v, err := t.At(ctx, i)
	if err != nil {
		return nil, err
	}
	box := []float64{math.Inf(1), math.Inf(1), math.Inf(-1), math.Inf(-1)}
	for i := range v.Len() {
		if v.Null(i) {
			continue
		}
		x, y, err := wkb.Point(v.Bytes(i))
		if err != nil || !(math.Abs(x) <= 180 && math.Abs(y) <= 90) {
			continue // a point that is none does not say where the sample is
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
		v, err := t.At(ctx, i)
		if err != nil {
			return nil, err
		}
		for i := range v.Len() {
			if !v.Null(i) {
				first, last = min(first, v.Int(i)), max(last, v.Int(i))
			}
		}
	}
	if first > last {
		return nil, nil
	}
	text := func(us int64) string { return time.UnixMicro(us).UTC().Format(time.RFC3339) }
	return []string{text(first), text(last)}, nil
}
