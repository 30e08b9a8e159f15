package loader

import (
	"context"
	"errors"
	"slices"

	"github.com/chaski-eo/chaski/internal/budget"
	"github.com/chaski-eo/chaski/internal/crash"
	"github.com/chaski-eo/chaski/loader/rows"
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
	engine.announces = slices.ContainsFunc(engine.sets, func(d *dataset) bool { return d.table.Announces() })
	return engine, nil
}

// lookAhead lets the engine say to the cache on disk what is read next, if it has one and that helps.
func (e *Engine) lookAhead() {
	if e.options.Disk == nil || !e.repeats(true) {
		return
	}
	ahead := &lookahead{cache: e.options.Disk, samples: e.samples, steps: e.Steps(), batch: int64(e.spec.BatchSize),
		repeats: e.repeats(false), look: e.announcing, work: e.done.Go, log: e.options.Logger}
	ahead.ctx, ahead.stop = context.WithCancel(context.Background())
	e.ahead = ahead
}
