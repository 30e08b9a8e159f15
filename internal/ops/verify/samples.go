package verify

import (
	"context"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/loader/rows"
	"github.com/chaski-eo/chaski/store/catalog"
	"github.com/chaski-eo/chaski/store/taco"
)

// container checks a container, and the pixels of its samples if Options.Pixels asks for them, or if nothing else would
// find a changed bit in them. i is the number of its file.
func (w *worker) container(ctx context.Context, i int, path string) error {
	dataset, err := taco.Open(ctx, w.v.files, []string{path}, taco.Options{})
	if err != nil {
		return err
	}
	defer dataset.Close()
	report, err := dataset.Verify(ctx)
	w.sum.Containers, w.sum.Rows, w.sum.Samples, w.sum.Bytes = 1, report.Rows, report.Files, report.Bytes
	w.sum.Absent = int64(len(report.Absent))
	for _, n := range report.Notes {
		w.sum.Notes = append(w.sum.Notes, path+": "+n)
	}
	switch {
	case err != nil || len(report.Absent) == 0:
	case report.Files == 0 && dataset.Form() == taco.TacocatFile: // it may be kept alone, for queries
		w.sum.Notes = append(w.sum.Notes, path+": none of its source files is there: only the tables are checked")
	default:
		err = fault.WithFile(fault.New(fault.NotFound, "source file", fault.NoOffset,
			"is not there: the catalog lacks %d of its files", len(report.Absent)), report.Absent[0])
	}
	if err != nil || !w.v.o.Pixels && !dataset.Form().Unchecked() {
		return err
	}
	return w.samples(ctx, i, dataset)
}

// samples decodes every chunk of every raster in a container. A fault of one does not end the check.
func (w *worker) samples(ctx context.Context, i int, d *taco.Dataset) error {
	number := int64(0)
	for e, err := range d.Leaves(ctx, false) {
		if err != nil {
			return err
		}
		err := w.guarded(e.Path, func() error { return w.sample(ctx, i, number, e) })
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			w.v.fault(i, number, fault.WithFile(fault.WithPart(err, "sample "+e.Path, 0), e.URI))
		}
		number++
	}
	return nil
}

// sample decodes every chunk of a sample of file i, if it is a raster.
func (w *worker) sample(ctx context.Context, i int, number int64, e taco.Entry) error {
	file, err := taco.Section(ctx, w.v.files, e)
	if err != nil {
		return err
	}
	is := catalog.IsRaster(ctx, file)
	if err := file.Close(); err != nil || !is {
		return err
	}
	// The sum has the bytes of samples, so that decoded pixels must not be added.
	bytes := w.sum.Bytes
	asset, err := w.raster(ctx, taco.Alone(w.v.files, e), e.URI)
	w.sum.Bytes = bytes
	if err == nil {
		asset.Member = e.Path
		w.named(i, number, asset)
	}
	return rows.Bare(err)
}
