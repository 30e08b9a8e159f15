package server

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/grpc/internal/wire"
	"github.com/chaski-eo/chaski/internal/budget"
	"github.com/chaski-eo/chaski/internal/crash"
	"github.com/chaski-eo/chaski/loader/dryrun"
	chaskiv1 "github.com/chaski-eo/chaski/proto/chaski/v1"
	"github.com/chaski-eo/chaski/shuffle/steps"
	"github.com/chaski-eo/chaski/source/diskcache"
)

// maxPlanned is the most epochs of a PlanRequest: more than a training has.
const maxPlanned = 1 << 14

// Plan implements chaski.v1.Chaski. The server plans, and not the client, because the files may be visible to the
// server alone.
func (s *Server) Plan(ctx context.Context, r *chaskiv1.PlanRequest) (*chaskiv1.PlanReply, error) {
	leave, err := s.place(ctx, s.plans)
	if err != nil {
		return nil, failed(err)
	}
	defer leave()
	// Stopping ends a plan, since it must not wait for long answers.
	ctx, cancel := s.whileServing(ctx)
	defer cancel()
	account, err := s.options.Loader.Budget.Open(ctx, maxRequest)
	if err != nil {
		return nil, failed(err)
	}
	defer account.Close()
	var reply chaskiv1.PlanReply
	err = crash.Call(func() (err error) {
		reply.Json, err = s.plan(budget.With(ctx, account), r)
		return err
	})
	crash.Report(s.options.Logger, err)
	switch {
	case err == nil:
		return &reply, nil
	case s.serving.Err() != nil:
		return nil, failed(errStopping)
	}
	return nil, failed(askedWrong(err))
}

// plan returns what a cache saves. The dataset is open already, since its streams use it.
func (s *Server) plan(ctx context.Context, r *chaskiv1.PlanRequest) ([]byte, error) {
	if r.GetEpochs() > maxPlanned {
		return nil, invalid{fmt.Errorf("a plan has at most %d epochs, not %d", maxPlanned, r.GetEpochs())}
	}
	entry, ok := s.engines.get(s.viewOf(ctx), r.GetHandle())
	if !ok {
		return nil, wire.ErrUnknownSpec
	}
	defer s.engines.put(entry)
	engine, ok := entry.engine.(interface {
		Forecast(ctx context.Context, options dryrun.Options) (*dryrun.Forecast, error)
	})
	if !ok {
		return nil, fault.New(fault.Unsupported, "plan", "the data are at other servers, which plan")
	}
	options := dryrun.Options{Epoch: r.GetFirstEpoch(), Rank: int(r.GetRank()), World: int(r.GetWorldSize()),
		Cache: diskcache.NewSimulation(r.GetCacheBytes())}
	for _, w := range r.GetWeights() {
		file := w.GetWeights()
		options.Weights = append(options.Weights, steps.Change{Path: file.GetPath(), Hash: file.GetHash(),
			Once: file.GetOnce(), Epoch: w.GetEpoch(), Samples: w.GetSamples()})
	}
	epochs := []dryrun.CachedEpoch{}
	for range r.GetEpochs() {
		forecast, err := engine.Forecast(ctx, options)
		if err != nil {
			return nil, err
		}
		if forecast.Cached.Cache+forecast.Cached.Store == 0 {
			break
		}
		epochs = append(epochs, forecast.Cached)
		options.Epoch++
	}
	return json.Marshal(epochs)
}
