package server

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/grpc/internal/wire"
	"github.com/chaski-eo/chaski/internal/budget"
	"github.com/chaski-eo/chaski/internal/ops/paste"
	"github.com/chaski-eo/chaski/loader"
	"github.com/chaski-eo/chaski/loader/dryrun"
	"github.com/chaski-eo/chaski/loader/survey"
	chaskiv1 "github.com/chaski-eo/chaski/proto/chaski/v1"
	"github.com/chaski-eo/chaski/shuffle"
	"github.com/chaski-eo/chaski/source/diskcache"
	"github.com/chaski-eo/chaski/store/catalog"
)

// index answers with the header blobs of files, or with the content of one.
func (q *asking) index(m *chaskiv1.IndexQuestion) error {
	if len(m.GetHeader()) > 0 {
		return q.rumiBlob(m.GetHeader())
	}
	if m.GetFile() != "" {
		return q.rumiFile(m.GetFile())
	}
	options := q.view.options
	out := &chaskiv1.Blobs{}
	for _, path := range m.GetPaths() {
		_, meta, err := catalog.OpenAsset(q.ctx, options.Opener, path, options.MaxChunkBytes)
		if err != nil {
			return err
		}
		blob, err := meta.Header()
		if err != nil {
			return fault.WithFile(err, path)
		}
		if err := budget.Grow(q.ctx, int64(len(blob))); err != nil {
			return err
		}
		out.Blobs = append(out.Blobs, blob)
	}
	return q.message(out)
}

// stats answers with the statistics of a dataset.
func (q *asking) stats(m *chaskiv1.StatsQuestion) error {
	text, err := q.readAll(m.GetSpec(), maxText, textCost)
	if err != nil {
		return err
	}
	measured, err := loader.ParseMeasured(text)
	if err != nil {
		return invalid{err}
	}
	options := q.view.options
	if n := m.GetWorkers(); n > 0 {
		options.Workers = min(options.Workers, int(min(n, math.MaxInt32)))
	}
	report, err := survey.Stats(q.ctx, measured, options, q.progress)
	if err != nil {
		return err
	}
	return json.NewEncoder(q.out).Encode(report)
}

// maxPlanned is the most epochs of a PlanQuestion: more than a training has.
const maxPlanned = 1 << 14

// plan answers with what a cache saves. The dataset is open already, since its streams use it.
func (q *asking) plan(m *chaskiv1.PlanQuestion) error {
	if m.GetEpochs() > maxPlanned {
		return invalid{fmt.Errorf("a plan has at most %d epochs, not %d", maxPlanned, m.GetEpochs())}
	}
	engines := q.server.engines
	entry, ok := engines.get(q.view, m.GetHandle())
	if !ok {
		return wire.ErrUnknownSpec
	}
	defer engines.put(entry)
	engine, ok := entry.engine.(interface {
		Steps() int64
		Forecast(ctx context.Context, options dryrun.Options) (*dryrun.Forecast, error)
	})
	if !ok {
		return fault.New(fault.Unsupported, "plan", fault.NoOffset, "the data are at other servers, which plan")
	}
	options := dryrun.Options{Epoch: m.GetFirstEpoch(), Rank: int(m.GetRank()), World: int(m.GetWorldSize()),
		Cache: diskcache.NewSimulation(m.GetCacheBytes())}
	steps := engine.Steps() * int64(m.GetEpochs())
	epochs := []dryrun.CachedEpoch{}
	for k := range int64(m.GetEpochs()) {
		options.Progress = func(done, _ int64) { q.progress(k*engine.Steps()+done, steps) }
		forecast, err := engine.Forecast(q.ctx, options)
		if err != nil {
			return err
		}
		if forecast.Cached.Cache+forecast.Cached.Store == 0 {
			break
		}
		epochs = append(epochs, forecast.Cached)
		options.Epoch++
	}
	return json.NewEncoder(q.out).Encode(epochs)
}

// paste answers with a raster of predictions.
func (q *asking) paste(m *chaskiv1.PasteQuestion) error {
	o := q.view.options
	options := paste.Options{
		Blend: paste.Blend(m.GetBlend()), Argmax: m.GetArgmax(), MaxBytes: q.server.options.MaxPasteBytes,
		Grid: shuffle.Grid{
			H: int(m.GetHeight()), W: int(m.GetWidth()), StrideY: int(m.GetStrideY()), StrideX: int(m.GetStrideX()),
			AlignY: 1, AlignX: 1, Pad: m.GetPad(),
		},
	}
	var write func(io.Writer) error
	var err error
	if ground := m.GetGround(); ground != nil {
		options.Bands = int(m.GetBands())
		options.Height, options.Width = int(ground.GetHeight()), int(ground.GetWidth())
		grid := paste.GroundGrid{EPSG: int(ground.GetEpsg()), West: ground.GetWest(), North: ground.GetNorth(),
			Resolution: ground.GetResolution()}
		write, err = paste.Ground(q.ctx, q.in, "predictions", grid, options, o.Workers)
	} else {
		write, err = paste.Scene(q.ctx, o.Opener, m.GetScene(), q.in, "predictions", options, o.Workers)
	}
	if err != nil {
		return err
	}
	return write(q.out)
}
