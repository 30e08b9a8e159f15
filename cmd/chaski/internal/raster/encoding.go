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
	console.ChoiceVar(fl, &f.to, "to", "", convert.Formats...)
	console.NumberVar(fl, &f.o.Tile, "tile", 512, 1, 65535)
	console.Var(fl, &f.o.Graph, "graph", "")
	console.ChoiceVar(fl, &f.codec, "codec", "auto", "auto", "best", "fast")
	console.Var(fl, &f.o.MaxCost, "max-cost", 0)
	console.Var(fl, &f.o.Geozl, "geozl", 0)
	console.NumberVar(fl, &f.o.Level, "level", 13, 1, 22)
	console.ChoiceOrVar(fl, &f.unit, "unit", "tile", func(string) bool { return true }, "tile", "cell", "step")
	console.Var(fl, &f.times, "time", nil)
	console.ListVar(fl, &f.names, "names")
	console.Var(fl, &f.o.Overviews, "overviews", false)
	console.Var(fl, &f.o.Strict, "strict", false)
	console.Var(fl, &f.o.MaxBytes, "max-bytes", 8<<30)
}

// resolve fills in defaults. It leaves fields alone that are no options.
func (f *encoding) resolve() (err error) {
	if f.to == "" && f.codec == "fast" {
		f.to = convert.Rumi3
	}
	f.to = cmp.Or(f.to, convert.TOG)
	if f.to == convert.TOG && (f.o.Graph != "" || f.codec != "auto" || f.o.MaxCost != 0) {
		return console.Usagef("--graph, --codec and --max-cost are for rumi files, and the format is %s", f.to)
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
