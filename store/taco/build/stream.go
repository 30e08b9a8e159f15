package build

import (
	"context"
	"errors"
	"fmt"
	"io"
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
	fresh bool // a file was put whose bytes no earlier run has written
}

// samplesInto puts all samples into a sink. It returns COLLECTION.json, and the columns of each level, with a row for
// each of its samples in the order of their parents.
type samplesInto = func(s *Sink) (Collection, []*tables.Table, error)

// Stream writes a container whose samples are made while it is written, so that they need not be in memory or in files
// together. It checks what Create checks. An error or a kill leaves an old container unchanged.
func Stream(ctx context.Context, path string, o Options, run samplesInto) (*Result, error) {
	w := &writer{o: o}
	w.files = w.streamed(run)
	return w.write(ctx, path)
}

// StreamIn is Stream for a run that may be killed and continued. The container grows as a ZIP in the folder work, which
// is on the file system of path and outlives the run, until it is complete. Then it is renamed to path or, if the
// options want another form or parts, copied as Export copies it: o.More, o.Histograms and o.Store apply to that copy.
// The caller removes work.
//
// from is 0 for a new run. To continue a run, it is the last result of Flush that the caller recorded. run must then
// put all samples that were put before that Flush again, with Kept in place of their bytes. Bytes written after that
// Flush are written again.
func StreamIn(ctx context.Context, path, work string, from int64, o Options, run samplesInto) (*Result, error) {
	w := &writer{o: o, growing: &growing{from: from}}
	defer w.defaults(path)()
	if o.Form = w.o.Form; o.split() && o.Form != Cozip {
		o.Form = Folder
	}
	if o.Store == nil {
		if err := Writable(ctx, path, o); err != nil {
			return nil, err
		}
	}
	w.described, w.o.Form = o.Form, ZIP
	w.files = w.streamed(run)
	part := pathname.Join(work, "container")
	if err := w.goOn(ctx, part); err != nil {
		return nil, err
	}
	if o.split() || o.Form != ZIP || o.Store != nil {
		return copyInto(ctx, part, path, o)
	}
	return &w.result, durable.Rename(part, path)
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
	if err := s.files(0, row, sample.ID, sample); err != nil {
		return err
	}
	s.w.result.Samples++
	return nil
}

// files writes the files of a row.
func (s *Sink) files(k, row int, path string, sample *Sample) error {
	at := &s.w.levels[k].Rows[row]
	if sample.Children != nil {
		for i := range sample.Children.Samples {
			c := &sample.Children.Samples[i]
			if err := s.files(k+1, int(s.w.levels[k].first[row])+i, path+"/"+c.ID, c); err != nil {
				return err
			}
		}
		return nil
	}
	loaded, err := s.load(at, sample.Kept)
	at.bytes = nil // they are written, and would stay in memory
	if err != nil {
		return err
	}
	err = s.write(place{k, row, path}, loaded)
	if cerr := loaded.close(); err == nil {
		err = cerr
	}
	s.w.result.Files++
	s.w.result.Bytes += loaded.size
	return err
}

// load returns the bytes of a row.
func (s *Sink) load(r *Row, kept *Kept) (*loaded, error) {
	if kept == nil {
		if err := s.begin(); err != nil {
			return nil, err
		}
		return load(s.ctx, s.w.o.Opener, r)
	}
	if s.fresh || s.w.growing == nil {
		return nil, errors.New("a file is kept after one that is not")
	}
	return &loaded{kept: true, size: kept.Size, crc: kept.CRC}, nil
}

// begin checks, before the first new file, that the files of an earlier run are those that its journal lists.
func (s *Sink) begin() error {
	grown := s.w.growing
	if s.fresh || grown == nil || grown.from == 0 { // then the ZIP holds at most TACO_HEADER, which is written again
		s.fresh = true
		return nil
	}
	s.fresh = true
	if end := grown.zip.at(); end != grown.from {
		return damaged("its files end at %d, but its journal says %d", end, grown.from)
	}
	return nil
}

// finish completes the levels.
func (s *Sink) finish(c Collection, columns []*tables.Table) error {
	if err := s.begin(); err != nil {
		return err
	}
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

// Flush waits until all that was put is on the disk. It returns where a later run continues: see StreamIn.
func (s *Sink) Flush() (from int64, err error) {
	grown := s.w.growing
	if err := grown.zip.out.Flush(); err != nil {
		return 0, err
	}
	return grown.zip.at(), durable.SyncFile(grown.file)
}

// goOn writes a ZIP that an earlier run may have begun.
func (w *writer) goOn(ctx context.Context, part string) (err error) {
	file, err := os.OpenFile(part, os.O_CREATE|os.O_RDWR, 0o666)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	from := w.growing.from
	st, err := file.Stat()
	if err == nil && st.Size() < from {
		err = damaged("it has %d bytes, but its journal says %d", st.Size(), from)
	}
	if err == nil {
		err = file.Truncate(from)
	}
	if err == nil {
		_, err = file.Seek(from, io.SeekStart)
	}
	if err != nil {
		return err
	}
	w.growing.file = file
	w.growing.zip = newArchive(&resumed{archiveFile: disk(file), left: from})
	return w.zipTo(ctx, w.growing.zip)
}

// copyInto copies a ZIP into a container of another form, or in parts.
func copyInto(ctx context.Context, zip, path string, o Options) (r *Result, err error) {
	// The opener of the options may see other folders only.
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
	o.Opener = &bothOpener{files, o.Opener}
	return Export(ctx, dataset, nil, *collection, path, o)
}

// bothOpener opens local files and, for an index of ZIPs in a store, what another opener does.
type bothOpener struct {
	local *source.Files
	other source.Opener
}

// Open implements source.Opener.
func (b *bothOpener) Open(ctx context.Context, uri string) (source.Reader, error) {
	if b.other != nil && source.IsRemote(uri) {
		return b.other.Open(ctx, uri)
	}
	return b.local.Open(ctx, uri)
}
