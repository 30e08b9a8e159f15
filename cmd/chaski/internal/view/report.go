package view

import (
	"context"
	"path/filepath"
	"strings"

	"github.com/chaski-eo/chaski/cmd/chaski/internal/console"
	"github.com/chaski-eo/chaski/cmd/chaski/internal/flags"
	"github.com/chaski-eo/chaski/draw"
	viewreport "github.com/chaski-eo/chaski/draw/report"
	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/loader"
)

// page writes the page of --report.
func (f *viewFlags) page(ctx context.Context, env console.Env, paths []string, o draw.Options) error {
	if len(paths) != 1 {
		return console.Usagef("there are %d paths: --report takes one dataset; put a glob in quotes", len(paths))
	}
	if err := console.Between("batch", f.data.Batch, 1, viewreport.MaxSamples); err != nil {
		return err
	}
	fields, err := flags.ParseFields(f.data.Source.Fields)
	if err != nil {
		return err
	}
	ro := viewreport.Options{
		Source: paths[0], Fields: fields, Seed: f.data.Seed, Title: title(paths[0]), Generator: "chaski " + env.Version,
		Bands: o.Bands, Low: o.Low, High: o.High, MaxBytes: min(f.maxBytes, 64<<20),
		Loader: loader.Options{MaxChunkBytes: f.maxChunk},
	}
	if f.several {
		ro.Samples = f.data.Batch
	}
	if f.resized {
		ro.Side = f.size
	}
	bar := &console.Bar{}
	step := ""
	ro.Progress = func(name string, done, total int64) {
		if name != step {
			bar.Done()
			step, bar = name, console.NewBar(env.Err, name, total)
		}
		bar.Set(done, total)
	}
	r, err := viewreport.Make(ctx, ro)
	bar.Done()
	if err == nil && r.Samples == 0 {
		err = fault.WithFile(fault.New(fault.NotFound, "dataset", fault.NoOffset, "it has no samples"), paths[0])
	}
	if err != nil {
		return console.UsageUnlessFault(err)
	}
	return console.WriteFile(f.out, env.Out, r.WriteHTML)
}

// title returns the last part of a dataset's path, as its name.
func title(path string) string {
	if t := filepath.Base(strings.TrimRight(path, "/")); t != "." && t != ".." && t != "/" {
		return t
	}
	return path
}
