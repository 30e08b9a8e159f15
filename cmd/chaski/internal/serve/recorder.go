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
	"github.com/chaski-eo/chaski/shuffle"
)

// recorder appends what a server meets to a list. The zero value does nothing.
type recorder struct {
	list *quarantine.Writer
	name string
	log  *slog.Logger
	once sync.Once // for the first failure to write
}

func openQuarantine(name string, log *slog.Logger) (*recorder, error) {
	r := &recorder{name: name, log: log}
	if name == "" {
		return r, nil
	}
	var err error
	r.list, err = quarantine.Open(name)
	return r, console.FileError(name, err)
}

// planned is what a recorder needs of an engine. *loader.Engine is one.
type planned interface {
	Sources() []loader.SourceInfo
	ID(ctx context.Context, dataset int, row int64) (string, error)
}

// hook returns what a server calls, or nil.
func (r *recorder) hook() func(server.Engine, *loader.Batch, *loader.SampleError) {
	if r.list == nil {
		return nil
	}
	return func(e server.Engine, b *loader.Batch, failed *loader.SampleError) {
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

func (r *recorder) add(e server.Engine, p planned, d shuffle.Draw, err error) {
	rec := quarantine.New(e.Fingerprint(), err)
	rec.Row, rec.Sample = &d.Row, &d.Sample
	rec.ID, _ = p.ID(context.Background(), d.Dataset, d.Row) // without it, the row says which it is
	for _, s := range p.Sources() {
		for _, i := range s.Datasets {
			if i == d.Dataset {
				rec.Source = s.Name
			}
		}
	}
	r.failed(r.list.Add(rec))
}

// failed tells of the first failure to write: a list is no reason to stop serving.
func (r *recorder) failed(err error) {
	if err != nil {
		r.once.Do(func() { r.log.Error("quarantine", "file", r.name, "error", err) })
	}
}

func (r *recorder) close() {
	if r.list == nil {
		return
	}
	r.failed(r.list.Close())
	if n := r.list.Lost(); n > 0 {
		r.log.Warn("quarantine: more bad samples than the list has room for", "file", r.name, "lost", n)
	}
}
