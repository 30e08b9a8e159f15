package loader

import (
	"context"
	"errors"
	"slices"

	"github.com/chaski-eo/chaski/internal/budget"
	"github.com/chaski-eo/chaski/internal/crash"
	"github.com/chaski-eo/chaski/loader/dryrun"
	"github.com/chaski-eo/chaski/loader/rows"
	"github.com/chaski-eo/chaski/shuffle/steps"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store/catalog"
)

// Open opens the spec's dataset and compiles its fields. Errors about files are fault errors;
// errors about the spec have no kind.
func Open(ctx context.Context, spec Spec, o Options) (*Engine, error) {
	spec.AllFields = spec.AllFields || len(spec.Fields) == 0
	spec = spec.WithDefaults()
	if err := spec.Validate(); err != nil {
		return nil, err
	}
	o = o.WithDefaults()
	if err := o.Validate(); err != nil {
		return nil, err
	}
	account, err := openAccount(ctx, &o, &spec)
	if err != nil {
		o.CloseOpener()
		return nil, err
	}
	ctx = catalog.Share(budget.With(ctx, account))
	err = crash.Call(func() (err error) {
		spec, err = rows.WithOwnFields(ctx, spec, o)
		return err
	})
	if err != nil {
		account.Close()
		crash.Report(o.Logger, err)
		o.CloseOpener()
		return nil, err
	}
	engine, err := openEngine(ctx, spec, o, func(ctx context.Context, src Source, fields []Field) (*rows.Table, error) {
		return rows.Open(ctx, src, fields, o)
	})
	if err != nil {
		crash.Report(o.Logger, err)
		o.CloseOpener()
		defer account.Close()
		return nil, errors.Join(err, engine.closeTables())
	}
	engine.lookAhead()
	return engine, nil
}

// lookAhead lets the engine say to the cache on disk what is read next, if it has one and that helps.
func (e *Engine) lookAhead() {
	if e.options.Disk == nil || !e.repeats() {
		return
	}
	ahead := &lookahead{cache: e.options.Disk, samples: e.samples, steps: e.Steps(), batch: int64(e.spec.BatchSize),
		look: e.announcing, work: e.done.Go, log: e.options.Logger}
	ahead.ctx, ahead.stop = context.WithCancel(context.Background())
	e.ahead = ahead
}

// announcing returns what announces the reads of a step, or nil.
func (e *Engine) announcing(ctx context.Context, of steps.Ticket, expect expect) (announceStep, error) {
	if foresees, err := e.foresees(ctx); !foresees || err != nil {
		return nil, err
	}
	dry := e.newDryRun(dryrun.Options{Rank: of.RowStart, World: of.RowStride})
	dry.reads = func(position int64, a *dryrun.Asset, runs []dryrun.Range) {
		at := place(e.samples, dry.options.Epoch, position)
		for _, run := range runs {
			expect(at, a.Object, source.Range{Off: a.Start + run.Off, Len: run.Len})
		}
	}
	return func(ctx context.Context, epoch uint64, step int64) {
		dry.options.Epoch = epoch
		_ = dry.announce(ctx, step) // what cannot be explained is for a worker to report
	}, nil
}

// repeats reports whether an epoch may read a range several times. Otherwise the first ranges that a cache has are as
// good as any others.
func (e *Engine) repeats() bool {
	different := int64(0)
	for i := range e.leaves {
		different += e.plan.DatasetLen(i)
	}
	return slices.ContainsFunc(e.sets, func(d *dataset) bool {
		once := d.sampler.PerAsset == 1 && !d.byTile()
		again := d.steps > 0 || d.weights != nil || e.samples > different
		return d.remote && (again || !once)
	})
}

// foresees reports whether a cache on disk is told what is read next: if ranges are read several times in an epoch, and
// a catalog knows the files, so that looking ahead takes no requests. The first samples stand for all.
func (e *Engine) foresees(ctx context.Context) (bool, error) {
	if !e.repeats() {
		return false, nil
	}
	known := true
	run := e.newDryRun(dryrun.Options{World: 1})
	run.reads = func(_ int64, a *dryrun.Asset, _ []dryrun.Range) { known = known && a.Known }
	for step := range min(e.Steps(), 4) {
		if err := run.announce(ctx, step); err != nil {
			return false, err
		}
	}
	return known, nil
}
