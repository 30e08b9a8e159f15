package flags

import (
	"cmp"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/chaski-eo/chaski/cmd/chaski/internal/console"
	"github.com/chaski-eo/chaski/loader"
	"github.com/chaski-eo/chaski/loader/spec"
)

// ground are the flags of windows on the ground.
type ground struct {
	spec.Ground
	window string
}

// add adds the flags to a set.
func (g *ground) add(fl *pflag.FlagSet) {
	fl.StringVar(&g.window, "geo-window", "",
		"`SIDE/PIXEL` in metres, such as 2560/10: draw windows at places on the ground; samples are scenes in any CRS")
	fl.StringVar((*string)(&g.CRS), "crs", "",
		"with --geo-window: utm, or the code of a map in metres such as EPSG:3035 (default: utm)")
	fl.Float64SliceVar(&g.Bounds, "bounds", nil,
		"with --geo-window: `W,S,E,N` in degrees, a box that the middles of windows lie in")
	fl.Lookup("bounds").DefValue = "" // pflag would print (default [])
	fl.StringVar((*string)(&g.ROI), "roi", "",
		"with --geo-window: `FILE` of polygons that the middles of windows lie in")
	fl.Int64Var(&g.PerEpoch, "per-epoch", 0,
		"with --geo-window: windows of an epoch (default: as many as fit side by side)")
	fl.Float64Var(&g.StrideM, "stride-m", 0, "with --geo-window: every so many metres one, in place of random windows")
	fl.BoolVar(&g.Edge, "edge", false, "with --geo-window: windows may reach past the scenes")
	fl.StringVar(&g.Pick, "pick", "",
		"with --geo-window: which scenes come first: first, newest, oldest, least:COLUMN or most:COLUMN "+
			"(default: first)")
	fl.StringVar(&g.Mosaic, "mosaic", "",
		"with --geo-window: first, none, mean or median (default: first)")
	fl.IntVar(&g.Length, "sequence", 0, "with --geo-window: `N` steps, one for each scene (default: one image)")
	fl.StringVar(&g.Order, "sequence-order", "",
		"with --sequence: the rule by which steps stand, as --pick (default: that of --pick)")
	fl.StringVar(&g.Step, "sequence-step", "",
		"with --sequence: the `COLUMN` whose equal values are one step, day, or day:COLUMN")
	fl.StringVar((*string)(&g.Overviews), "overviews", "",
		"with --geo-window: which fields read overviews where windows are coarser: auto, all or none (default: auto)")
}

// sampler copies the flags to s.
func (g *ground) sampler(s *loader.Sampler) error {
	if g.window != "" {
		side, pixel, two := strings.Cut(g.window, "/")
		var err1, err2 error
		g.SizeM, err1 = strconv.ParseFloat(side, 64)
		g.Resolution, err2 = strconv.ParseFloat(pixel, 64)
		if !two || err1 != nil || err2 != nil {
			return console.Usagef("--geo-window is %q: it must be the sides of a window and of a pixel in metres, "+
				"such as 2560/10", g.window)
		}
		s.Kind = cmp.Or(s.Kind, spec.GroundWindow)
	}
	s.Ground = g.Ground
	return nil
}
