package build

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/chaski-eo/chaski/tables"
)

// Stream writes a container whose samples are made while it is written, so that they need not be in memory or in files
// together. run calls put with one sample after the other. put writes the bytes of the sample before it returns, and
// keeps only its ids. Columns of the samples and of tortillas are ignored: run returns the columns of each level, with
// a row for each of its samples in the order of their parents, and COLLECTION.json. It checks what Create checks. An
// error or a kill leaves an old container unchanged.
func Stream(ctx context.Context, path string, o Options,
	run func(put func(s *Sample) error) (Collection, []*tables.Table, error)) (*Result, error) {
	w := &writer{o: o}
	w.files = w.streamed(func(s *Sink) (Collection, []*tables.Table, error) { return run(s.Put) })
	return w.write(ctx, path)
}

// streamed returns what puts the files of the samples that run hands over.
func (w *writer) streamed(run func(s *Sink) (Collection, []*tables.Table, error)) func(context.Context, putter) error {
	return func(ctx context.Context, put putter) error {
		s := &stream{w: w, put: func(p place, l *loaded) error {
			if err := w.work.start(l.kept); err != nil {
				return err
			}
			return put(p, l)
		}}
		collection, columns, err := run(&Sink{ctx, s})
		if err == nil {
			err = w.work.start(false)
		}
		if err == nil {
			err = s.finish(ctx, collection, columns)
		}
		return err
	}
}

// stream adds samples to the levels of a writer.
type stream struct {
	w    *writer
	put  putter
	grow grower
}

// sample writes a sample of level 0 with all that is below it.
func (s *stream) sample(ctx context.Context, sample *Sample) error {
	row, err := s.grow.sample(sample)
	if s.w.levels = s.grow.levels; err != nil {
		return err
	}
	if err := s.write(ctx, 0, row, sample.ID, sample); err != nil {
		return err
	}
	s.w.result.Samples++
	return nil
}

// write writes the files of a row.
func (s *stream) write(ctx context.Context, k, row int, path string, sample *Sample) error {
	at := &s.w.levels[k].Rows[row]
	if sample.Children != nil {
		for i := range sample.Children.Samples {
			c := &sample.Children.Samples[i]
			if err := s.write(ctx, k+1, int(s.w.levels[k].first[row])+i, path+"/"+c.ID, c); err != nil {
				return err
			}
		}
		return nil
	}
	loaded, err := s.load(ctx, at, sample.Kept, path)
	at.bytes = nil // they are written, and would stay in memory
	if err != nil {
		return err
	}
	err = s.put(place{k, row, path}, loaded)
	if cerr := loaded.close(); err == nil {
		err = cerr
	}
	s.w.result.Files++
	s.w.result.Bytes += loaded.size
	return err
}

// finish completes the levels.
func (s *stream) finish(ctx context.Context, c Collection, columns []*tables.Table) error {
	if err := s.grow.end(); err != nil {
		return err
	}
	s.w.collection = c
	if err := s.w.collection.CheckFor(cmp.Or(s.w.described, ZIP)); err != nil {
		return err
	}
	if len(columns) != len(s.w.levels) {
		return fmt.Errorf("columns of %d levels for %d", len(columns), len(s.w.levels))
	}
	for k, level := range s.w.levels {
		if columns[k].Len() != len(level.Rows) {
			return fmt.Errorf("level %d has %d rows of columns for %d samples", k, columns[k].Len(), len(level.Rows))
		}
		var check schema
		check.types = map[string]tables.Type{}
		if err := check.add(columns[k], level.Rows[0].ID); err != nil {
			return err
		}
		level.Table = columns[k]
	}
	return s.w.typed(ctx)
}

// load returns the bytes of a row.
func (s *stream) load(ctx context.Context, r *Row, kept *Kept, path string) (*loaded, error) {
	switch {
	case kept == nil:
		return load(ctx, s.w.o.Opener, r)
	case s.w.work == nil:
		return nil, errors.New("sample " + path + ": nothing is kept of a run that cannot be continued")
	}
	return &loaded{kept: true, size: kept.Size, crc: kept.CRC}, nil
}
