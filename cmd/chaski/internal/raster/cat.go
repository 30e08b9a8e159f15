// Package raster has the commands about raster files: cat, frame, index, convert, paste and verify.
package raster

import (
	"bytes"
	"context"
	"encoding/hex"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/chaski-eo/chaski/cmd/chaski/internal/console"
	"github.com/chaski-eo/chaski/cmd/chaski/internal/flags"
	"github.com/chaski-eo/chaski/einops/pattern"
	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/format/npy"
	"github.com/chaski-eo/chaski/internal/procs"
	"github.com/chaski-eo/chaski/loader/raster"
)

type catFlags struct {
	layout        string
	sizes         []string
	n, t, b, y, x string
	header        string
	overview      int
	format        string
	threads       int
	maxBytes      int64
	maxChunk      int
}

func NewCat(env console.Env) *cobra.Command {
	var f catFlags
	cmd := console.Command("cat [flags] PATH...", console.AtLeastOne("PATH"),
		func(cmd *cobra.Command, paths []string) error { return f.run(cmd.Context(), env, paths) })
	defined := cmd.Flags()
	console.Var(defined, &f.layout, "layout", "")
	console.Var(defined, &f.sizes, "size", nil)
	console.Var(defined, &f.n, "n", "")
	console.Var(defined, &f.t, "t", "")
	console.Var(defined, &f.b, "b", "")
	console.Var(defined, &f.y, "y", "")
	console.Var(defined, &f.x, "x", "")
	console.Var(defined, &f.header, "header", "")
	console.CountVar(defined, &f.overview, "overview", -1, -1)
	console.ChoiceVar(defined, &f.format, "format", "sha256", "sha256", "npy", "raw")
	console.CountVar(defined, &f.threads, "threads", procs.Workers(), 1)
	console.CountVar(defined, &f.maxBytes, "max-bytes", 8<<30, 1)
	flags.AddMaxChunk(defined, &f.maxChunk)
	return cmd
}

func (f *catFlags) run(ctx context.Context, env console.Env, paths []string) error {
	bands, err := namedBands(ctx, env.Files, f.b, paths)
	if err != nil {
		return err
	}
	if bands != nil {
		f.b = ""
	}
	readOptions, err := f.options(paths)
	if err == nil && f.format != "sha256" {
		err = console.NotToTerminal("", env.Out, f.format)
	}
	if err != nil {
		return err
	}
	if bands != nil {
		readOptions.B = raster.Selection{List: bands}
	}
	readOptions.Options.Opener, readOptions.Options.MaxChunkBytes = env.Files, f.maxChunk
	array, err := raster.Read(ctx, paths, readOptions)
	if err != nil {
		return console.UsageUnlessFault(fault.WithFile(err, paths[0]))
	}
	return writeArray(env.Out, array, f.format, paths[0])
}

// options checks the flags and returns them as options of loader.Read.
func (f *catFlags) options(paths []string) (o raster.ReadOptions, err error) {
	o.Layout, o.Threads, o.MaxBytes = f.layout, f.threads, f.maxBytes
	if f.layout != "" {
		if _, err := pattern.Parse(f.layout); err != nil {
			return o, console.WrongUsage(err)
		}
	}
	if o.Sizes, err = parseSizes(f.sizes); err != nil {
		return o, err
	}
	for _, axis := range []struct {
		axis, text string
		to         *raster.Selection
	}{{"n", f.n, &o.N}, {"t", f.t, &o.T}, {"b", f.b, &o.B}, {"y", f.y, &o.Y}, {"x", f.x, &o.X}} {
		*axis.to, err = raster.ParseSelection(axis.text)
		switch window := axis.axis == "y" || axis.axis == "x"; {
		case window && (err != nil || axis.to.List != nil):
			// A list of rows or columns would not be a window, and could touch every chunk of a file.
			return o, console.Usagef("--%s is %q: it must be start:stop", axis.axis, axis.text)
		case err != nil:
			return o, console.Usagef("--%s is %q: it must be start:stop, or a list of indices such as 0,2", axis.axis,
				axis.text)
		}
	}
	if f.overview >= 0 {
		o.Overview = &f.overview
	}
	if f.header != "" {
		if o.Overview != nil {
			return o, console.Usagef("--header describes no overviews: leave it or --overview out")
		}
		if len(paths) != 1 {
			return o, console.Usagef("--header %s is the header of one PATH: there are %d", f.header, len(paths))
		}
		blob, err := readHex(f.header)
		if err != nil {
			return o, err
		}
		o.Headers = [][]byte{blob}
	}
	return o, nil
}

func parseSizes(list []string) (map[string]int, error) {
	sizes := map[string]int{}
	for _, s := range list {
		name, text, ok := strings.Cut(s, "=")
		n, err := strconv.Atoi(text)
		if !ok || name == "" || err != nil || n < 1 {
			return nil, console.Usagef("--size is %q: it must be NAME=N with N at least 1", s)
		}
		sizes[name] = n
	}
	return sizes, nil
}

// arraySum is what --format sha256 prints.
type arraySum struct {
	Shape  []int       `json:"shape"`
	DType  chunk.DType `json:"dtype"`
	SHA256 string      `json:"sha256"`
}

// writeArray writes an array in one of the formats. file names it in errors.
func writeArray(w io.Writer, a *raster.Array, format, file string) error {
	switch format {
	case "sha256":
		return console.PrintJSON(w, arraySum{a.Shape, a.DType, console.Sha256Hex(a.Data)})
	case "npy":
		head, err := npy.Header(a.DType, a.Shape)
		if err != nil {
			return fault.WithFile(err, file)
		}
		if _, err := w.Write(head); err != nil {
			return err
		}
	}
	_, err := w.Write(a.Data)
	return err
}

// maxHexFile is the largest file of hexadecimal digits that is read, in bytes. A blob takes two digits a
// byte, so this allows 512 MiB: far more than the largest chunk index.
const maxHexFile = 1 << 30

// readHex reads a file of hexadecimal digits and ignores white space in it.
func readHex(name string) ([]byte, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, fault.WithFile(fault.Wrap(console.SystemKind(err), "header file", err), name)
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, maxHexFile+1))
	switch {
	case err != nil:
		return nil, fault.WithFile(fault.Wrap(fault.Unsupported, "header file", err), name)
	case len(text) > maxHexFile:
		return nil, fault.WithFile(fault.New(fault.Limit, "header file", "over %d bytes", maxHexFile), name)
	}
	blob, err := hex.DecodeString(string(bytes.Join(bytes.Fields(text), nil)))
	if err != nil {
		return nil, fault.WithFile(fault.Wrap(fault.Corrupt, "header file", err), name)
	}
	return blob, nil
}
