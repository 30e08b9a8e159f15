package build

import (
	"context"
	"errors"
	"io"
	"os"

	"github.com/chaski-eo/chaski/internal/durable"
	"github.com/chaski-eo/chaski/internal/pathname"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store/taco"
	"github.com/chaski-eo/chaski/tables"
)

// Sink takes the samples of a container that can be continued.
type Sink struct {
	ctx context.Context
	s   *stream
}

// Put writes a sample, as the function that Stream hands out.
func (s *Sink) Put(sample *Sample) error { return s.s.sample(s.ctx, sample) }

// Flush waits until all that was put is on the disk. It returns where a later run continues: see StreamIn.
func (s *Sink) Flush() (from int64, err error) { return s.s.w.work.flush() }

// madeName is the name of the container in the folder of its work.
const madeName = "container"

// StreamIn is Stream for a run that may be killed and continued. The container grows in the folder work, which is on
// the file system of path and outlives the run, until it is complete and renamed to path. The caller removes work.
//
// from is 0 for a new run. To continue a run, it is the last result of Flush that the caller recorded. run must then
// put all samples that were put before that Flush again, with Kept in place of their bytes. Bytes written after that
// Flush are written again.
//
// Some forms are written as one ZIP in the folder work, which is then copied as Export copies it: a container in
// parts, because the number of samples of a part is only known at the end; a Tortilla or TACO 0.2, whose columns
// depend on all samples; and shards, whose columns precede their samples. o.More, o.Histograms and o.Store apply to
// that copy.
func StreamIn(ctx context.Context, path, folder string, from int64, o Options,
	run func(s *Sink) (Collection, []*tables.Table, error)) (*Result, error) {
	w := &writer{o: o, work: &work{from: from, known: map[string]bool{}}}
	defer w.defaults(path)()
	form := w.o.Form
	if o.split() && form != Cozip {
		form = Folder
	}
	if o.Form, w.described = form, form; o.copies() {
		w.o.Form = ZIP
	}
	w.files = w.streamed(run)
	if o.Store != nil && !o.copies() {
		return nil, errors.New("a container that grows in a store cannot be continued")
	}
	if o.Store == nil {
		existing := form
		if o.split() {
			existing = Folder
		}
		if err := Writable(path, existing); err != nil {
			return nil, err
		}
	}
	part := pathname.Join(folder, madeName)
	write := w.partFile
	if w.o.Form == Folder {
		write = w.partFolder
	}
	if err := write(ctx, part); err != nil {
		return nil, err
	}
	if o.copies() {
		return copyInto(ctx, part, path, o)
	}
	return &w.result, durable.Rename(part, path)
}

// copies reports whether StreamIn makes a ZIP first, and then a copy of it.
func (o *Options) copies() bool {
	return o.split() || o.Form.Older() || o.Form.Named()
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

// partFile writes a ZIP.
func (w *writer) partFile(ctx context.Context, part string) (err error) {
	file, err := os.OpenFile(part, os.O_CREATE|os.O_RDWR, 0o666)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	st, err := file.Stat()
	if err == nil && st.Size() < w.work.from {
		err = damaged("it has %d bytes, but its journal says %d", st.Size(), w.work.from)
	}
	if err == nil {
		err = file.Truncate(w.work.from)
	}
	if err == nil {
		_, err = file.Seek(w.work.from, io.SeekStart)
	}
	if err != nil {
		return err
	}
	w.work.file = file
	return w.zip(ctx, disk(file))
}

// partFolder writes a folder.
func (w *writer) partFolder(ctx context.Context, part string) error {
	// The tables and COLLECTION.json are written last, and again.
	data := pathname.Join(part, dataFolder)
	if err := os.MkdirAll(data, 0o777); err != nil {
		return err
	}
	entries, err := os.ReadDir(part)
	for _, e := range entries {
		if err == nil && e.Name()+"/" != dataFolder {
			err = os.RemoveAll(pathname.Join(part, e.Name()))
		}
	}
	if err != nil {
		return err
	}
	w.work.folders = []string{data}
	return w.into(ctx, &localFolder{dir: part, work: w.work})
}
