package cli

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/chaski-eo/chaski/draw"
	viewreport "github.com/chaski-eo/chaski/draw/report"
	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/loader"
)

// page writes histograms or a report.
func (f *viewFlags) page(ctx context.Context, s streams, paths []string, o draw.Options) error {
	switch {
	case f.histogram && f.report:
		return usagef("--histogram and --report exclude each other")
	case len(paths) != 1:
		return usagef("%d paths, where one dataset is taken; put a glob in quotes", len(paths))
	case f.report && (f.data.batch < 1 || f.data.batch > viewreport.MaxSamples):
		return usagef("--batch: a report shows 1 to %d samples", viewreport.MaxSamples)
	}
	fields, err := parseFields(f.data.source.fields)
	if err != nil {
		return err
	}
	if f.histogram {
		return f.histograms(ctx, s, paths[0], fields)
	}
	ro := viewreport.Options{
		Source: paths[0], Fields: fields, Seed: f.data.seed, Title: title(paths[0]), Generator: "chaski " + s.version,
		Bands: o.Bands, Low: o.Low, High: o.High, MaxBytes: min(f.maxBytes, 64<<20),
		Loader: loader.Options{MaxChunkBytes: f.maxChunk},
	}
	if f.several {
		ro.Samples = f.data.batch
	}
	if f.resized {
		ro.Side = f.size
	}
	bar := &progress{}
	step := ""
	ro.Progress = func(name string, done, total int64) {
		if name != step {
			bar.done()
			step, bar = name, newProgress(s.err, name, total)
		}
		bar.set(done, total)
	}
	r, err := viewreport.Make(ctx, ro)
	bar.done()
	if err == nil && r.Samples == 0 {
		err = fault.WithFile(fault.New(fault.NotFound, "dataset", fault.NoOffset, "no samples"), paths[0])
	}
	if err != nil {
		return usage(err)
	}
	return writeFile(f.out, s.out, r.WriteHTML)
}

// title is what a dataset is called: the last part of its path.
func title(path string) string {
	if t := filepath.Base(strings.TrimRight(path, "/")); t != "." && t != ".." && t != "/" {
		return t
	}
	return path
}

func (f *viewFlags) histograms(ctx context.Context, s streams, dataset string, fields []loader.Field) error {
	spec := loader.Spec{Source: dataset, Fields: fields, BatchSize: 1, BadSamples: f.data.bad}.WithDefaults()
	if err := spec.Validate(); err != nil {
		return wrongUsage(err)
	}
	bar := newProgress(s.err, "measuring", -1)
	opener := newOpener(true)
	defer opener.Close()
	panels, bands, err := viewreport.Panels(ctx, spec, loader.Options{MaxChunkBytes: f.maxChunk, Opener: opener, SQL: s.sql}, bar.set)
	bar.done()
	if err != nil {
		return usage(err)
	}
	name := title(dataset)
	if bands > len(panels) {
		name += fmt.Sprintf(" (%d of %d bands)", len(panels), bands)
	}
	format := draw.PNG
	if strings.EqualFold(filepath.Ext(f.out), ".svg") {
		format = draw.SVG
	}
	return writeFile(f.out, s.out, func(w io.Writer) error {
		return draw.WriteHistograms(w, name, panels, format)
	})
}
