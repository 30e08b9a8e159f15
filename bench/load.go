package bench

import (
	"cmp"
	"context"
	"log/slog"
	"runtime"
	"slices"
	"sync/atomic"
	"time"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/cputime"
	"github.com/chaski-eo/chaski/internal/procs"
	"github.com/chaski-eo/chaski/loader"
	"github.com/chaski-eo/chaski/loader/resources"
)

// LoadOptions of Load.
type LoadOptions struct {
	// Spec of the run: dataset, fields, batch size, sampler.
	Spec loader.Spec
	// Options of the engine.
	Options loader.Options
	// Prefetch is the number of batches prepared ahead. Default loader.Engine.Prefetch.
	Prefetch int
	Rounds
}

func (o LoadOptions) withDefaults() LoadOptions {
	o.setDefaults()
	o.Options.Workers = cmp.Or(o.Options.Workers, procs.Workers())
	o.Options.Logger = cmp.Or(o.Options.Logger, slog.New(slog.DiscardHandler))
	return o
}

// Load measures the batches of a loader in this process: samples and bytes of tensors per second, CPU time, the time
// to the first batch and the waits for the others, where the time of the workers goes, allocations, and the largest
// resident memory. Epochs follow each other without end.
func Load(ctx context.Context, o LoadOptions) (*Report, error) {
	o = o.withDefaults()
	var stages resources.Stages
	o.Options.Stages = &stages
	begin := time.Now()
	engine, err := loader.Open(ctx, o.Spec, o.Options)
	if err != nil {
		return nil, err
	}
	defer engine.Close()
	o.Prefetch = cmp.Or(o.Prefetch, engine.Prefetch(1))
	l, err := loader.NewLoader(engine, loader.LoaderOptions{Prefetch: o.Prefetch})
	if err != nil {
		return nil, err
	}
	defer l.Close()
	if _, _, err := take(ctx, l); err != nil {
		return nil, err
	}
	first := time.Since(begin)
	report := &Report{Workload: "load: batches in this process", Machine: ThisMachine()}
	describeSpec(report, engine.Spec(), engine.Len())
	report.set("workers", "%d", o.Options.Workers)
	report.set("prefetch", "%d", o.Prefetch)
	report.set("rounds", "%d of %v", o.Count, o.Time)
	cache := engine.Recoded()
	// The rounds are of epochs that find all chunks: some go before, with pauses as of training steps, until an
	// epoch has no chunk to encode.
	for known := int64(-1); cache != nil && known != cache.Counts().Chunks; {
		known = cache.Counts().Chunks
		for range (engine.Len()-1)/int64(max(o.Spec.BatchSize, 1)) + 1 {
			if _, _, err := take(ctx, l); err != nil {
				return nil, err
			}
			cache.Settle()
		}
	}
	// The steady state begins when every batch buffer was used once, because the first use allocates it.
	for range o.Prefetch + 2 {
		if _, _, err := take(ctx, l); err != nil {
			return nil, err
		}
	}
	var m loadRounds
	before := stages.Spent()
	for i := range o.Count {
		if err := m.round(ctx, l, o.Time, &stages); err != nil {
			return nil, err
		}
		o.Progress(i+1, o.Count)
	}
	report.Figures = []Figure{
		newFigure("samples", "samples/s", m.samples), newFigure("tensors", "MB/s", m.mb),
		newFigure("allocations", "a sample", m.perSample), newFigure("allocations", "a chunk", m.perChunk),
		newFigure("allocated", "bytes a sample", m.bytesPerSample),
		newFigure("cpu", "ms a sample", m.cpu),
		newFigure("max rss", "MB", []float64{float64(maxRSS()) / 1e6}),
		newFigure("first batch", "ms", []float64{float64(first) / 1e6}),
	}
	if cache != nil {
		counts := cache.Counts()
		report.set("recoded", "%d chunks in %d bytes, %d refused, %d times decoded", counts.Chunks, counts.Bytes,
			counts.Refused, counts.Used)
	}
	report.Figures = append(report.Figures, m.waits.figures()...)
	report.Stages = stageTimes(before, stages.Spent(), m.rows)
	return report, nil
}

// describeSpec adds the parts of a spec that a measurement depends on to the settings.
func describeSpec(r *Report, s loader.Spec, n int64) {
	r.set("dataset", "%s", fault.WithoutSecrets(s.Source))
	r.set("samples an epoch", "%d", n)
	r.set("batch", "%d", s.BatchSize)
	if s.Sampler.Height > 0 {
		r.set("window", "%dx%d (%s)", s.Sampler.Height, s.Sampler.Width, s.Sampler.Kind)
	} else {
		r.set("window", "whole chip")
	}
	for _, f := range s.Fields {
		r.set("field "+f.Name, "%s %q normalised %t", f.DType, cmp.Or(f.Layout, "default"), f.Normalize != nil)
	}
	r.set("shuffle", "%t", s.Shuffle)
}

type loadRounds struct {
	samples, mb, perSample, perChunk, bytesPerSample []float64
	cpu                                              []float64

	waits   waitRounds
	current waits // of the current round
	rows    int64 // of all rounds
}

func (m *loadRounds) round(ctx context.Context, l *loader.Loader, d time.Duration, stages *resources.Stages) error {
	var before, after runtime.MemStats
	// Grown before the counters are read, so the measurement does not count its own allocations.
	m.current = slices.Grow(m.current[:0], 1<<14)
	runtime.ReadMemStats(&before)
	chunks, _ := stages.Decoded()
	var rows, bytes int64
	cpu, start := cputime.Used(), time.Now()
	for rows == 0 || time.Since(start) < d {
		began := time.Now()
		r, b, err := take(ctx, l)
		if err != nil {
			return err
		}
		m.current = append(m.current, time.Since(began))
		rows, bytes = rows+r, bytes+b
	}
	t := time.Since(start).Seconds()
	cpu = cputime.Used() - cpu
	runtime.ReadMemStats(&after)
	decoded, _ := stages.Decoded()
	m.waits.add(m.current)
	m.rows += rows
	m.cpu = append(m.cpu, float64(cpu)/1e6/float64(rows))
	n := float64(rows)
	m.samples = append(m.samples, n/t)
	m.mb = append(m.mb, float64(bytes)/1e6/t)
	m.perSample = append(m.perSample, float64(after.Mallocs-before.Mallocs)/n)
	m.bytesPerSample = append(m.bytesPerSample, float64(after.TotalAlloc-before.TotalAlloc)/n)
	m.perChunk = append(m.perChunk, float64(after.Mallocs-before.Mallocs)/float64(max(decoded-chunks, 1)))
	return nil
}

// take takes one batch, reads from every tensor and releases the batch. It returns the number of valid rows and their
// bytes.
func take(ctx context.Context, l *loader.Loader) (rows, bytes int64, err error) {
	batch, err := l.Next(ctx)
	if err != nil {
		return 0, 0, err
	}
	defer batch.Release()
	for _, ok := range batch.Valid {
		if ok {
			rows++
		}
	}
	for _, tensor := range batch.Tensors {
		bytes += int64(len(tensor.Data))
		if len(tensor.Data) > 0 {
			touched.Add(uint64(tensor.Data[len(tensor.Data)/2]))
		}
	}
	// Rows of padding do not count: workers decode nothing for them.
	return rows, bytes * rows / int64(len(batch.Valid)), nil
}

// touched uses what take reads: the compiler would otherwise remove the reads.
var touched atomic.Uint64
