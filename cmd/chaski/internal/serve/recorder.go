package serve

import (
	"context"
	"log/slog"
	"sync"

	"github.com/chaski-eo/chaski/cmd/chaski/internal/console"
	"github.com/chaski-eo/chaski/cmd/chaski/internal/quarantine"
	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/grpc/server"
	"github.com/chaski-eo/chaski/loader"
	"github.com/chaski-eo/chaski/loader/batch"
	"github.com/chaski-eo/chaski/shuffle"
)

// recorder appends the bad samples that a server meets to the list of --quarantine. Without a list it does
// nothing.
type recorder struct {
	list *quarantine.Writer
	name string
	log  *slog.Logger
	once sync.Once // logs only the first failure to write, because a full disk would fail for each sample
}

// openQuarantine opens the list, or returns a recorder without one if name is empty.
func openQuarantine(name string, log *slog.Logger) (*recorder, error) {
	r := &recorder{name: name, log: log}
	if name == "" {
		return r, nil
	}
	var err error
	r.list, err = quarantine.Open(name)
	return r, console.FileError(name, err)
}

// planned has the methods of an engine that a recorder needs. *loader.Engine implements it; engines of
// tests need not.
type planned interface {
	Sources() []batch.SourceInfo
	ID(ctx context.Context, dataset int, row int64) (string, error)
}

// hook returns the function that the server calls for each batch with bad samples and for each sample that
// ends a stream, or nil without a list.
func (r *recorder) hook() func(server.Engine, *batch.Batch, *loader.SampleError) {
	if r.list == nil {
		return nil
	}
	return func(e server.Engine, b *batch.Batch, failed *loader.SampleError) {
		p, ok := e.(planned)
		if !ok {
			return
		}
		if failed != nil {
			if fault.KindOf(failed.Err) != 0 {
				r.add(e, p, failed.Draw, failed.Err)
			}
			return
		}
		for _, bad := range b.Bad {
			rec := quarantine.New(e.Fingerprint(), bad.Err)
			rec.Source, rec.Instead = bad.Source, bad.Instead
			if s := bad.Sample; s != nil {
				rec.Row, rec.Sample, rec.ID = &s.Row, &s.Index, s.ID
			}
			r.failed(r.list.Add(rec))
		}
	}
}

// add records the sample that ended a stream.
func (r *recorder) add(e server.Engine, p planned, d shuffle.Draw, err error) {
	rec := quarantine.New(e.Fingerprint(), err)
	rec.Row, rec.Sample = &d.Row, &d.Sample
	rec.ID, _ = p.ID(context.Background(), d.Dataset, d.Row) // without an id, the row identifies the sample
	for _, sourceInfo := range p.Sources() {
		for _, i := range sourceInfo.Datasets {
			if i == d.Dataset {
				rec.Source = sourceInfo.Name
			}
		}
	}
	r.failed(r.list.Add(rec))
}

// failed logs the first failure to write. A list that cannot be written is no reason to stop serving.
func (r *recorder) failed(err error) {
	if err != nil {
		r.once.Do(func() { r.log.Error("quarantine", "file", r.name, "error", err) })
	}
}

// close writes the rest of the list and closes it.
func (r *recorder) close() {
	if r.list == nil {
		return
	}
	r.failed(r.list.Close())
	if n := r.list.Lost(); n > 0 {
		r.log.Warn("quarantine: the list has no room for more bad samples", "file", r.name, "lost", n)
	}
}
