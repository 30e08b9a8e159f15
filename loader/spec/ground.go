package spec

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/chaski-eo/chaski/internal/crs"
	"github.com/chaski-eo/chaski/shuffle"
)

// GeoWindows are the members of a Sampler of kind "geo_window". The rows of the dataset are scenes, in any CRS and
// resolution. A sample is a square window at a place on the ground: the pixels of all raster fields are brought to one
// grid there. docs/order.md defines the places.
type GeoWindows struct {
	// SizeM is the side of a window in metres of its map, a multiple of Resolution.
	SizeM float64 `json:"size_m,omitempty"`
	// Resolution is the side of a pixel of windows in metres of their map.
	Resolution float64 `json:"resolution,omitempty"`
	// CRS is the map that windows lie on: "utm" (default) for the zone of UTM of each place, or a code such as
	// "EPSG:3035", or 3035, of a map in metres.
	CRS Text `json:"crs,omitempty"`
	// Bounds keeps the middles of windows in a box: west, south, east, north. With StrideM it keeps windows that touch
	// the box. Default: everywhere.
	Bounds []float64 `json:"bounds,omitempty"`
	// BoundsCRS is the EPSG code of Bounds. Default 4326, longitude and latitude.
	BoundsCRS EPSG `json:"bounds_crs,omitempty"`
	// ROI keeps windows in polygons as Bounds does: the path of a GeoJSON or GeoParquet file, or GeoJSON. The
	// spec hash covers where windows may lie, not the path. Default: everywhere.
	ROI GeoJSON `json:"roi,omitempty" hash:"place"`
	// PerEpoch is the number of random windows of an epoch. Default: as many as fit side by side.
	PerEpoch int64 `json:"per_epoch,omitempty"`
	// StrideM takes windows on a grid instead, every StrideM metres, a multiple of Resolution of at most SizeM. They
	// cover all scenes. Default: random windows.
	StrideM float64 `json:"stride_m,omitempty"`
	// Edge lets random windows reach past the scenes, with padding there, so all places are equally likely. By
	// default windows lie wholly inside of the scenes together.
	Edge bool `json:"edge,omitempty"`
	// Pick says which scenes come first where several cover a window: "first" (default) in the order of the rows,
	// "newest" or "oldest" by a column ("newest:acquired"; default column "datetime"), "least:cloud_cover" or
	// "most:quality" by a column of numbers. Rows without a value come last.
	Pick string `json:"pick,omitempty"`
	// Mosaic is "first" (default): each pixel comes from the first scene in which it is valid. "none" reads the first
	// scene of a window only. "mean" and "median" are taken over all scenes in which a pixel is valid, for fields that
	// are resampled bilinearly or antialiased; others, such as labels, have the first one.
	Mosaic string `json:"mosaic,omitempty"`
	// Length gives each window a sequence of that many steps instead of one image, from 1 to 65,536: the scenes that
	// cover it, the first ones by Pick. Where there are fewer, the rest is padding: the tensor "steps", uint8 (n t), is
	// 0 there. Default: one image without steps.
	Length int `json:"length,omitempty"`
	// Order is the rule by which the steps of a window stand, as Pick: "oldest", for example. Default: Pick.
	Order string `json:"order,omitempty"`
	// Step is the column whose equal values make scenes one step, which is a mosaic of them as Mosaic says. "day"
	// stands for the days in UTC of the column "datetime", "day:acquired" for the days of another one. Default: each
	// scene is a step.
	Step string `json:"step,omitempty"`
	// Cover says where windows lie if fields have scenes of several datasets (Field.Scenes): "all" (default) where
	// every dataset has ground, "any" where one of them has. There the fields of the others are missing.
	Cover string `json:"cover,omitempty"`
	// Overviews says which fields are read from the overviews of a TIFF where windows are coarser than its pixels: from
	// the coarsest whose pixels are no larger than the pixels of the window. "auto" (default): fields that are
	// resampled bilinearly or antialiased; others, such as labels, are read from the raster itself, because their
	// overviews may hold averages. "all" (true) or "none" (false) of the fields.
	Overviews Text `json:"overviews,omitempty"`
}

// GeoWindow is the kind of samplers of windows on the ground.
const GeoWindow = "geo_window"

var ground = samplerKind{
	name: GeoWindow, members: func(s *Sampler) any { return &s.GeoWindows }, anySize: true, counts: true,
	defaults: func(s *Sampler) { s.GeoWindows = s.GeoWindows.withDefaults() },
	check:    func(s *Sampler) error { return s.GeoWindows.validate(s) },
	plan:     fixed(&shuffle.Ground{}), // the scenes give its members

	SamplerTraits: SamplerTraits{Resamples: true, Ground: true},
}

// Values of GeoWindows.Mosaic and GeoWindows.CRS.
const (
	MosaicFirst = "first"
	MosaicNone  = "none"
	UTM         = "utm"

	MosaicMean   = "mean"
	MosaicMedian = "median"
)

// Values of GeoWindows.Cover.
const (
	CoverAll = "all"
	CoverAny = "any"
)

// Values of GeoWindows.Overviews.
const (
	AutoOverviews = "auto"
	AllOverviews  = "all"
	NoOverviews   = "none"
)

var overviews = []Text{AutoOverviews, AllOverviews, NoOverviews}

var mosaics = []string{MosaicFirst, MosaicNone, MosaicMean, MosaicMedian}

func (g GeoWindows) withDefaults() GeoWindows {
	if g.CRS == "" {
		g.CRS = UTM
	} else if _, err := strconv.Atoi(string(g.CRS)); err == nil {
		g.CRS = "EPSG:" + g.CRS
	}
	g.Pick = cmp.Or(g.Pick, PickFirst)
	g.Mosaic = cmp.Or(g.Mosaic, MosaicFirst)
	switch g.Overviews {
	case "":
		g.Overviews = AutoOverviews
	case "true":
		g.Overviews = AllOverviews
	case "false":
		g.Overviews = NoOverviews
	}
	return g
}

// Side returns the side of a window, and the stride of a grid (0 without one), in pixels.
func (g *GeoWindows) Side() (side, stride int) {
	return int(math.Round(g.SizeM / g.Resolution)), int(math.Round(g.StrideM / g.Resolution))
}

// wholePixels reports whether a length is a whole number of pixels, but for rounding.
func (g *GeoWindows) wholePixels(v float64) bool {
	n := v / g.Resolution
	return math.Abs(n-math.Round(n)) <= 1e-9*n && n >= 0.5 && n < MaxWindow+0.5
}

func (g *GeoWindows) validate(s *Sampler) error {
	switch {
	case !(g.Resolution >= 1e-3 && g.Resolution <= 1e6):
		return wrong("resolution", g.Resolution, "it must be from 0.001 to 1,000,000 metres")
	case !g.wholePixels(g.SizeM):
		return wrong("size_m", g.SizeM, "a window has a whole number of pixels of %v m, from 1 to %d", g.Resolution,
			MaxWindow)
	case s.Height != 0 || s.Width != 0 || s.PerAsset != 0:
		return fmt.Errorf("height, width and per_asset are not for kind %q: it has size_m and per_epoch", GeoWindow)
	case g.StrideM != 0 && (!g.wholePixels(g.StrideM) || g.StrideM > g.SizeM):
		return wrong("stride_m", g.StrideM, "it must be a whole number of pixels of %v m, and at most size_m, %v",
			g.Resolution, g.SizeM)
	case g.StrideM != 0 && (g.PerEpoch != 0 || g.Edge):
		return errors.New("per_epoch and edge are for random windows: a grid (stride_m) has every window")
	case g.PerEpoch < 0 || g.PerEpoch > maxSamples:
		return wrong("per_epoch", g.PerEpoch, "it must be at least 1")
	case !slices.Contains(mosaics, g.Mosaic):
		return wrong("mosaic", g.Mosaic, "it must be one of %s", strings.Join(mosaics, ", "))
	case !slices.Contains([]string{"", CoverAll, CoverAny}, g.Cover):
		return wrong("cover", g.Cover, "it must be %q or %q", CoverAll, CoverAny)
	case !slices.Contains(overviews, g.Overviews):
		return wrong("overviews", g.Overviews, "it must be %s, %s or %s", AutoOverviews, AllOverviews, NoOverviews)
	case g.Length < 0 || g.Length > maxSteps:
		return wrong("length", g.Length, "it must be from 1 to %d", maxSteps)
	case g.Length == 0 && (g.Order != "" || g.Step != ""):
		return errors.New("order and step are for sequences: give their length")
	case g.Step == "day:":
		return errors.New("step is \"day:\": it must be \"day\", \"day:COLUMN\" or a column")
	case g.Bounds == nil && g.BoundsCRS != 0:
		return fmt.Errorf("bounds_crs is %d, and there are no bounds", g.BoundsCRS)
	}
	if g.Bounds != nil {
		if len(g.Bounds) != 4 {
			return fmt.Errorf("bounds has %d numbers: it must be west, south, east, north", len(g.Bounds))
		}
		if _, err := crs.NewBox([4]float64(g.Bounds), int(g.BoundsCRS)); err != nil {
			// Package crs calls them as conditions do, bbox and bbox_crs.
			return errors.New(strings.ReplaceAll(err.Error(), "bbox", "bounds"))
		}
	}
	if g.Order != "" {
		if _, err := ParsePick(g.Order); err != nil {
			return within("order, as pick", err)
		}
	}
	_, err := ParsePick(g.Pick)
	return err
}

// StepColumn returns the column of Step, and whether its days count and not its values.
func (g *GeoWindows) StepColumn() (column string, days bool) {
	rule, name, given := strings.Cut(g.Step, ":")
	switch {
	case rule != "day":
		return g.Step, false
	case !given:
		return "datetime", true
	}
	return name, true
}

// PickFirst is the value of GeoWindows.Pick that keeps the order of the rows.
const PickFirst = "first"

// Pick is a parsed GeoWindows.Pick: the column, empty for the order of the rows, and whether greater values come first.
type Pick struct {
	Column   string
	Greatest bool
}

// ParsePick parses a GeoWindows.Pick.
func ParsePick(text string) (p Pick, err error) {
	rule, column, given := strings.Cut(text, ":")
	switch {
	case text == PickFirst:
		return Pick{}, nil
	case !slices.Contains([]string{"newest", "oldest", "least", "most"}, rule) || given && column == "":
		return p, wrong("pick", text, `it must be "first", "newest", "oldest", "least:COLUMN" or "most:COLUMN"`)
	case !given && (rule == "least" || rule == "most"):
		return p, wrong("pick", text, `it needs a column, as in "%s:cloud_cover"`, rule)
	case !given:
		column = "datetime"
	}
	return Pick{Column: column, Greatest: rule == "newest" || rule == "most"}, nil
}

// rules returns the columns of Order and Pick.
func (g *GeoWindows) rules() (names []string) {
	for _, rule := range []string{g.Order, g.Pick} {
		if p, err := ParsePick(rule); err == nil && p.Column != "" {
			names = append(names, p.Column)
		}
	}
	return names
}
