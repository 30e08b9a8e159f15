package server

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/grpc/report"
	"github.com/chaski-eo/chaski/loader"
	"github.com/chaski-eo/chaski/loader/pixels"
	"github.com/chaski-eo/chaski/loader/resources"
	chaskiv1 "github.com/chaski-eo/chaski/proto/chaski/v1"
)

// Report implements chaski.v1.Chaski. Clients are told of datasets that they may open.
func (s *Server) Report(ctx context.Context, r *chaskiv1.ReportRequest) (*chaskiv1.ReportReply, error) {
	old, err := report.Parse(r.GetSince())
	if err != nil {
		return nil, failed(invalid{err})
	}
	client, view := clientOf(ctx), s.viewOf(ctx)
	var now report.Figures
	s.engines.mu.Lock()
	open := slices.Collect(maps.Keys(s.engines.live))
	s.engines.mu.Unlock()
	for _, dataset := range open {
		if dataset.view == view {
			now.Join(figuresOf(ctx, dataset, client))
		}
	}
	if cache := s.options.Cache; cache != nil && len(now.Ranks) > 0 {
		stats := cache.Stats()
		now.Cache = &report.DiskCache{FromCache: stats.HitBytes, FromStore: stats.StoreBytes, Used: cache.Used(),
			Quota: cache.Quota()}
	}
	now.Seconds = time.Since(s.started).Seconds()
	slices.SortFunc(now.Ranks, func(a, b report.Rank) int {
		return cmp.Or(cmp.Compare(a.Data, b.Data), cmp.Compare(a.World, b.World), cmp.Compare(a.Rank, b.Rank),
			cmp.Compare(a.Client, b.Client))
	})
	figures, err := json.Marshal(now)
	if err != nil {
		return nil, failed(err)
	}
	return &chaskiv1.ReportReply{Table: now.Since(old).Table(), Figures: figures}, nil
}

// figuresOf returns what a client may know about the ranks of a dataset: nothing if all of them belong to
// others.
func figuresOf(ctx context.Context, e *datasetEntry, client clientID) (f report.Figures) {
	for _, rank := range e.counts.of(client) {
		rank.Data, rank.Source = e.handle, fault.WithoutSecrets(placeOf(e.engine.Spec()))
		f.Ranks = append(f.Ranks, rank)
	}
	engine, ok := e.engine.(interface {
		Slow() ([]resources.SourceTime, []resources.RasterTime)
	})
	if len(f.Ranks) > 0 && e.remote {
		through(ctx, e.engine, &f)
	}
	if len(f.Ranks) == 0 || !ok {
		return f
	}
	sources, slowest := engine.Slow()
	for _, source := range sources {
		f.Sources = append(f.Sources, report.Source{Data: e.handle, Name: fault.WithoutSecrets(source.Source),
			Rasters: source.Rasters, Read: source.Read.Seconds(), Decode: source.Decode.Seconds()})
	}
	if engine, ok := e.engine.(interface{ Recoded() *pixels.Recoded }); ok && engine.Recoded() != nil {
		counts := engine.Recoded().Counts()
		f.Recoded = []report.Recoded{{Data: e.handle, Bytes: counts.Bytes, Used: counts.Used, Missed: counts.Missed}}
	}
	for _, raster := range slowest {
		f.Slowest = append(f.Slowest, report.Raster{ID: fault.WithoutSecrets(raster.ID), Field: raster.Field,
			Read: raster.Read.Seconds(), Decode: raster.Decode.Seconds()})
	}
	return f
}

// through adds what the servers know that the batches come from. Those that do not answer leave the wait to transport.
func through(ctx context.Context, e Engine, f *report.Figures) {
	upstream, ok := e.(interface {
		Report(ctx context.Context) (report.Figures, error)
	})
	if !ok {
		return
	}
	servers, _ := upstream.Report(ctx) // an error is of one that is gone, perhaps, while others answer
	for i := range f.Ranks {
		f.Ranks[i].Through(servers)
	}
	f.Sources, f.Slowest, f.Recoded = servers.Sources, servers.Slowest, servers.Recoded
}

// placeOf returns where the data of a spec lie.
func placeOf(s loader.Spec) string {
	if len(s.Sources) == 0 {
		return s.Source
	}
	names := make([]string, len(s.Sources))
	for i := range s.Sources {
		names[i] = cmp.Or(s.Sources[i].Name, s.Sources[i].Source)
	}
	return strings.Join(names, ", ")
}
