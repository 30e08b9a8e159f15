package build

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/store/taco/internal/taco2"
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
	w.files = func(ctx context.Context, put putter) error {
		s := &stream{w: w, put: put}
		c, columns, err := run(func(sample *Sample) error { return s.sample(ctx, sample) })
		if err == nil {
			err = s.finish(ctx, c, columns)
		}
		return err
	}
	return w.write(ctx, path)
}

// stream adds samples to the levels of a writer.
type stream struct {
	w    *writer
	put  putter
	seen map[string]bool // the ids of level 0
}

// sample writes a sample of level 0 with all that is below it.
func (s *stream) sample(ctx context.Context, sample *Sample) error {
	if s.seen == nil {
		s.seen = map[string]bool{}
	}
	if err := s.check(sample, sample.ID, 0, s.seen); err != nil {
		return err
	}
	s.seen[sample.ID] = true
	row := s.grow(0, 0, sample)
	// All samples must have the same tree (PIT-1): one that differs is refused before its bytes are written.
	if what := sameTree(s.w.levels, 0, 0, row, true); what != "" {
		return fault.New(fault.Unsupported, "sample "+strconv.Quote(sample.ID), fault.NoOffset,
			"differs from %q, and all samples of level 0 must have the same tree (PIT-1): %s", s.w.levels[0].ids[0],
			what)
	}
	if err := s.write(ctx, 0, row, sample.ID, sample); err != nil {
		return err
	}
	s.w.result.Samples++
	return nil
}

// check checks a sample and all that is below it.
func (s *stream) check(sample *Sample, path string, k int, siblings map[string]bool) error {
	if err := checkSample(sample, badID(sample.ID), path, siblings); err != nil || sample.Children == nil {
		return err
	}
	if k+1 == taco2.MaxLevels {
		return fault.New(fault.Limit, "sample "+path, fault.NoOffset,
			"is a folder at level %d: a container has at most %d levels", k, taco2.MaxLevels)
	}
	if sample.Children.padding() > 0 {
		return fmt.Errorf("sample %q: pad_to is not for streams", path)
	}
	seen := map[string]bool{}
	for i := range sample.Children.Samples {
		c := &sample.Children.Samples[i]
		if err := s.check(c, join(path, c.ID), k+1, seen); err != nil {
			return err
		}
		seen[c.ID] = true
	}
	return nil
}

// grow adds the rows of a sample, and returns its own. Each level has, in first, the end of the children of its rows.
func (s *stream) grow(k int, parent int32, sample *Sample) int {
	if len(s.w.levels) == k {
		s.w.levels = append(s.w.levels, &level{first: []int32{0}})
	}
	l := s.w.levels[k]
	row := len(l.ids)
	l.add(k, int32(row), parent, sample.ID, sample.Children != nil, content{})
	if sample.Children != nil {
		for i := range sample.Children.Samples {
			s.grow(k+1, int32(row), &sample.Children.Samples[i])
		}
	}
	children := int32(0)
	if k+1 < len(s.w.levels) {
		children = int32(len(s.w.levels[k+1].ids))
	}
	l.first = append(l.first, children)
	return row
}

// write writes the files of a row.
func (s *stream) write(ctx context.Context, k, row int, path string, sample *Sample) error {
	if sample.Children != nil {
		for i := range sample.Children.Samples {
			c := &sample.Children.Samples[i]
			if err := s.write(ctx, k+1, int(s.w.levels[k].first[row])+i, path+"/"+c.ID, c); err != nil {
				return err
			}
		}
		return nil
	}
	loaded, err := s.load(ctx, sample, path)
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
	if s.w.collection = c; len(s.w.levels) == 0 {
		return fault.New(fault.Unsupported, "dataset", fault.NoOffset, "has no samples")
	}
	if err := s.w.collection.CheckFor(cmp.Or(s.w.described, ZIP)); err != nil {
		return err
	}
	if len(columns) != len(s.w.levels) {
		return fmt.Errorf("columns of %d levels for %d", len(columns), len(s.w.levels))
	}
	for k, level := range s.w.levels {
		if columns[k].Len() != len(level.ids) {
			return fmt.Errorf("level %d has %d rows of columns for %d samples", k, columns[k].Len(), len(level.ids))
		}
		var check schema
		check.types = map[string]tables.Type{}
		if err := check.add(columns[k], level.ids[0]); err != nil {
			return err
		}
		level.columns = columns[k]
	}
	s.w.levels[len(s.w.levels)-1].first = nil
	return s.w.typed(ctx)
}

// load returns the bytes of a sample.
func (s *stream) load(ctx context.Context, sample *Sample, path string) (*loaded, error) {
	if sample.Kept == nil {
		return load(ctx, s.w.o.Opener, &content{file: sample.File, bytes: sample.Bytes, entry: sample.Entry})
	}
	if s.w.work == nil {
		return nil, errors.New("sample " + path + ": nothing is kept of a run that cannot be continued")
	}
	return &loaded{kept: true, size: sample.Kept.Size, crc: sample.Kept.CRC}, nil
}
