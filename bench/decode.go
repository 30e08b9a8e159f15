package bench

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/format/codec/geozl"
	"github.com/chaski-eo/chaski/format/codec/openzl"
	"github.com/chaski-eo/chaski/internal/cast"
	"github.com/chaski-eo/chaski/internal/cputime"
	"github.com/chaski-eo/chaski/internal/procs"
	"github.com/chaski-eo/chaski/loader/pixels"
	"github.com/chaski-eo/chaski/loader/resources"
	"github.com/chaski-eo/chaski/loader/spec"
	"github.com/chaski-eo/chaski/shuffle"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/source/openers"
	"github.com/chaski-eo/chaski/store/catalog"
)

// DecodeOptions of Decode.
type DecodeOptions struct {
	// Workers is how many files to decode at the same time. Default: the number of processors.
	Workers int
	Rounds
	// Opened opens files and reads their headers before the measurement.
	Opened bool
	// MaxChunk is the largest decoded chunk, in bytes. Default chunk.DefaultMaxBytes.
	MaxChunk int
}

func (o DecodeOptions) withDefaults() DecodeOptions {
	o.Workers = cmp.Or(o.Workers, procs.Workers())
	o.setDefaults()
	o.MaxChunk = cmp.Or(o.MaxChunk, chunk.DefaultMaxBytes)
	return o
}

// Decode measures the decoding of whole files, again and again in the order of paths. The samples of the report are
// files.
func Decode(ctx context.Context, paths []string, o DecodeOptions) (*Report, error) {
	o = o.withDefaults()
	if len(paths) == 0 {
		return nil, fmt.Errorf("bench: there is no file to decode")
	}
	d := newDecodeRun(paths, o)
	defer d.files.Close()
	if err := d.warm(ctx); err != nil {
		return nil, err
	}
	report := &Report{Workload: "decode: whole files", Machine: ThisMachine()}
	report.set("files", "%d", len(paths))
	report.set("opening", "%t", !o.Opened)
	report.set("workers", "%d", o.Workers)
	report.set("rounds", "%d of %v", o.Count, o.Time)
	var mb, samples, cpu []float64
	var files int64
	for i := range o.Count {
		used := cputime.Used()
		n, bytes, duration, err := d.round(ctx)
		if err != nil {
			return nil, err
		}
		files += n
		mb = append(mb, float64(bytes)/1e6/duration.Seconds())
		samples = append(samples, float64(n)/duration.Seconds())
		cpu = append(cpu, float64(cputime.Used()-used)/1e6/float64(n))
		o.Progress(i+1, o.Count)
	}
	report.Figures = []Figure{
		newFigure("decoded", "MB/s", mb), newFigure("files", "samples/s", samples),
		newFigure("cpu", "ms a sample", cpu),
	}
	report.Stages = stageTimes(resources.Spent{}, d.stages.Spent(), files)
	return report, nil
}

type decodeRun struct {
	o       DecodeOptions
	paths   []string
	files   *openers.Files
	assets  []catalog.Asset // with Opened
	frames  []frame         // of the paths that are frames
	workers []*decodeWorker
	options resources.Options
	stages  resources.Stages
}

func newDecodeRun(paths []string, o DecodeOptions) *decodeRun {
	d := &decodeRun{o: o, paths: paths, files: &openers.Files{Keep: len(paths) + o.Workers}}
	d.options = resources.Options{Opener: d.files, MaxChunkBytes: o.MaxChunk}.WithDefaults()
	for range o.Workers {
		d.workers = append(d.workers, &decodeWorker{run: d, reader: pixels.NewReader(d.options),
			openzl: openzl.NewDecoder(openzl.Options{MaxOutput: d.o.MaxChunk, Custom: geozl.Codecs()})})
	}
	return d
}

// frame is a loose OpenZL frame.
type frame struct {
	data        []byte
	width, size int // of a single numeric output, which is decoded into the worker's memory like a chunk of a raster
}

// warm decodes every file once with one worker, and keeps the indexes.
func (d *decodeRun) warm(ctx context.Context) error {
	d.assets, d.frames = make([]catalog.Asset, len(d.paths)), make([]frame, len(d.paths))
	for i, p := range d.paths {
		if isFrame(p) {
			if err := d.warmFrame(ctx, i); err != nil {
				return fault.WithFile(err, p)
			}
			continue
		}
		asset, _, err := catalog.OpenAsset(ctx, d.files, p, d.o.MaxChunk)
		if err != nil {
			return err
		}
		d.assets[i] = asset
		if _, err := d.workers[0].asset(ctx, asset); err != nil {
			return fault.WithFile(err, p)
		}
	}
	return nil
}

// isFrame reports whether a path is of a loose OpenZL frame.
func isFrame(path string) bool { return strings.HasSuffix(path, ".zl") }

// warmFrame reads and decodes a frame once.
func (d *decodeRun) warmFrame(ctx context.Context, i int) error {
	data, err := source.ReadAll(ctx, d.files, d.paths[i], math.MaxInt64)
	if err != nil {
		return err
	}
	outs, err := d.workers[0].openzl.Decode(data)
	if err != nil {
		return err
	}
	d.frames[i] = frame{data: data}
	if len(outs) == 1 && outs[0].Type == openzl.Numeric {
		d.frames[i].width, d.frames[i].size = outs[0].Width, len(outs[0].Data)
	}
	return nil
}

// round decodes files until the time is over. It counts every file that was begun, and the time until the last one
// is done.
func (d *decodeRun) round(ctx context.Context) (files, bytes int64, t time.Duration, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	// Workers take files from one counter, so none idles while others have files left.
	var next, done, sum atomic.Int64
	start := time.Now()
	var wg sync.WaitGroup
	for _, w := range d.workers {
		wg.Go(func() {
			w.reader.SetClock(d.stages.Clock())
			defer w.reader.Clock.Stop()
			for ctx.Err() == nil && time.Since(start) < d.o.Time {
				n, err := w.file(ctx, int((next.Add(1)-1)%int64(len(d.paths))))
				if err != nil {
					cancel(err)
					return
				}
				done.Add(1)
				sum.Add(n)
			}
		})
	}
	wg.Wait()
	return done.Load(), sum.Load(), time.Since(start), context.Cause(ctx)
}

// decodeWorker decodes one file at a time, as the workers of an engine do, into memory of its own.
type decodeWorker struct {
	run    *decodeRun
	reader *pixels.Reader
	openzl *openzl.Decoder // of loose frames
	frames []byte          // the content of a frame
	row    pixels.Row      // where the image goes; it is kept for images of the same shape and dtype
	shape  [3]int          // of row
}

func (w *decodeWorker) file(ctx context.Context, i int) (int64, error) {
	if path := w.run.paths[i]; isFrame(path) {
		n, err := w.frame(ctx, i)
		return n, fault.WithFile(err, path)
	}
	asset := w.run.assets[i]
	if !w.run.o.Opened {
		var err error
		if asset, _, err = catalog.OpenAsset(ctx, w.run.files, w.run.paths[i], w.run.o.MaxChunk); err != nil {
			return 0, err
		}
	}
	n, err := w.asset(ctx, asset)
	return n, fault.WithFile(err, asset.URI)
}

// frame decodes a frame and returns the bytes of its outputs.
func (w *decodeWorker) frame(ctx context.Context, i int) (size int64, err error) {
	f := w.run.frames[i]
	if !w.run.o.Opened {
		w.reader.Clock.Lap(resources.StageOther)
		f.data, err = source.ReadAll(ctx, w.run.files, w.run.paths[i], math.MaxInt64)
		if w.reader.Clock.Lap(resources.StageRead); err != nil {
			return 0, err
		}
	}
	defer w.reader.Clock.Lap(resources.StageDecode)
	if f.width > 0 {
		if cap(w.frames) < f.size {
			w.frames = cast.Aligned(f.size)
		}
		return int64(f.size), w.openzl.Decompress(w.frames[:f.size], f.data, f.width)
	}
	outs, err := w.openzl.Decode(f.data)
	for _, out := range outs {
		size += int64(len(out.Data))
	}
	return size, err
}

// asset decodes all chunks and returns the bytes of the image.
func (w *decodeWorker) asset(ctx context.Context, a catalog.Asset) (int64, error) {
	index := a.Index
	if !index.ChunkFits(w.run.o.MaxChunk) { // decoding in pieces would measure something else
		return 0, index.OverLimit(w.run.o.MaxChunk)
	}
	if err := w.prepare(index); err != nil {
		return 0, err
	}
	box := chunk.Box{B1: index.Bands, Y1: index.Height, X1: index.Width}
	return int64(len(w.row.Dst.Data)), w.reader.Read(ctx, a, box, nil, &w.row, nil)
}

// maxArray is the largest array that a file is laid out in, in bytes.
const maxArray = 4 << 30

// prepare makes the array that an image is laid out in.
func (w *decodeWorker) prepare(x *chunk.Index) error {
	shape := [3]int{x.Bands, x.Height, x.Width}
	if w.row.Plan != nil && w.shape == shape && w.row.Field.Native == x.DType {
		return nil
	}
	if int64(x.Height)*int64(x.Width) > maxArray/int64(x.Bands)/int64(x.DType.Size()) {
		return fault.New(fault.Limit, "array", "over %d bytes", int64(maxArray))
	}
	whole := spec.Field{Name: "file", DType: "native", Layout: spec.DefaultLayout}
	for b := range x.StepBands() { // alpha, too
		whole.Bands = append(whole.Bands, b)
	}
	field, err := pixels.NewRaster(whole, 0, x)
	if err != nil {
		return err
	}
	field.H, field.W = x.Height, x.Width
	row := pixels.Row{Field: field, Win: shuffle.Box{H: x.Height, W: x.Width}}
	if row.Plan, err = field.LayoutPattern.Plan(field.Axes(1), nil); err != nil {
		return err
	}
	if row.Cv, err = field.Final.Get(x, &field.PickedBands); err != nil {
		return err
	}
	row.Dst.Data = cast.Aligned(row.Plan.Len() * x.DType.Size())
	w.row, w.shape = row, shape
	return nil
}
