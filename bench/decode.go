package bench

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/chaski-eo/chaski/chunk"
	"github.com/chaski-eo/chaski/codec/geozl"
	"github.com/chaski-eo/chaski/codec/openzl"
	"github.com/chaski-eo/chaski/einops"
	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/cast"
	"github.com/chaski-eo/chaski/internal/cputime"
	"github.com/chaski-eo/chaski/internal/procs"
	"github.com/chaski-eo/chaski/loader/pixels"
	"github.com/chaski-eo/chaski/loader/resources"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store/catalog"
	"github.com/chaski-eo/chaski/tiff"
)

// DecodeOptions of Decode.
type DecodeOptions struct {
	// Workers is how many files to decode at the same time. Default: the number of processors.
	Workers int
	// Rounds of at least Time each. Default 5 of 1 s.
	Rounds int
	Time   time.Duration
	// Opened opens files and reads their headers before the measurement.
	Opened bool
	// MaxChunk is the largest decoded chunk, in bytes. Default tiff.DefaultMaxChunk.
	MaxChunk int
	// Progress is called after every round.
	Progress func(done, total int)
}

func (o DecodeOptions) withDefaults() DecodeOptions {
	o.Workers = cmp.Or(o.Workers, procs.Workers())
	o.Rounds = cmp.Or(o.Rounds, 5)
	o.Time = cmp.Or(o.Time, time.Second)
	o.MaxChunk = cmp.Or(o.MaxChunk, tiff.DefaultMaxChunk)
	return o
}

func (o DecodeOptions) validate() error {
	if o.Workers < 1 || o.Rounds < 1 || o.Time < 0 || o.MaxChunk < 1 {
		return fmt.Errorf("bench: workers is %d, rounds %d, the time %v and max-chunk %d: all must be positive",
			o.Workers, o.Rounds, o.Time, o.MaxChunk)
	}
	return nil
}

// Decode measures the decoding of whole files, again and again in the order of paths. The samples of the report are
// files.
func Decode(ctx context.Context, paths []string, o DecodeOptions) (*Report, error) {
	o = o.withDefaults()
	if err := o.validate(); err != nil {
		return nil, err
	}
	if len(paths) == 0 {
		return nil, fmt.Errorf("bench: there is no file to decode")
	}
	d := &decodeRun{o: o, paths: paths, files: &source.Files{Keep: len(paths) + o.Workers}}
	defer d.files.Close()
	for range o.Workers {
		d.workers = append(d.workers, newDecodeWorker(d))
	}
	if err := d.warm(ctx); err != nil {
		return nil, err
	}
	report := &Report{Workload: "decode: whole files", Machine: ThisMachine()}
	report.set("files", "%d", len(paths))
	report.set("opening", "%t", !o.Opened)
	report.set("workers", "%d", o.Workers)
	report.set("rounds", "%d of %v", o.Rounds, o.Time)
	var mb, samples, cpu []float64
	var files int64
	for i := range o.Rounds {
		used := cputime.Used()
		n, bytes, duration, err := d.round(ctx)
		if err != nil {
			return nil, err
		}
		files += n
		mb = append(mb, float64(bytes)/1e6/duration.Seconds())
		samples = append(samples, float64(n)/duration.Seconds())
		cpu = append(cpu, float64(cputime.Used()-used)/1e6/float64(n))
		if o.Progress != nil {
			o.Progress(i+1, o.Rounds)
		}
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
	files   *source.Files
	assets  []catalog.Asset // with Opened
	frames  []frame         // of the paths that are frames
	workers []*decodeWorker
	stages  resources.Stages
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
	data, err := d.read(ctx, d.paths[i])
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

func (d *decodeRun) read(ctx context.Context, path string) ([]byte, error) {
	file, err := d.files.Open(ctx, path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	data := make([]byte, file.Size())
	return data, file.ReadAt(ctx, data, 0)
}

// round decodes files until the time is over. It counts every file that was begun, and the time until the last one
// is done.
func (d *decodeRun) round(ctx context.Context) (files, bytes int64, t time.Duration, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	// Workers take files from one counter, so that none idles while others have files left.
	var next, done, sum atomic.Int64
	start := time.Now()
	var wg sync.WaitGroup
	for _, w := range d.workers {
		wg.Go(func() {
			w.clock = d.stages.Clock()
			defer w.clock.Stop()
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

// decodeWorker decodes one file at a time into memory of its own.
type decodeWorker struct {
	run     *decodeRun
	decoder *chunk.Decoder
	openzl  *openzl.Decoder  // of loose frames
	clock   *resources.Clock // of a round
	plan    chunk.RunPlan
	stored  []byte
	pixels  []byte
	out     []byte
	target  target
}

// target is the array that an asset is laid out in, and the plan for it. It is reused for assets of the same shape
// and dtype.
type target struct {
	shape   [3]int
	dtype   chunk.DType
	plan    *einops.Plan
	convert *einops.Converter
}

func newDecodeWorker(d *decodeRun) *decodeWorker {
	w := &decodeWorker{run: d, decoder: chunk.NewDecoder(pixels.Codecs())}
	w.openzl = openzl.NewDecoder(openzl.Options{MaxOutput: d.o.MaxChunk, Custom: geozl.Codecs()})
	w.decoder.Decompressed = func() { w.clock.Lap(resources.StageDecode) }
	return w
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
		w.clock.Lap(resources.StageOther)
		f.data, err = w.run.read(ctx, w.run.paths[i])
		if w.clock.Lap(resources.StageRead); err != nil {
			return 0, err
		}
	}
	defer w.clock.Lap(resources.StageDecode)
	if f.width > 0 {
		if cap(w.pixels) < f.size {
			w.pixels = cast.Aligned(f.size)
		}
		return int64(f.size), w.openzl.Decompress(w.pixels[:f.size], f.data, f.width)
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
	file, err := w.run.files.Open(ctx, a.URI)
	if err != nil {
		return 0, err
	}
	defer file.Close()
	if err := index.Validate(file.Size(), w.run.o.MaxChunk); err != nil {
		return 0, err
	}
	if !index.ChunkFits(w.run.o.MaxChunk) { // decoding in pieces would measure something else
		return 0, index.OverLimit(w.run.o.MaxChunk)
	}
	if n := index.MaxStoredBytes() + chunk.Spare; cap(w.pixels) < n {
		w.pixels = cast.Aligned(n)
	}
	if err := w.prepare(index); err != nil {
		return 0, err
	}
	// The gap and the length of a read are the engine's, since a benchmark of other reads would say little
	// about a run.
	const maxRun = 4 << 20
	w.plan.Reset(index, chunk.Box{B1: index.Bands, Y1: index.Height, X1: index.Width}, nil, source.DefaultGap, maxRun)
	for _, run := range w.plan.Runs {
		w.stored = slices.Grow(w.stored[:0], int(run.Len))[:run.Len]
		w.clock.Lap(resources.StageOther)
		err := file.ReadAt(ctx, w.stored, run.Off)
		w.clock.Lap(resources.StageRead)
		if err != nil {
			return 0, err
		}
		for _, i := range run.Chunks {
			p := index.Place(i)
			if err := w.chunk(index, i, w.stored[p.Off-run.Off:][:p.Len]); err != nil {
				return 0, err
			}
		}
	}
	for _, i := range w.plan.Sparse {
		if err := w.chunk(index, i, nil); err != nil {
			return 0, err
		}
	}
	return int64(index.Bands) * int64(index.Height) * int64(index.Width) * int64(index.DType.Size()), nil
}

// maxArray is the largest array that a file is laid out in, in bytes.
const maxArray = 4 << 30

// prepare makes the array that an image is laid out in.
func (w *decodeWorker) prepare(x *chunk.Index) error {
	shape := [3]int{x.Bands, x.Height, x.Width}
	if w.target.plan != nil && w.target.shape == shape && w.target.dtype == x.DType {
		return nil
	}
	if int64(x.Height)*int64(x.Width) > maxArray/int64(x.Bands)/int64(x.DType.Size()) {
		return fault.New(fault.Limit, "array", fault.NoOffset, "over %d bytes", int64(maxArray))
	}
	pattern, err := einops.Parse("b y x")
	if err != nil {
		return err
	}
	w.target = target{shape: shape, dtype: x.DType}
	axes := []einops.Axis{{Name: "b", Len: x.Bands}, {Name: "y", Len: x.Height}, {Name: "x", Len: x.Width}}
	if w.target.plan, err = pattern.Plan(axes, nil); err != nil {
		return err
	}
	convert := einops.Convert{From: x.DType, To: x.DType}
	if w.target.convert, err = einops.NewConverter(convert); err != nil {
		w.target.plan = nil
		return fault.Wrap(fault.Unsupported, "cast", fault.NoOffset, err)
	}
	if n := w.target.plan.Len() * x.DType.Size(); cap(w.out) < n {
		w.out = cast.Aligned(n)
	} else {
		w.out = w.out[:n]
	}
	return nil
}

func (w *decodeWorker) chunk(x *chunk.Index, i int, stored []byte) error {
	pixels := x.AsStored(stored, i)
	if pixels == nil {
		pixels = w.pixels[:x.StoredBytes(i)]
		if err := w.decoder.Decode(pixels, stored, x, i); err != nil {
			return fault.AtOffset(err, x.Ranges[i].Off)
		}
	}
	w.clock.Lap(resources.StagePredictor)
	box := x.Box(i)
	strides := x.Strides(i)
	blk := einops.Block{DType: x.DType, StrideB: strides.B, StrideY: strides.Y, StrideX: strides.X}
	dst := einops.Box{B0: box.B0, B1: box.B1, Y0: box.Y0, Y1: box.Y1, X0: box.X0, X1: box.X1}
	for b := 0; b < box.B1-box.B0; b += strides.Bands { // the planes of one step of time
		blk.Data = pixels[strides.Plane(b)*x.DType.Size():]
		dst.B0, dst.B1 = box.B0+b, box.B0+min(b+strides.Bands, box.B1-box.B0)
		w.target.plan.Scatter(einops.Target{Data: w.out}, w.target.convert, dst, blk)
	}
	w.clock.Lap(resources.StageScatter)
	return nil
}
