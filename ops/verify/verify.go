// Package verify checks every byte of files: their structure, every chunk, which it decodes, and every checksum.
//
// Of a catalog it checks the file of every row, and that the row has the file's chunk index. Of a container it
// checks ids, tree, tables, stored headers and the byte range of every sample, but no pixels. Of a TileDB array
// it decodes every tile of every fragment, of a Zarr array or group every chunk of every array. Paths is its one
// function; a Report has the counts and the faults.
package verify

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/format/codec/geozl"
	"github.com/chaski-eo/chaski/format/codec/openzl"
	"github.com/chaski-eo/chaski/internal/crash"
	"github.com/chaski-eo/chaski/internal/magic"
	"github.com/chaski-eo/chaski/internal/procs"
	"github.com/chaski-eo/chaski/loader"
	"github.com/chaski-eo/chaski/loader/pixels"
	"github.com/chaski-eo/chaski/loader/rows"
	"github.com/chaski-eo/chaski/loader/survey"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/source/openers"
	"github.com/chaski-eo/chaski/store"
	"github.com/chaski-eo/chaski/store/catalog"
	"github.com/chaski-eo/chaski/store/catalog/tableinfo"
)

// Options of Paths. The zero value checks local files with all processors.
type Options struct {
	// Workers is how many files to check at the same time. Default: the number of processors.
	Workers int
	// MaxChunk is the largest decoded chunk, and the largest content of a loose OpenZL frame, in bytes. Larger
	// ones are faults of the kind fault.Limit. Default chunk.DefaultMaxBytes.
	MaxChunk int
	// Key is the key of encrypted TileDB arrays, or nil.
	Key []byte
	// Pixels decodes the rasters in all containers. In formats without checksums (Tortilla, TACO 0.2, and TACO
	// 2 as a directory) they are always decoded.
	Pixels bool
	// MaxFaults is how many faults a report lists. All are counted. Default 1000.
	MaxFaults int
	// Opener opens the files. Default: local files.
	Opener source.Opener
	// Progress, if not nil, is called after every file, from one goroutine at a time.
	Progress func(done, total int)
}

// withDefaults returns the options, and what ends their use.
func (o Options) withDefaults() (_ Options, done func()) {
	if o.Workers < 1 {
		o.Workers = procs.Workers()
	}
	o.MaxChunk = cmp.Or(o.MaxChunk, chunk.DefaultMaxBytes)
	o.MaxFaults = cmp.Or(o.MaxFaults, 1000)
	if o.Opener != nil {
		return o, func() {}
	}
	files := &openers.Files{}
	o.Opener = files
	return o, func() { _ = files.Close() } // they were only read
}

// Report has the numbers of what was checked, and the faults. It is the JSON that chaski verify prints.
type Report struct {
	store.Counts
	// Notes has what is against a specification but can be read correctly.
	Notes []string `json:"notes,omitempty"`
	// Faulty is the number of files and rows with a fault. Faults has the first fault of each, in the order of
	// the files, at most Options.MaxFaults.
	Faulty int64    `json:"faulty"`
	Faults []string `json:"faults"`

	first error
}

// Err returns the first fault, or nil.
func (r *Report) Err() error { return r.first }

// Paths checks files, containers and arrays, and those below directories: rasters and pictures, .zl, .parquet,
// .tacozip, .taco and .tortilla files, TileDB arrays, and Zarr arrays and groups. Paths may be remote.
//
// A fault of a file does not end the check: it is in the report. An error means that the check itself had to
// stop, because a path is missing, a directory has nothing to check, or ctx is done.
func Paths(ctx context.Context, paths []string, o Options) (*Report, error) {
	files, err := Expand(ctx, paths, o)
	if err != nil {
		return nil, err
	}
	part, err := Files(ctx, files, 0, len(files), o)
	if err != nil {
		return nil, err
	}
	return part.Whole(), nil
}

// verifier collects what the workers find.
type verifier struct {
	o     Options
	files source.Opener
	total int

	busy sync.Mutex // store.Check.Busy

	mu     sync.Mutex // of the fields below
	done   int
	sum    Report
	faults []fileFault
	notes  []noted
	names  nameLists
}

// noted are the notes of a file.
type noted struct {
	file  int
	notes []string
}

// fileFault is a fault, with the number of its file and its row in a catalog, or -1.
type fileFault struct {
	file int
	row  int64
	err  error
}

func (v *verifier) fault(file int, row int64, err error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.sum.Faulty++
	v.faults = append(v.faults, fileFault{file, row, err})
	// Twice the limit before sorting, so sorting costs little per fault. Faults come in any order: the first
	// ones by file must be kept, whichever worker was faster.
	if len(v.faults) > 2*v.o.MaxFaults {
		v.cut()
	}
}

// cut keeps the first MaxFaults faults in the order of files and rows.
func (v *verifier) cut() {
	slices.SortFunc(v.faults, func(a, b fileFault) int {
		return cmp.Or(cmp.Compare(a.file, b.file), cmp.Compare(a.row, b.row))
	})
	v.faults = v.faults[:min(len(v.faults), v.o.MaxFaults)]
}

func (v *verifier) part() *Part {
	v.cut()
	part := &Part{Report: v.sum, Names: v.names.lists}
	report := &part.Report
	report.Faults = []string{}
	// In the order of the files, so the report does not depend on which worker was faster.
	slices.SortFunc(v.notes, func(a, b noted) int { return cmp.Compare(a.file, b.file) })
	for _, n := range v.notes {
		report.Notes = append(report.Notes, n.notes...)
	}
	for _, f := range v.faults {
		report.Faults = append(report.Faults, fault.Line(f.err))
	}
	if len(v.faults) > 0 {
		report.first = v.faults[0].err
	}
	return part
}

// worker checks one file at a time, with buffers of its own.
type worker struct {
	v       *verifier
	decoder *chunk.Decoder
	frames  *openzl.Decoder
	stored  []byte
	pixels  []byte
	rows    *pixels.Reader // checks chunks that are decoded in pieces
	sum     *store.Check   // of the current file
}

func newWorker(v *verifier) *worker {
	return &worker{v: v, decoder: chunk.NewDecoder(nil),
		rows:   pixels.NewReader(loader.Options{MaxChunkBytes: v.o.MaxChunk}),
		frames: openzl.NewDecoder(openzl.Options{MaxOutput: v.o.MaxChunk, Custom: geozl.Codecs()})}
}

// file checks file number i. It returns an error only if the context is done.
func (w *worker) file(ctx context.Context, i int, path string) error {
	o := w.v.o
	w.sum = &store.Check{Opener: w.v.files, Key: o.Key, MaxChunk: o.MaxChunk, Workers: o.Workers, Pixels: o.Pixels,
		Busy: &w.v.busy, Guard: w.guarded, Counts: store.Counts{Files: 1},
		Fault: func(row int64, err error) { w.v.fault(i, row, err) },
		Raster: func(ctx context.Context, o source.Opener, row int64, sample, uri string) error {
			return w.sample(ctx, o, i, row, sample, uri)
		}}
	err := w.guarded(path, func() error { return w.check(ctx, i, path) })
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		w.v.fault(i, -1, fault.WithFile(err, path))
	}
	shared := w.v
	shared.mu.Lock()
	defer shared.mu.Unlock()
	shared.sum.Add(w.sum.Counts)
	if len(w.sum.Notes) > 0 {
		shared.notes = append(shared.notes, noted{i, w.sum.Notes})
	}
	shared.done++
	if shared.o.Progress != nil {
		shared.o.Progress(shared.done, shared.total)
	}
	return nil
}

// guarded calls f. A panic of a decoder is a fault of what f checks, called name: the others are still checked.
func (w *worker) guarded(name string, f func() error) error {
	err := crash.Call(f)
	if crash.Is(err) {
		sum := w.sum
		// The worker gets new decoders, because a decoder that panicked may have stopped half way.
		*w = *newWorker(w.v)
		w.sum = sum
		err = fmt.Errorf("%s: %w", name, err)
	}
	return err
}

// check checks path number i by its kind.
func (w *worker) check(ctx context.Context, i int, path string) error {
	kind, err := store.Of(ctx, w.v.files, path)
	switch {
	case err != nil:
		return err
	case kind == store.Other:
		return w.one(ctx, i, path)
	}
	verifier, ok := kind.(store.Verifier)
	if !ok {
		return fault.New(fault.Unsupported, "dataset", "%v cannot be verified", kind)
	}
	return verifier.Verify(ctx, w.sum, path)
}

// one checks a file that is neither a store nor a container.
func (w *worker) one(ctx context.Context, i int, path string) error {
	info, err := survey.Inspect(ctx, path, loader.Options{Opener: w.v.files, MaxChunkBytes: w.v.o.MaxChunk})
	if err != nil {
		return err
	}
	switch {
	case info.Format.Class.Pixels():
		// A rumi file of an unknown generation has no TIFF part: Inspect says so in Unreadable, and raster fails.
		if info.TIFF != nil && info.TIFF.Chain != "" {
			w.sum.Notes = append(w.sum.Notes, path+": more TIFF directories are not read: "+info.TIFF.Chain)
		}
		if info.TIFF != nil && info.TIFF.Pages > 1 {
			w.sum.Notes = append(w.sum.Notes, fmt.Sprintf(
				"%s: only the first of %d pages is read: pages of a field reads all", path, info.TIFF.Pages))
		}
		a, err := w.raster(ctx, w.v.files, path)
		if err == nil {
			w.named(i, -1, a)
		}
		return err
	case info.Format.Class == magic.Frame:
		return w.frame(ctx, path)
	case info.Kind == survey.KindAssets:
		return w.catalog(ctx, i, path, nil)
	case info.Kind == survey.KindTable:
		if images, err := w.images(ctx, path); err != nil || images != nil {
			return cmp.Or(err, w.catalog(ctx, i, path, images))
		}
	}
	return fault.New(fault.Unsupported, "file", "a file of the kind %s cannot be verified", info.Kind)
}

// raster decodes every chunk of a file, including the chunks of its mask, and returns its header.
func (w *worker) raster(ctx context.Context, o source.Opener, path string) (*catalog.Asset, error) {
	asset, _, err := catalog.OpenAsset(ctx, o, path, w.v.o.MaxChunk)
	if err != nil {
		return nil, err
	}
	index := asset.Index
	if catalog.IsVirtual(index) {
		return &asset, w.virtual(ctx, o, &asset)
	}
	file, err := o.Open(ctx, asset.URI)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	if asset.MaskFile != nil {
		if err := w.maskFile(ctx, o, &asset); err != nil {
			return nil, fault.WithFile(err, asset.MaskFile.URI)
		}
		alone := *index
		alone.Mask, index = nil, &alone
	}
	if err := index.Validate(file.Size(), w.v.o.MaxChunk); err != nil {
		return nil, err
	}
	if err := w.chunks(ctx, file, index); err != nil || index.Mask == nil {
		return &asset, err
	}
	if err := w.chunks(ctx, file, index.Mask); fault.KindOf(err) != 0 {
		return nil, fault.Wrap(0, "mask", err)
	} else if err != nil {
		return nil, err
	}
	return &asset, nil
}

// virtual reads all pixels of a virtual raster, and so what it needs of its sources.
func (w *worker) virtual(ctx context.Context, o source.Opener, a *catalog.Asset) error {
	reader := pixels.BorrowReader(loader.Options{Opener: o, MaxChunkBytes: w.v.o.MaxChunk}.WithDefaults())
	defer reader.GiveBack()
	x := a.Index
	box := chunk.Box{B1: x.Bands, Y1: x.Height, X1: x.Width}
	if err := reader.Read(ctx, *a, box, nil, pixels.Nowhere{}, pixels.Nowhere{}); err != nil {
		return err
	}
	w.sum.Chunks += int64(x.Down()) * int64(x.Across()) * int64(x.Groups())
	w.sum.Bytes += int64(x.Bands) * int64(x.Height) * int64(x.Width) * int64(x.DType.Size())
	return nil
}

// maskFile decodes the mask of a raster that lies beside it.
func (w *worker) maskFile(ctx context.Context, o source.Opener, a *catalog.Asset) error {
	file, err := o.Open(ctx, a.MaskFile.URI)
	if err != nil {
		return err
	}
	defer file.Close()
	if err := a.MaskFile.Index.Validate(file.Size(), w.v.o.MaxChunk); err != nil {
		return err
	}
	return w.chunks(ctx, file, a.MaskFile.Index)
}

// named remembers the names of the bands of a raster in row of file i, or -1.
func (w *worker) named(i int, row int64, a *catalog.Asset) {
	w.v.mu.Lock()
	defer w.v.mu.Unlock()
	w.v.names.add(i, row, a)
}

// chunks decodes all chunks of an index.
func (w *worker) chunks(ctx context.Context, r source.Reader, x *chunk.Index) error {
	for c := range x.Ranges {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := w.chunk(ctx, r, x, c); err != nil {
			return fault.AtOffset(err, x.Ranges[c].Off)
		}
	}
	return nil
}

// chunk decodes chunk c of an index.
func (w *worker) chunk(ctx context.Context, r source.Reader, x *chunk.Index, c int) error {
	if !x.ChunkFits(w.v.o.MaxChunk) { // then Validate has found that it is decoded in pieces
		if err := w.rows.Check(ctx, r, x, c); err != nil {
			return err
		}
		w.sum.Chunks++
		w.sum.Bytes += int64(x.DecodedBytes(c))
		return nil
	}
	place := x.Place(c)
	w.stored = slices.Grow(w.stored[:0], int(place.Len))[:place.Len]
	if place.Len > 0 {
		if err := r.ReadAt(ctx, w.stored, place.Off); err != nil {
			return fault.WithPart(err, "chunk "+strconv.Itoa(c), 0)
		}
	}
	size := x.DecodedBytes(c)
	w.pixels = slices.Grow(w.pixels[:0], size)[:size]
	if err := w.decoder.Decode(w.pixels, w.stored, x, c); err != nil {
		return err
	}
	w.sum.Chunks++
	w.sum.Bytes += int64(size)
	return nil
}

// frame decodes a loose OpenZL frame.
func (w *worker) frame(ctx context.Context, path string) error {
	data, err := source.ReadAll(ctx, w.v.files, path, int64(w.v.o.MaxChunk))
	if err != nil {
		return err
	}
	outputs, err := w.frames.Decode(data)
	if err != nil {
		return err
	}
	w.sum.Chunks++
	for _, o := range outputs {
		w.sum.Bytes += int64(len(o.Data))
	}
	return nil
}

// images returns the fields of a table whose cells hold rasters.
func (w *worker) images(ctx context.Context, path string) (fields []catalog.Source, err error) {
	file, err := w.v.files.Open(ctx, path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	names, err := tableinfo.Images(ctx, file)
	for _, name := range names {
		fields = append(fields, catalog.Source{Field: name})
	}
	return fields, err
}

// sample decodes every chunk of a sample of container i, if it is a raster. o opens any name as the sample alone.
func (w *worker) sample(ctx context.Context, o source.Opener, i int, row int64, path, uri string) error {
	file, err := o.Open(ctx, uri)
	if err != nil {
		return err
	}
	is, err := catalog.IsRaster(ctx, file)
	if err := errors.Join(err, file.Close()); err != nil || !is {
		return err
	}
	// The sum has the bytes of samples, so decoded pixels must not be added.
	bytes := w.sum.Bytes
	asset, err := w.raster(ctx, o, uri)
	w.sum.Bytes = bytes
	if err == nil {
		asset.Member = path
		w.named(i, row, asset)
	}
	return rows.Bare(err)
}

// catalog checks every row of a catalog: its file, and that its chunk index is the file's. Of a table it checks the
// rasters in the cells of fields.
func (w *worker) catalog(ctx context.Context, file int, path string, fields []catalog.Source) error {
	table, err := catalog.Open(ctx, path, fields, catalog.Options{Opener: w.v.files, MaxChunk: w.v.o.MaxChunk})
	if err != nil {
		return err
	}
	defer table.Close()
	// Cells of rasters are not read as columns, because these may be larger than the memory.
	if fields == nil {
		data, err := table.Data(ctx)
		if err == nil {
			err = data.Check(ctx)
		}
		if err == nil {
			err = table.CheckSums(ctx)
		}
		if err != nil {
			return err
		}
	}
	for row := range table.Len() {
		w.sum.Rows++
		for field := range table.Fields() { // several in a catalog of pairs
			name := path + ": row " + strconv.FormatInt(row, 10)
			if err := w.guarded(name, func() error { return w.row(ctx, file, table, field, row) }); err != nil {
				if ctx.Err() != nil {
					return ctx.Err()
				}
				w.v.fault(file, row, fault.WithFile(err, path))
			}
		}
	}
	return nil
}

// row checks one row of a catalog, which is file number i.
func (w *worker) row(ctx context.Context, i int, t *catalog.Table, field int, row int64) error {
	part := "row " + strconv.FormatInt(row, 10)
	asset, err := t.Asset(ctx, field, row)
	if err != nil {
		return err
	}
	if images := asset.Images(); images != nil && asset.Index.Grid.Image > 0 {
		return nil // the first one checks all images of its store
	} else if images != nil {
		return images.Verify(ctx, w.sum)
	}
	opener := w.v.files
	if asset.Member != "" || asset.Bytes != nil {
		opener = asset.Alone(opener)
	}
	header, err := w.raster(ctx, opener, asset.URI)
	if err != nil {
		return asset.Fault(err)
	}
	w.sum.Files++
	index := asset.Index
	// Shifted, because the catalog counts offsets from the start of the container, and the raster was opened by itself.
	if asset.Member != "" {
		index = index.Shift(-asset.Offset)
	}
	if !catalog.Matches(header.Index, index) {
		return fault.New(fault.Corrupt, part, "the index is not the one of %s", asset.URI)
	}
	if asset.Names != nil && !slices.Equal(asset.Names, header.Names) {
		return fault.New(fault.Corrupt, part, "the names of the bands are not those of %s", asset.URI)
	}
	asset.Names = header.Names
	w.named(i, row, &asset)
	return nil
}
