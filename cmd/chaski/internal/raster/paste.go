package raster

import (
	"context"
	"fmt"
	"io"
	"os"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/chaski-eo/chaski/cmd/chaski/internal/console"
	"github.com/chaski-eo/chaski/cmd/chaski/internal/flags"
	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/internal/magic"
	"github.com/chaski-eo/chaski/ops/paste"
	"github.com/chaski-eo/chaski/shuffle"
)

type pasteFlags struct {
	like, window, stride, out, blend string
	ground                           string
	pad, argmax, overviews           bool
	classes, palette                 []string
	workers                          int
	maxBytes                         int64
}

func NewPaste(env console.Env) *cobra.Command {
	var f pasteFlags
	cmd := console.Command("paste [flags] --like SCENE --window HxW -o OUT.tif PREDICTIONS.npy",
		console.ExactlyOne("PREDICTIONS.npy"),
		func(cmd *cobra.Command, args []string) error { return f.run(cmd.Context(), env, args[0]) })
	defined := cmd.Flags()
	console.Var(defined, &f.like, "like", "")
	console.Var(defined, &f.ground, "ground", "")
	console.Var(defined, &f.window, "window", "")
	console.Var(defined, &f.stride, "stride", "")
	console.Var(defined, &f.pad, "pad", false)
	console.ChoiceVar(defined, &f.blend, "blend", string(paste.Linear), string(paste.Linear), string(paste.Mean))
	console.Var(defined, &f.argmax, "argmax", false)
	console.Var(defined, &f.overviews, "overviews", false)
	console.ListVar(defined, &f.classes, "classes")
	console.ListVar(defined, &f.palette, "palette")
	console.Var(defined, &f.out, "output,o", "-")
	console.Var(defined, &f.workers, "workers", 0)
	console.Var(defined, &f.maxBytes, "max-bytes", 8<<30)
	return cmd
}

func (f *pasteFlags) run(ctx context.Context, env console.Env, name string) error {
	options, err := f.options()
	if err != nil {
		return err
	}
	if err := console.NotToTerminal(f.out, env.Out, "a raster"); err != nil {
		return err
	}
	if err := console.EndsLike(f.out, magic.TIFF); err != nil {
		return err
	}
	input := env.In
	if name == "-" {
		name = "predictions"
	} else {
		file, err := os.Open(name)
		if err != nil {
			return console.FileError(name, err)
		}
		defer file.Close()
		input = file
	}
	emit := func(write func(io.Writer) error) error { return env.WriteFile(ctx, f.out, write) }
	if f.ground != "" {
		return console.UsageUnlessFault(f.onGround(input, name, options, emit))
	}
	return console.UsageUnlessFault(paste.Scene(ctx, env.Files, f.like, input, name, options, f.workers, emit))
}

// onGround pastes windows on a grid on the ground: see paste.Ground.
func (f *pasteFlags) onGround(in io.Reader, name string, o paste.Options, emit paste.Emit) error {
	var grid paste.GroundGrid
	if n, err := fmt.Sscanf(f.ground, "%d,%g,%g,%g,%d,%d,%d", &grid.EPSG, &grid.West, &grid.North, &grid.Resolution,
		&o.Bands, &o.Height, &o.Width); err != nil {
		return console.Usagef("--ground is %q: number %d of EPSG,WEST,NORTH,RESOLUTION,BANDS,HEIGHT,WIDTH is "+
			"wrong", f.ground, n+1)
	}
	return paste.Ground(in, name, grid, o, f.workers, emit)
}

// options checks the flags.
func (f *pasteFlags) options() (paste.Options, error) {
	options := paste.Options{Blend: paste.Blend(f.blend), Argmax: f.argmax, Overviews: f.overviews,
		MaxBytes: f.maxBytes, Classes: chunk.Legend{Names: f.classes, Palette: f.palette}}
	switch {
	case (f.like == "") == (f.ground == ""):
		return options, console.Usagef("give --like SCENE or --ground GRID")
	case f.window == "":
		return options, console.Usagef("--window HxW is missing")
	}
	height, width, err := flags.ParsePair(f.window)
	if err != nil {
		return options, console.Usagef("--window is %w", err)
	}
	options.Grid = shuffle.Grid{H: height, W: width, StrideY: height, StrideX: width, AlignY: 1, AlignX: 1, Pad: f.pad}
	if f.stride != "" {
		if options.Grid.StrideY, options.Grid.StrideX, err = flags.ParsePair(f.stride); err != nil {
			return options, console.Usagef("--stride is %w", err)
		}
	}
	if options.Grid.StrideY > height || options.Grid.StrideX > width {
		return options, console.Usagef("--stride is %s: it must not be larger than --window %s, or pixels would "+
			"be left out", f.stride, f.window)
	}
	if f.workers <= 0 {
		f.workers = runtime.GOMAXPROCS(0)
	}
	return options, nil
}
