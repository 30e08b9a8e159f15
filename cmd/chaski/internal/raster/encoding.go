package raster

import (
	"cmp"

	"github.com/spf13/pflag"

	"github.com/chaski-eo/chaski/cmd/chaski/internal/console"
	"github.com/chaski-eo/chaski/ops/convert"
	"github.com/chaski-eo/chaski/rumi"
)

// encoding has the flags of how files are written.
type encoding struct {
	to, unit, codec string
	times, names    []string

	o convert.Options
}

// add declares the flags.
func (f *encoding) add(fl *pflag.FlagSet) {
	fl.StringVar(&f.to, "to", "", "format: tog, rumi, rumi2, rumi3 or tiledb")
	console.NumberVar(fl, &f.o.Tile, "tile", 512, 1, 65535, "side of a tile, in pixels")
	fl.StringVar(&f.o.Graph, "graph", "", "OpenZL graph of rumi files, in place of --codec")
	console.ChoiceVar(fl, &f.codec, "codec", "auto", "how the graph of a tile of rumi files is chosen: auto or best",
		"auto", "best")
	fl.Float64Var(&f.o.MaxCost, "max-cost", 0,
		"longest time to decode a graph that --codec chooses, as a multiple of a TOG's tile (default: best 0.71, auto "+
			"none)")
	fl.IntVar(&f.o.Geozl, "geozl", 0, "release 0.`N` of geozl that readers of rumi3 have, 18 or 19 (default: 18)")
	console.NumberVar(fl, &f.o.Level, "level", 13, 1, 22,
		"zstd level, 1 to 22; from 6 on, data that shrinks to a third is searched more deeply, from 20 on all data")
	fl.StringVar(&f.unit, "unit", "tile",
		"what a frame of rumi2 or rumi3 holds: tile (one band) or cell (all); of rumi3 also step, or axes like "+
			"\"h w b\"")
	fl.StringArrayVar(&f.times, "time", nil, "`TIME` of a step of rumi3; repeatable")
	fl.StringSliceVar(&f.names, "names", nil, "names of the bands of rumi3, `A,B,C`")
	fl.BoolVar(&f.o.Overviews, "overviews", false,
		"keep the overviews of a raster; the file is then outside the TOG profile")
	fl.BoolVar(&f.o.Strict, "strict", false, "refuse rasters of which anything would be left out")
	fl.Int64Var(&f.o.MaxBytes, "max-bytes", 8<<30, "refuse images that are larger than this when decoded, in bytes")
}

// resolve fills in defaults. It leaves fields that are not options unchanged.
func (f *encoding) resolve() (err error) {
	f.to = cmp.Or(f.to, convert.TOG)
	if err := console.OneOf("to", f.to, convert.Formats...); err != nil {
		return err
	}
	if f.o.Graph == "" {
		f.o.Graph = f.codec
	} else if f.codec != "auto" || f.o.MaxCost != 0 {
		return console.Usagef("--graph names the graph: --codec and --max-cost choose one")
	}
	f.o.Format = f.to
	if f.to == convert.Rumi3 {
		f.o.Unit = f.unit
	} else if err := console.OneOf("unit", f.unit, "tile", "cell"); err != nil {
		return err
	} else {
		f.o.Cells = f.unit == "cell"
	}
	f.o.Trailer.Bands = f.names
	if f.o.Trailer.Kind, f.o.Trailer.Times, err = rumi.ParseTimes(f.times); err != nil {
		return console.WrongUsage(err)
	}
	return nil
}
