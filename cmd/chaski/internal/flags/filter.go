package flags

import (
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/chaski-eo/chaski/cmd/chaski/internal/console"
	"github.com/chaski-eo/chaski/crs"
	"github.com/chaski-eo/chaski/loader"
	"github.com/chaski-eo/chaski/store/taco"
)

// Filter choose samples.
type Filter struct {
	Where, OrderBy             string
	bbox, bboxCRS              string
	rule, geometry             string
	datetime, timeCol          string
	atLevel, Limit, OffsetRows int
}

func (f *Filter) Add(fl *pflag.FlagSet) {
	f.addFilters(fl)
	fl.StringVar(&f.OrderBy, "order-by", "", "`COLUMN [desc]` to sort by; equal rows stay in storage order")
	fl.IntVar(&f.Limit, "limit", -1, "most rows (default: all)")
	fl.IntVar(&f.OffsetRows, "offset", 0, "rows passed over")
}

// addFilters adds the flags that say which samples there are, not in which order or number.
func (f *Filter) addFilters(fl *pflag.FlagSet) {
	NonEmptyVar(fl, &f.Where, "where", "`CONDITION` on the columns, in SQL")
	NonEmptyVar(fl, &f.bbox, "bbox", "`W,S,E,N`: samples whose geometry, or whose raster in a catalog, intersects the box, in degrees of longitude and latitude; W greater than E crosses the antimeridian")
	NonEmptyVar(fl, &f.bboxCRS, "bbox-crs", "`EPSG` code of the CRS of --bbox (default: 4326, longitude and latitude)")
	fl.StringVar(&f.rule, "bbox-rule", "intersects", "intersects, or within: the geometry does not leave the box")
	fl.StringVar(&f.geometry, "geometry-col", "", "column of geometries (default: istac:geometry, stac:centroid or istac:centroid)")
	NonEmptyVar(fl, &f.datetime, "datetime", "`A/B`: samples that begin in a range of dates (whole days, UTC) or times")
	fl.StringVar(&f.timeCol, "time-col", "", "column of times (default: istac:time_start or stac:time_start)")
	fl.IntVar(&f.atLevel, "at-level", 0, "level whose rows --bbox and --datetime look at: the samples of level 0 above those that match are chosen; ls lists below them only what matches")
}

// TacoFilter returns the filter that the flags describe, nil if none does.
func (f *Filter) TacoFilter() (*taco.Filter, error) {
	if err := console.OneOf("bbox-rule", f.rule, "intersects", "within"); err != nil {
		return nil, err
	}
	if f.atLevel < 0 || f.Limit < -1 || f.OffsetRows < 0 {
		return nil, console.Usagef("--at-level, --limit and --offset are at least 0")
	}
	switch {
	case f.bbox == "" && (f.rule != "intersects" || f.geometry != "" || f.bboxCRS != ""):
		return nil, console.Usagef("--bbox-crs, --bbox-rule and --geometry-col go with --bbox")
	case f.datetime == "" && f.timeCol != "":
		return nil, console.Usagef("--time-col goes with --datetime")
	case f.bbox == "" && f.datetime == "":
		if f.atLevel != 0 {
			return nil, console.Usagef("--at-level goes with --bbox and --datetime")
		}
		return nil, nil
	}
	out := &taco.Filter{Geometry: f.geometry, Time: f.timeCol, Level: f.atLevel}
	if f.rule == "within" {
		out.Rule = taco.Within
	}
	if f.bbox != "" {
		var err error
		if out.Box, err = f.box(); err != nil {
			return nil, err
		}
	}
	if f.datetime != "" {
		times, err := taco.ParseTimes(f.datetime)
		if err != nil {
			return nil, console.Usagef("--datetime: %w", err)
		}
		out.Times = &times
	}
	return out, nil
}

// sides returns the numbers of --bbox.
func (f *Filter) sides() (v [4]float64, err error) {
	parts := strings.Split(f.bbox, ",")
	for i := range v {
		if len(parts) == len(v) {
			v[i], err = strconv.ParseFloat(strings.TrimSpace(parts[i]), 64)
		}
		if len(parts) != len(v) || err != nil {
			return v, console.Usagef("--bbox %q is not W,S,E,N", f.bbox)
		}
	}
	return v, nil
}

// epsg returns the code of --bbox-crs, 0 if it is not given.
func (f *Filter) epsg() (int, error) {
	digits := f.bboxCRS
	if p, rest, ok := strings.Cut(digits, ":"); ok && (strings.EqualFold(p, "EPSG") || strings.EqualFold(p, "ESRI")) {
		digits = rest
	}
	n, err := strconv.Atoi(digits)
	if f.bboxCRS != "" && (err != nil || n <= 0) {
		return 0, console.Usagef("--bbox-crs %q is no EPSG code, such as EPSG:32633 or 32633", f.bboxCRS)
	}
	return n, nil
}

// box returns the box of --bbox and --bbox-crs.
func (f *Filter) box() (*crs.Box, error) {
	v, err := f.sides()
	if err != nil {
		return nil, err
	}
	epsg, err := f.epsg()
	if err != nil {
		return nil, err
	}
	box, err := crs.NewBox(v, epsg)
	if err != nil {
		return nil, console.Usagef("--%w", err)
	}
	return &box, nil
}

// conditions returns the filters as a spec has them.
func (f *Filter) conditions() ([]loader.Condition, error) {
	if _, err := f.TacoFilter(); err != nil {
		return nil, err
	}
	var list []loader.Condition
	if f.Where != "" {
		list = append(list, loader.Condition{SQL: f.Where})
	}
	if f.bbox != "" {
		sides, err := f.sides()
		if err != nil {
			return nil, err
		}
		epsg, err := f.epsg()
		if err != nil {
			return nil, err
		}
		list = append(list, loader.Condition{BBox: &sides, BBoxCRS: epsg, Within: f.rule == "within", Column: f.geometry, Level: f.atLevel})
	}
	if f.datetime != "" {
		list = append(list, loader.Condition{Datetime: f.datetime, Column: f.timeCol, Level: f.atLevel})
	}
	return list, nil
}
