package loader_test

import (
	"bytes"
	"errors"
	"io"
	"testing"

	"github.com/chaski-eo/chaski/loader"
	"github.com/chaski-eo/chaski/loader/dryrun"
	"github.com/chaski-eo/chaski/loader/spec"
	"github.com/chaski-eo/chaski/shuffle"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/source/diskcache"
)

// TestDiskCacheHoldsItsForecast: with a cache on disk for a third of the data, each epoch takes the bytes from the
// store that the forecast says, within 2 %, and its batches are those without a cache.
func TestDiskCacheHoldsItsForecast(t *testing.T) {
	for name, sampler := range map[string]spec.Sampler{
		"chips":   {},
		"windows": {Kind: spec.RandomWindow, PerAsset: 4, Height: 48, Width: 48},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBucket(t, 48, 2, 192, 64, 0, 1e9)
			defer b.disk.Close()
			engine, err := loader.Open(t.Context(), loader.Spec{Source: b.catalog, BatchSize: 8, Shuffle: true,
				Sampler: sampler, Fields: []loader.Field{{Name: "image", DType: "native"}}}, loader.Options{
				Opener: &source.Mux{Files: &source.Files{}, Schemes: map[string]source.Opener{"s3": b.opener}}})
			if err != nil {
				t.Fatal(err)
			}
			defer engine.Close()
			const epochs = 3
			var want [epochs][]byte
			var state *shuffle.State
			for k := range want {
				want[k], state = epochBytes(t, engine, uint64(k), state)
			}

			quota := b.bytes / 3
			b.disk.Set(t.TempDir(), quota)
			simulation := diskcache.NewSimulation(quota)
			state = nil
			for k := range want {
				missed := simulation.MissedBytes
				_, err := engine.Forecast(t.Context(),
					dryrun.Options{Epoch: uint64(k), Samples: -1, Cache: simulation})
				if err != nil {
					t.Fatal(err)
				}
				planned := simulation.MissedBytes - missed
				read := b.opener.Stats().Bytes
				var got []byte
				got, state = epochBytes(t, engine, uint64(k), state)
				read = b.opener.Stats().Bytes - read
				if !bytes.Equal(got, want[k]) {
					t.Errorf("epoch %d has other batches", k)
				}
				if ratio := float64(read) / float64(planned); ratio < 0.98 || ratio > 1.02 {
					t.Errorf("epoch %d took %d bytes from the store, the forecast is %d", k, read, planned)
				}
				t.Logf("epoch %d: %d bytes from the store, planned %d", k, read, planned)
			}
			if simulation.HitBytes < simulation.MissedBytes/4 {
				t.Errorf("the forecast has %d bytes of hits beside %d", simulation.HitBytes, simulation.MissedBytes)
			}
			disk, err := b.disk.Get()
			if err != nil || disk.Used() > quota || disk.Used() < quota*9/10 {
				t.Errorf("%d bytes of %d are used, %v", disk.Used(), quota, err)
			}
		})
	}
}

// epochBytes returns the pixels of an epoch, and the state behind it. state is that before it.
func epochBytes(t *testing.T, e *loader.Engine, epoch uint64, state *shuffle.State) (all []byte, _ *shuffle.State) {
	l, err := loader.NewLoader(e, loader.LoaderOptions{Epochs: epoch + 1, State: state})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for {
		x, err := l.Next(t.Context())
		if errors.Is(err, io.EOF) {
			after := l.State()
			return all, &after
		}
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, x.Tensors[0].Data...)
		x.Release()
	}
}
