package loader_test

import (
	"context"
	"math"
	"testing"
	"time"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/budget"
	"github.com/chaski-eo/chaski/loader"
	"github.com/chaski-eo/chaski/loader/dryrun"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/source/diskcache"
	"github.com/chaski-eo/chaski/source/openers"
	"github.com/chaski-eo/chaski/tools/testkit/race"
)

// TestForecastsOfACacheEnd: a forecast that looks ahead ends where there is nothing to look at, and in the last epochs.
func TestForecastsOfACacheEnd(t *testing.T) {
	b := newBucket(t, 1, 2, 192, 64, 0, 1e9)
	defer b.disk.Close()
	s := loader.Spec{Source: b.catalog, BatchSize: 2, Shuffle: true, Fields: []loader.Field{{Name: "image"}},
		Sampler: loader.Sampler{Kind: "random_window", Height: 48, Width: 48, PerAsset: 3}}
	engine, err := loader.Open(t.Context(), s, loader.Options{Disk: b.disk,
		Opener: &openers.Mux{Files: &openers.Files{}, Schemes: map[string]source.Opener{"http": b.opener}}})
	if err != nil {
		t.Fatal(err)
	}
	defer engine.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	for name, o := range map[string]dryrun.Options{
		"a rank without rows": {Rank: 4, World: 5},
		"epoch 2^62":          {Epoch: 1 << 62},
		"epoch 2^63":          {Epoch: 1 << 63},
		"the last epoch":      {Epoch: math.MaxUint64},
	} {
		o.Cache = diskcache.NewSimulation(1 << 20)
		for range 2 {
			forecast, err := engine.Forecast(ctx, o)
			if err != nil {
				t.Errorf("%s: %v", name, err)
				break
			}
			cached := forecast.Cached
			if read := cached.Cache + cached.Store; cached.Epoch != o.Epoch || read != forecast.Total.Bytes {
				t.Errorf("%s: %+v of %d bytes", name, cached, forecast.Total.Bytes)
			}
			o.Epoch++
		}
	}
}

// TestForecastsPayForTheirMemory: what a forecast remembers is charged to the account of its context, and given back.
func TestForecastsPayForTheirMemory(t *testing.T) {
	race.SkipCovered(t)
	b := newBucket(t, 1, 2, 192, 64, 0, 1e9)
	defer b.disk.Close()
	s := loader.Spec{Source: b.catalog, BatchSize: 4, Fields: []loader.Field{{Name: "image"}},
		Sampler: loader.Sampler{Kind: "random_window", Height: 48, Width: 48, PerAsset: 20_000}}
	engine, err := loader.Open(t.Context(), s, loader.Options{Disk: b.disk,
		Opener: &openers.Mux{Files: &openers.Files{}, Schemes: map[string]source.Opener{"http": b.opener}}})
	if err != nil {
		t.Fatal(err)
	}
	defer engine.Close()
	for limit, kind := range map[int64]fault.Kind{4 << 20: fault.Limit, 1 << 30: 0} {
		account, err := budget.New(limit).Open(t.Context(), 0)
		if err != nil {
			t.Fatal(err)
		}
		_, err = engine.Forecast(budget.With(t.Context(), account),
			dryrun.Options{Cache: diskcache.NewSimulation(1 << 62)})
		if fault.KindOf(err) != kind || kind == 0 && err != nil || account.Held() != 0 {
			t.Errorf("with %d bytes: %v, and holds %d", limit, err, account.Held())
		}
		account.Close()
	}
}
