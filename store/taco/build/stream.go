package build

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/chaski-eo/chaski/internal/durable"
	"github.com/chaski-eo/chaski/internal/pathname"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store/taco"
	"github.com/chaski-eo/chaski/tables"
)

// Sink takes the samples of a container that are made while it is written.
type Sink struct {
	ctx   context.Context
	w     *writer
	write putter
	grow  grower
}

// samplesInto puts all samples into a sink. It returns COLLECTION.json, and the columns of each level, with a row for
// each of its samples in the order of their parents.
type samplesInto = func(s *Sink) (Collection, []*tables.Table, error)

// Stream writes a container whose samples are made while it is written, so that they need not be in memory or in files
// together. It checks what Create checks. An error or a kill leaves an old container unchanged.
//
// A container in parts, a Tortilla, a TACO 0.2 and a TACO 3 are copies of a ZIP, as Export copies it, because their
// columns or parts depend on all samples. The ZIP is in a temporary folder beside path or, if that is in a store, where
// temporary files are. o.More, o.Inspect and o.Histograms apply to that copy.
func Stream(ctx context.Context, path string, o Options, run samplesInto) (_ *Result, err error) {
	w := &writer{o: o, described: cmp.Or(o.Form, FormOf(path))}
	w.files = w.streamed(run)
	if !o.split() && (w.described == ZIP || w.described == Folder) {
		return w.write(ctx, path)
	}
	if o.split() && w.described != Cozip {
		w.described = Folder
	}
	o.Form = w.described
	if err := Writable(ctx, path, o); err != nil {
		return nil, err
	}
	beside := path
	if o.Store != nil {
		beside = pathname.Join(os.TempDir(), "chaski-made")
	}
	folder, err := durable.NewFolder(beside)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, folder.Remove()) }()
	zip := pathname.Join(folder.Path, "container.tacozip")
	w.o = Options{Form: ZIP, Opener: o.Opener, Workers: o.Workers, Bytes: o.Bytes}
	if _, err := w.write(ctx, zip); err != nil {
		return nil, err
	}
	return copyInto(ctx, zip, path, o)
}

// streamed returns what puts the files of the samples that run hands over.
func (w *writer) streamed(run samplesInto) func(context.Context, putter) error {
	return func(ctx context.Context, put putter) error {
		s := &Sink{ctx: ctx, w: w, write: put, grow: grower{form: w.o.Form}}
		collection, columns, err := run(s)
		if err == nil {
			err = s.finish(collection, columns)
		}
		return err
	}
}

// Put writes a sample of level 0 with all that is below it. It keeps only the ids. Columns of the samples are ignored.
func (s *Sink) Put(sample *Sample) error {
	row, err := s.grow.sample(sample)
	if s.w.levels = s.grow.levels; err != nil {
		return err
	}
	for _, p := range s.w.leaves(nil, place{0, row, sample.ID}) {
		loaded, err := load(s.ctx, s.w.o.Opener, s.w.row(p))
		// loaded has the bytes, which would otherwise stay in memory with the row.
		s.w.row(p).bytes = nil
		if err == nil {
			err = s.w.hand(p, loaded, s.write)
		}
		if err != nil {
			return err
		}
	}
	s.w.result.Samples++
	return nil
}

// finish completes the levels.
func (s *Sink) finish(c Collection, columns []*tables.Table) error {
	if err := s.grow.end(); err != nil {
		return err
	}
	s.w.collection = c
	if err := s.w.collection.CheckFor(s.w.described); err != nil {
		return err
	}
	if len(columns) != len(s.w.levels) {
		return fmt.Errorf("columns of %d levels for %d", len(columns), len(s.w.levels))
	}
	for k, level := range s.w.levels {
		level.Table = tables.New(len(level.Rows), nil, nil)
		if columns[k].Len() != len(level.Rows) {
			return fmt.Errorf("level %d has %d rows of columns for %d samples", k, columns[k].Len(), len(level.Rows))
		}
	}
	if err := s.w.add(columns); err != nil {
		return err
	}
	return s.w.typed(s.ctx)
}

// copyInto copies a ZIP into a container of another form, or in parts.
func copyInto(ctx context.Context, zip, path string, o Options) (r *Result, err error) {
	// An opener of its own, because the one of the options may see other folders only, or objects of a store.
	files := &source.Files{}
	defer func() { err = errors.Join(err, files.Close()) }()
	dataset, err := taco.Open(ctx, files, []string{zip}, taco.Options{})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, dataset.Close()) }()
	collection, err := CollectionOf(dataset)
	if err != nil {
		return nil, err
	}
	o.Opener, o.stored = files, o.Opener
	return Export(ctx, dataset, nil, *collection, path, o)
}
