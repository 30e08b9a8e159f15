// Package view has the command view, which draws pictures.
package view

import (
	"context"
	"image"
	"image/png"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/chaski-eo/chaski/cmd/chaski/internal/console"
	"github.com/chaski-eo/chaski/cmd/chaski/internal/flags"
	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/draw"
	"github.com/chaski-eo/chaski/internal/procs"
	"github.com/chaski-eo/chaski/loader"
	"github.com/chaski-eo/chaski/loader/batch"
	"github.com/chaski-eo/chaski/loader/pixels"
	"github.com/chaski-eo/chaski/loader/raster"
	"github.com/chaski-eo/chaski/loader/rows"
	"github.com/chaski-eo/chaski/loader/survey"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store"
)

type viewFlags struct {
	out      string
	b        string
	size     int
	maxBytes int64
	maxChunk int
	data     flags.Dataset
}

// maxSize is the largest --size: such a picture takes 1 GiB in memory, and a larger one would end the command for lack
// of it.
const maxSize = 1 << 14

func NewView(env console.Env) *cobra.Command {
	var f viewFlags
	cmd := console.Command("view [flags] -o OUT PATH...", console.AtLeastOne("PATH"),
		func(cmd *cobra.Command, paths []string) error {
			return f.run(cmd.Context(), env, paths)
		})
	defined := cmd.Flags()
	console.Var(defined, &f.out, "output,o", "")
	console.Var(defined, &f.b, "b", "")
	console.NumberVar(defined, &f.size, "size", 512, 1, maxSize)
	console.CountVar(defined, &f.maxBytes, "max-bytes", 1<<30, 1)
	flags.AddMaxChunk(defined, &f.maxChunk)
	f.data.Add(defined, 16, true)
	return cmd
}

// options checks the flags.
func (f *viewFlags) options() (draw.Options, error) {
	options := draw.Options{MaxSide: f.size}
	if f.out == "" {
		return options, console.Usagef("-o OUT is missing")
	}
	if ext := strings.ToLower(filepath.Ext(f.out)); ext != "" && ext != ".png" {
		return options, console.Usagef("-o is %q: its extension must be .png, because pictures are written as PNG",
			f.out)
	}
	sel, err := raster.ParseSelection(f.b)
	if err != nil || sel.Slice || !slices.Contains([]int{0, 1, 3}, len(sel.List)) {
		return options, console.Usagef("--b is %q: it must be one band or three", f.b)
	}
	options.Bands = sel.List
	return options, nil
}

func (f *viewFlags) run(ctx context.Context, env console.Env, paths []string) error {
	options, err := f.options()
	if err != nil {
		return err
	}
	var pictures []*image.NRGBA
	columns, dataset := 0, false // about as many columns as rows
	if len(paths) == 1 {
		if dataset, err = isDataset(ctx, env.Files, paths[0]); err != nil {
			return err
		}
	}
	if dataset {
		pictures, columns, err = f.batch(ctx, env, paths[0], options)
	} else if name := flags.Changed(&f.data.Own); name != "" {
		return console.Usagef("--%s needs a dataset: pictures of files show all pixels, and the bands of --b", name)
	} else {
		pictures, err = f.files(ctx, env, paths, options)
	}
	if err != nil {
		return err
	}
	sheet := draw.Sheet(pictures, columns)
	return console.WriteFile(f.out, env.Out, func(w io.Writer) error { return png.Encode(w, sheet) })
}

// isDataset reports whether a path is a dataset and not a raster.
func isDataset(ctx context.Context, files source.Opener, path string) (bool, error) {
	if kind, err := store.Of(ctx, files, path); err != nil || kind != store.Other {
		return true, err
	}
	first, err := survey.Inspect(ctx, path, loader.Options{Opener: files})
	return err == nil && first.Raster == nil && first.TIFF == nil, err
}

// files makes a picture of each file.
func (f *viewFlags) files(ctx context.Context, env console.Env, paths []string, o draw.Options) (
	[]*image.NRGBA, error) {
	bar := console.NewBar(env.Err, "reading")
	defer bar.Done()
	var pictures []*image.NRGBA
	for i, p := range paths {
		img, err := f.file(ctx, env.Files, p, o)
		if err != nil {
			return nil, fault.WithFile(err, p)
		}
		pictures = append(pictures, img)
		bar.Set(int64(i+1), int64(len(paths)))
	}
	return pictures, nil
}

// file draws one file. It reads only the bands that are drawn.
func (f *viewFlags) file(ctx context.Context, files source.Opener, path string, o draw.Options) (*image.NRGBA, error) {
	options := loader.Options{Opener: files, MaxChunkBytes: f.maxChunk}
	asset, err := rows.One(ctx, options.WithDefaults(), path)
	if err != nil {
		return nil, err
	}
	index := asset.Index
	if len(o.Bands) == 0 {
		// Names are optional, so that an error does not end the page.
		names, _ := rows.BandNames(ctx, files, asset)
		o.Bands = draw.Visible(names, index.DataBands())
	}
	read, err := raster.Read(ctx, []string{path}, raster.ReadOptions{
		B: raster.Selection{List: o.Bands}, Threads: procs.Workers(), MaxBytes: f.maxBytes,
		Validity: index.Masking() != nil, Options: options,
	})
	if err != nil {
		return nil, err
	}
	o.Bands, o.Colours = []int{0, 1, 2}[:len(o.Bands)], pixels.Legend(ctx, files, asset).Palette
	return draw.Render(draw.Raster{
		DType: read.DType, Bands: read.Shape[0], Height: read.Shape[1], Width: read.Shape[2], Data: read.Data,
		Valid: read.Valid, NoData: index.NoData,
	}, o)
}

// batch draws every row of one batch, field by field. It returns in how many columns to put the pictures: each of
// several fields has a line of its own.
func (f *viewFlags) batch(ctx context.Context, env console.Env, dataset string, o draw.Options) (
	pictures []*image.NRGBA, columns int, err error) {
	// Drawing needs the values of the file, since it stretches them by their own percentiles.
	f.data.DType, f.data.Layout = "native", "n b y x"
	spec, err := f.data.Spec(dataset)
	if err != nil {
		return nil, 0, err
	}
	for i := range spec.Fields {
		spec.Fields[i].Validity = "valid:" + spec.Fields[i].Name
	}
	engine, err := loader.Open(ctx, spec, loader.Options{MemoryBytes: f.maxBytes, MaxChunkBytes: f.maxChunk,
		Opener: env.Files})
	if err != nil {
		return nil, 0, console.UsageUnlessFault(err)
	}
	defer engine.Close()
	l, err := loader.NewLoader(engine, loader.LoaderOptions{Prefetch: 1})
	if err != nil {
		return nil, 0, console.UsageUnlessFault(err)
	}
	defer l.Close()
	b, err := l.Next(ctx)
	if err != nil {
		return nil, 0, err
	}
	defer b.Release()
	fields, steps := 0, 1
	for i, field := range spec.Fields {
		tensor := b.Tensor(field.Name)
		if tensor == nil || tensor.Kind != batch.Dense || len(tensor.Shape) < 4 || len(tensor.Data) == 0 {
			continue
		}
		fields++
		steps = max(steps, stepsOf(tensor))
		fo := o
		if i > 0 {
			fo.Bands = nil // --b selects bands of the first field
		}
		for _, info := range engine.Fields() {
			if info.Name == field.Name {
				fo.Colours = info.Palette
			}
		}
		row, err := drawRows(b, tensor, b.Tensor(field.Validity), fo)
		if err != nil {
			return nil, 0, console.UsageUnlessFault(err)
		}
		pictures = append(pictures, row...)
	}
	if len(pictures) == 0 {
		return nil, 0, fault.WithFile(fault.New(fault.NotFound, "batch", fault.NoOffset, "there is no raster in it"),
			dataset)
	}
	switch {
	case fields > 1:
		columns = len(pictures) / fields
	case steps > 1:
		columns = steps
	}
	return pictures, columns, nil
}

// stepsOf returns the number of steps of time of each row of a tensor with the axes n b y x or n t b y x.
func stepsOf(t *batch.Tensor) int {
	if len(t.Shape) == 4 {
		return 1
	}
	return int(t.Shape[1])
}

// drawRows draws every valid row of a tensor with the axes n b y x or n t b y x, step by step.
func drawRows(b *batch.Batch, t, valid *batch.Tensor, o draw.Options) (pictures []*image.NRGBA, err error) {
	steps, image := stepsOf(t), t.Shape[len(t.Shape)-3:]
	samples := int(image[0] * image[1] * image[2])
	size := samples * t.DType.Size()
	for i := range b.Rows * steps {
		if !b.Valid[i/steps] {
			continue
		}
		r := draw.Raster{DType: t.DType, Bands: int(image[0]), Height: int(image[1]), Width: int(image[2]),
			Data: t.Data[i*size:][:size]}
		if valid != nil {
			r.Valid = valid.Data[i*samples:][:samples]
		}
		img, err := draw.Render(r, o)
		if err != nil {
			return nil, err
		}
		pictures = append(pictures, img)
	}
	return pictures, nil
}
