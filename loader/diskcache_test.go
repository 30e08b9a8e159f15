package loader_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chaski-eo/chaski/loader"
	"github.com/chaski-eo/chaski/loader/dryrun"
	"github.com/chaski-eo/chaski/loader/spec"
	"github.com/chaski-eo/chaski/shuffle/steps"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/source/diskcache"
	"github.com/chaski-eo/chaski/source/openers"
	"github.com/chaski-eo/chaski/tools/testkit/netsim"
	"github.com/chaski-eo/chaski/tools/testkit/race"
)

// TestDiskCacheHoldsItsForecast: with a cache on disk for a third of the data, behind a link of 30 ms and 100 MB/s,
// each epoch takes at most 1.02 times the bytes from the store that the forecast says, and has the batches that it has
// without a cache. Where ranges are read several times it may take less: the samples in work, which are many beside
// this small cache, share what they read.
func TestDiskCacheHoldsItsForecast(t *testing.T) {
	race.SkipCovered(t)
	for name, text := range map[string]string{
		"chips":   `{}`,
		"windows": `{"sampler": {"kind": "random_window", "height": 48, "width": 48, "per_asset": 4}}`,
		"tiles": `{"sampler": {"kind": "tile_window", "height": 48, "width": 48, "tile_height": 96, "tile_width": 96,
			"per_visit": 2, "visits": 3, "pool": 8}}`,
		"mixture": `{"sources": [
			{"name": "a", "source": "CATALOG", "weight": 3, "where": [{"sql": "uri < 'CHIPS/0060'"}]},
			{"name": "b", "source": "CATALOG", "weight": 1, "where": [{"sql": "uri >= 'CHIPS/0060'"}]}],
			"until": "longest"}`,
		"drawn by weights": `{}`,
	} {
		t.Run(name, func(t *testing.T) {
			if testing.Short() && name != "windows" {
				t.Skip("the others run the same goroutines")
			}
			// Workers that wait for a processor read in another order than the plan. Beside three other runs, 240
			// epochs of tiles took at most 1.018 times their plan; 1.022 was seen once, where other tests had both
			// cores.
			for attempt := range 3 {
				over := runBesideForecast(t, name, text)
				if over == "" {
					return
				}
				if attempt == 2 {
					t.Error(over)
				}
				t.Logf("attempt %d: %s", attempt, over)
			}
		})
	}
}

// runBesideForecast runs three epochs of a spec with an empty cache, and returns in what an epoch took more than 1.02
// times its forecast, or "".
func runBesideForecast(t *testing.T, name, text string) (over string) {
	images, roundTrip, rate := 100, 30*time.Millisecond, 100e6
	if testing.Short() {
		images, roundTrip, rate = 40, 0, 1e9
	}
	memory := int64(images) * 40 << 10 // a quarter of the set, so that decoded chunks are no cache of their own
	b := newBucket(t, images, 2, 192, 64, roundTrip, rate)
	defer b.disk.Close()
	var s loader.Spec
	text = strings.NewReplacer("CATALOG", b.catalog, "CHIPS", b.folder).Replace(text)
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		t.Fatal(err)
	}
	s.BatchSize, s.Shuffle, s.Fields = 8, true, []loader.Field{{Name: "image", DType: "native"}}
	if len(s.Sources) == 0 {
		s.Source = b.catalog
	}
	open := func() *loader.Engine {
		engine, err := loader.Open(t.Context(), s, loader.Options{Disk: b.disk, MemoryBytes: memory,
			Opener: &openers.Mux{Files: &openers.Files{}, Schemes: map[string]source.Opener{"http": b.opener}}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { engine.Close() })
		return engine
	}
	const epochs = 3
	var want [epochs][]byte
	without := open()
	begin := without.State()
	if name == "drawn by weights" {
		begin.Weights = weightsOfChips(t, images)
	}
	state := &begin
	for k := range want {
		want[k], state = epochBytes(t, without, uint64(k), state)
	}

	quota := b.bytes / 3
	b.disk.Set(t.TempDir(), quota)
	engine, simulation := open(), diskcache.NewSimulation(quota)
	state = &begin
	for k := range want {
		missed, found := simulation.MissedBytes, simulation.HitBytes
		_, err := engine.Forecast(t.Context(),
			dryrun.Options{Epoch: uint64(k), Samples: -1, Cache: simulation, Weights: begin.Weights})
		if err != nil {
			t.Fatal(err)
		}
		planned := simulation.MissedBytes - missed
		read := b.opener.Stats().Bytes
		var got []byte
		got, state = epochBytes(t, engine, uint64(k), state)
		read = b.opener.Stats().Bytes - read
		if disk, err := b.disk.Get(); err != nil || k == 0 && disk.Stats().StoreBytes != read {
			t.Errorf("the cache counts %d bytes from the store, %v", disk.Stats().StoreBytes, err)
		}
		if !bytes.Equal(got, want[k]) {
			t.Errorf("epoch %d has other batches", k)
		}
		least := 0.8
		if name == "chips" {
			least = 1
		}
		if ratio := float64(read) / float64(planned); ratio < least {
			t.Errorf("epoch %d took %d bytes from the store, the forecast is %d", k, read, planned)
		} else if ratio > 1.02 {
			over = fmt.Sprintf("epoch %d took %d bytes from the store, the forecast is %d", k, read, planned)
		}
		t.Logf("epoch %d: %d bytes from the store, planned %d, and %d from the cache", k, read, planned,
			simulation.HitBytes-found)
	}
	disk, err := b.disk.Get()
	if simulation.HitBytes < simulation.MissedBytes/4 {
		t.Errorf("the forecast has %d bytes of hits beside %d", simulation.HitBytes, simulation.MissedBytes)
	}
	if s := disk.Stats(); name != "chips" && s.Evicted == 0 {
		t.Errorf("nothing made room: %+v", s)
	}
	if err != nil || disk.Used() > quota || disk.Used() < quota*9/10 {
		t.Errorf("%d bytes of %d are used, %v", disk.Used(), quota, err)
	}
	t.Logf("%+v", disk.Stats())
	return over
}

// weightsOfChips returns weights from the start of a run on, as docs/order.md says.
func weightsOfChips(t *testing.T, n int) []steps.Change {
	data := binary.LittleEndian.AppendUint64([]byte("CHSKROW1"), uint64(n))
	for i := range n {
		data = binary.LittleEndian.AppendUint32(data, math.Float32bits(float32(i*i%7)))
	}
	piece := sha256.Sum256(data[16:])
	hash := sha256.Sum256(append(data[:16:16], piece[:]...))
	path := filepath.Join(t.TempDir(), "chips.weights")
	if err := writeFile(path, string(data)); err != nil {
		t.Fatal(err)
	}
	return []steps.Change{{Path: path, Hash: hex.EncodeToString(hash[:])}}
}

// TestDiskCacheBreaksInARun: a run goes on with the right batches when its cache is gone, with a file in its place, as
// when its disk fails. It goes on with another engine, since the first one has the decoded chunks in memory.
func TestDiskCacheBreaksInARun(t *testing.T) {
	b := newBucket(t, 24, 1, 96, 48, 0, 1e9)
	defer b.disk.Close()
	folder := filepath.Join(t.TempDir(), "cache")
	b.disk.Set(folder, 4*b.bytes)
	epoch := func() []byte {
		engine, err := loader.Open(t.Context(), loader.Spec{Source: b.catalog, BatchSize: 4,
			Sampler: loader.Sampler{Kind: spec.RandomWindow, PerAsset: 4, Height: 48, Width: 48},
			Fields:  []loader.Field{{Name: "image", DType: "native"}}}, loader.Options{Disk: b.disk,
			Opener: &openers.Mux{Files: &openers.Files{}, Schemes: map[string]source.Opener{"http": b.opener}}})
		if err != nil {
			t.Fatal(err)
		}
		defer engine.Close()
		batches, _ := epochBytes(t, engine, 0, nil)
		return batches
	}
	want := epoch()
	if err := errors.Join(os.RemoveAll(folder), writeFile(folder, "no folder")); err != nil {
		t.Fatal(err)
	}
	read := b.opener.Stats().Bytes
	if !bytes.Equal(epoch(), want) {
		t.Error("other batches")
	}
	disk, err := b.disk.Get()
	if err != nil || disk.Stats().Failed == 0 || b.opener.Stats().Bytes == read {
		t.Errorf("%+v, %v", disk.Stats(), err)
	}
}

// BenchmarkCachedEpoch compares epochs of chips in a bucket behind a link of 30 ms and 100 MB/s, whose ranges are all
// in a cache on disk, with epochs of the same chips in local files, in turns. Noise is stored as it is, so that reading
// is nearly all; of the coast, decoding is.
func BenchmarkCachedEpoch(b *testing.B) {
	b.Run("noise", func(b *testing.B) {
		cachedEpoch(b, 240, func(i int) []byte { return netsim.Chip(uint64(i), 3, 256, 256) })
	})
	coast, err := os.ReadFile("../testdata/demo/coast.tif")
	if err != nil {
		b.Fatal(err)
	}
	b.Run("coast", func(b *testing.B) { cachedEpoch(b, 48, func(int) []byte { return coast }) })
}

func cachedEpoch(b *testing.B, chips int, chip func(i int) []byte) {
	far := bucketOf(b, chips, chip, 30*time.Millisecond, 100e6)
	defer far.disk.Close()
	far.disk.Set(b.TempDir(), 2*far.bytes)
	near := b.TempDir()
	for k := range chips {
		name := filepath.Join(near, fmt.Sprintf("%04d.tif", k))
		if err := writeFile(name, string(chip(k))); err != nil {
			b.Fatal(err)
		}
	}
	files := &openers.Files{}
	defer files.Close()
	opener := &openers.Mux{Files: files, Schemes: map[string]source.Opener{"http": far.opener}}
	var engines [2]*loader.Engine
	var states [2]*steps.State
	var times [2]time.Duration
	for k, path := range []string{far.catalog, near} {
		engine, err := loader.Open(b.Context(), loader.Spec{Source: path, BatchSize: 16, Shuffle: true,
			Fields: []loader.Field{{Name: "image", DType: "native"}}}, loader.Options{Opener: opener, Disk: far.disk})
		if err != nil {
			b.Fatal(err)
		}
		defer engine.Close()
		engines[k] = engine
		_, states[k] = epochBytes(b, engine, 0, nil)
	}
	epoch := uint64(0)
	for b.Loop() {
		epoch++
		for k, engine := range engines {
			start := time.Now()
			states[k] = eachBatch(b, engine, epoch, states[k], func([]byte) {})
			times[k] += time.Since(start)
		}
	}
	b.ReportMetric(float64(chips)*float64(epoch)/times[0].Seconds(), "cached-chips/s")
	b.ReportMetric(float64(chips)*float64(epoch)/times[1].Seconds(), "local-chips/s")
	b.ReportMetric(times[1].Seconds()/times[0].Seconds(), "ratio")
}

// epochBytes returns the pixels of an epoch, and the state behind it. state is that before it.
func epochBytes(t testing.TB, e *loader.Engine, epoch uint64, state *steps.State) (all []byte, _ *steps.State) {
	after := eachBatch(t, e, epoch, state, func(pixels []byte) { all = append(all, pixels...) })
	return all, after
}

// eachBatch calls take with the pixels of each batch of an epoch, and returns the state behind it.
func eachBatch(t testing.TB, e *loader.Engine, epoch uint64, state *steps.State, take func([]byte)) *steps.State {
	l, err := loader.NewLoader(e, loader.LoaderOptions{Epochs: epoch + 1, State: state})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for {
		x, err := l.Next(t.Context())
		if errors.Is(err, io.EOF) {
			after := l.State()
			return &after
		}
		if err != nil {
			t.Fatal(err)
		}
		take(x.Tensors[0].Data)
		x.Release()
	}
}
