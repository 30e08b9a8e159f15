package loader

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/chaski-eo/chaski/loader/dryrun"
	"github.com/chaski-eo/chaski/loader/pixels"
	"github.com/chaski-eo/chaski/loader/resources"
	"github.com/chaski-eo/chaski/loader/rows"
	"github.com/chaski-eo/chaski/loader/spec"
	"github.com/chaski-eo/chaski/shuffle/steps"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/source/openers"
	"github.com/chaski-eo/chaski/store/catalog/build"
	"github.com/chaski-eo/chaski/tools/testkit/corpus"
	"github.com/chaski-eo/chaski/tools/testkit/race"
	"github.com/chaski-eo/chaski/tools/testkit/soak"
	"github.com/chaski-eo/chaski/tools/testkit/testfile"
)

// meter counts the requests to an opener.
type meter struct {
	source.Opener
	opens, requests, bytes atomic.Int64
}

func (c *meter) Open(ctx context.Context, uri string) (source.Reader, error) {
	r, err := c.Opener.Open(ctx, uri)
	if err != nil || strings.HasSuffix(uri, ".parquet") {
		return r, err
	}
	c.opens.Add(1)
	return meterReader{r, c}, nil
}

type meterReader struct {
	source.Reader
	of *meter
}

func (r meterReader) ReadAt(ctx context.Context, p []byte, off int64) error {
	r.of.requests.Add(1)
	r.of.bytes.Add(int64(len(p)))
	return r.Reader.ReadAt(ctx, p, off)
}

// counted holds the counts of a run.
type counted struct{ opens, requests, bytes, chunks, decoded int64 }

func countedOf(w dryrun.Work) counted {
	return counted{w.Opens, w.Requests, w.Bytes, w.Chunks, w.Decoded}
}

// meets reports whether a run did what its forecast says: no more, if windows share chunks.
func meets(got counted, f *dryrun.Forecast) bool {
	want := countedOf(f.Total)
	if f.Loose {
		return got.opens == want.opens && got.bytes <= want.bytes && got.chunks <= want.chunks &&
			got.decoded <= want.decoded
	}
	return got == want
}

// openCounted compiles a spec on tables behind an opener that counts.
func openCounted(t *testing.T, sp Spec, tabs map[string]*fakeTable, o Options) (*Engine, *meter) {
	t.Helper()
	all := &fakeTable{objects: map[string][]byte{}}
	for name, tab := range tabs {
		for uri, b := range tab.objects {
			all.objects[name+":"+uri] = b
		}
	}
	c := &meter{Opener: all}
	sp = sp.WithDefaults()
	if err := sp.Validate(); err != nil {
		t.Fatal(err)
	}
	o.Opener, o.Stages = c, &resources.Stages{}
	e, err := openEngine(t.Context(), sp, o.WithDefaults(),
		func(_ context.Context, src Source, _ []Field) (*rows.Table, error) {
			return placed(tabs[src.Source], src.Source), nil
		})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	return e, c
}

// epochOf runs epoch 0 and returns the counts of the opener and the workers, and the requests of
// the largest step.
func epochOf(t *testing.T, e *Engine, c *meter, o LoaderOptions) counted {
	t.Helper()
	o.Epochs = 1
	l, err := NewLoader(e, o)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for {
		b, err := l.Next(t.Context())
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		b.Release()
	}
	chunks, decoded := e.options.Stages.Decoded()
	return counted{c.opens.Load(), c.requests.Load(), c.bytes.Load(), chunks, decoded}
}

// forecastSpecs are specs with every sampler, masks, sparse chunks, several fields and bad samples.
func forecastSpecs() map[string]Spec {
	all := fixedSpecs()
	base := func(s Sampler) Spec {
		return Spec{Source: "a", Fields: slices.Clone(sampledFields), BatchSize: 5, Seed: 9, Shuffle: true,
			Sampler: s, BadSamples: spec.BadSkip}
	}
	all["chip"] = base(Sampler{Kind: spec.WholeChip, Height: 20, Width: 24})
	all["random"] = base(Sampler{Kind: spec.RandomWindow, Height: 6, Width: 10, PerAsset: 3})
	all["grid"] = base(Sampler{Kind: spec.GridWindow, Height: 8, Width: 8, GridWindows: spec.GridWindows{StrideY: 6,
		StrideX: 4}})
	all["dropped"] = base(Sampler{Kind: spec.RandomWindow, Height: 6, Width: 10, PerAsset: 2})
	dropped := all["dropped"]
	dropped.Last = "drop"
	all["dropped"] = dropped
	padded := base(Sampler{Kind: spec.RandomWindow, Height: 6, Width: 10, PerAsset: 3})
	padded.Last = steps.LastPad
	all["padded"] = padded
	return all
}

// TestForecastIsExact: opens, requests, bytes, chunks and decoded bytes of an epoch are exactly
// those that an opener and the workers count, for every sampler and for one rank of several; with
// tiles of pools, for one worker. Where the next batches share chunks, they are no more.
func TestForecastIsExact(t *testing.T) {
	specs := forecastSpecs()
	for _, name := range slices.Sorted(maps.Keys(specs)) {
		for _, ranks := range []LoaderOptions{{}, {Rank: 1, World: 3}} {
			t.Run(fmt.Sprintf("%s/%d", name, ranks.World), func(t *testing.T) {
				workers := 4
				if name == "tiles" {
					workers = 1
				}
				e, c := openCounted(t, specs[name], sampledTables(), Options{Workers: workers})
				f, err := e.Forecast(t.Context(), dryrun.Options{Rank: ranks.Rank, World: ranks.World})
				if err != nil {
					t.Fatal(err)
				}
				if before := c.opens.Load(); before != 0 {
					t.Errorf("the forecast opened %d files", before)
				}
				if got := epochOf(t, e, c, ranks); !meets(got, f) || f.Loose && e.toPlan == nil {
					t.Errorf("the run did %+v, the forecast was %+v", got, countedOf(f.Total))
				}
				taken, _ := e.memory.counts()
				// The last batch may take less than the others, and so may some of a rank.
				whole := name != "padded" && name != "dropped" || taken%f.Memory.Batch == 0
				if m := f.Memory; taken > m.Batch*int64(m.Batches)+m.Short || !whole ||
					e.tiles != nil && e.tiles.Held > m.Tiles {
					t.Errorf("the run took %d bytes, the forecast was %+v", taken, m)
				}
				if f.Total.Requests == 0 || f.Total.Chunks == 0 || f.Examined != f.Steps {
					t.Errorf("a forecast of %+v", f)
				}
				shares := name == "tiles" || strings.HasPrefix(name, "views")
				if f.Total.Chunks > f.Total.Needed || !shares && f.Total.Chunks != f.Total.Needed {
					t.Errorf("%d chunks decoded of %d needed", f.Total.Chunks, f.Total.Needed)
				}
			})
		}
	}
}

// TestForecastOfAWorker: no worker holds more memory than the forecast, nor much less, also when
// windows are resampled.
func TestForecastOfAWorker(t *testing.T) {
	for _, s := range []Sampler{
		{Kind: spec.RandomWindow, Height: 6, Width: 10, PerAsset: 3}, {Kind: spec.ResizedWindow, Height: 4,
			Width: 4, PerAsset: 3, ResizedWindows: spec.ResizedWindows{ScaleMin: 1, ScaleMax: 20}},
		{Kind: spec.ResizedWindow, Height: 64, Width: 64, ResizedWindows: spec.ResizedWindows{ScaleMin: 0.01,
			ScaleMax: 0.02}},
	} {
		tabs := sampledTables()
		tabs["a"].broken = nil
		e, c := openCounted(t, Spec{Source: "a", Fields: slices.Clone(sampledFields), BatchSize: 17, Sampler: s},
			tabs, Options{Workers: 1})
		f, err := e.Forecast(t.Context(), dryrun.Options{})
		if err != nil {
			t.Fatal(err)
		}
		l, err := e.layout(layoutKey{group: e.groups[0], rows: 17})
		if err != nil {
			t.Fatal(err)
		}
		r, held := pixels.NewReader(e.options), 0
		for step := range e.Steps() {
			p := &Pending{engine: e, group: e.groups[0], ticket: steps.StepTicket(0, step, 17, 0, 1),
				ctx: t.Context(), batchMemory: batchMemory{layout: l},
				queued: queued{claim: &quotaClaim{queue: e.queue}}}
			p.memory = mustTake(t, e.memory, p.size())
			if err := p.prepare(); err != nil {
				t.Fatal(err)
			}
			for k := range p.batch.Valid {
				if p.batch.Valid[k] {
					for u := range p.units(k) {
						if err := u.do(r); err != nil {
							t.Fatal(err)
						}
						q := &r.Resample
						held = max(held, len(r.Stored)+len(r.Samples)+len(q.In)+len(q.InValid)+
							len(q.Out)+len(q.OutValid))
					}
				}
			}
			p.batch.Release()
		}
		if m := f.Memory.Worker; int64(held) > m || 2*int64(held) < m || c.requests.Load() == 0 {
			t.Errorf("%s of %d by %d: a worker held %d bytes, the forecast was %d", s.Kind, s.Height, s.Width, held, m)
		}
	}
}

// TestForecastOfTiles: with several workers the number of decoded chunks is exact as long as no
// tile is evicted. With room for few tiles it is exact for one worker, higher than with room for
// all, and never higher than without sharing.
func TestForecastOfTiles(t *testing.T) {
	race.SkipCovered(t)
	sp := fixedSpecs()["tiles"]
	sp.BadSamples, sp.Sampler.Pool = spec.BadSkip, 4
	roomy, c := openCounted(t, sp, sampledTables(), Options{Workers: 4})
	all, err := roomy.Forecast(t.Context(), dryrun.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if all.Evicted != 0 {
		roomy.tiles.Bound = 1 << 30
		if all, err = roomy.Forecast(t.Context(), dryrun.Options{}); err != nil {
			t.Fatal(err)
		}
	}
	if got := epochOf(t, roomy, c, LoaderOptions{}); got.chunks != all.Total.Chunks ||
		got.decoded != all.Total.Decoded || all.Evicted != 0 {
		t.Errorf("the run decoded %d chunks, the forecast was %+v", got.chunks, all)
	}
	for _, bound := range []int64{0, 300, 1500, 5000} {
		tight, c := openCounted(t, sp, sampledTables(), Options{Workers: 1})
		tight.tiles.Bound = bound
		f, err := tight.Forecast(t.Context(), dryrun.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if got := epochOf(t, tight, c, LoaderOptions{}); got != countedOf(f.Total) {
			t.Errorf("bound %d: the run did %+v, the forecast was %+v", bound, got, countedOf(f.Total))
		}
		if f.Total.Chunks < all.Total.Chunks || f.Total.Chunks > f.Total.Needed || bound < 5000 && f.Evicted == 0 {
			t.Errorf("bound %d: %+v; with room %+v", bound, f.Total, all.Total)
		}
	}
}

// TestForecastOfSomeSteps: if only some steps are examined, the sums are close to those of all
// steps.
func TestForecastOfSomeSteps(t *testing.T) {
	race.SkipCovered(t)
	for name, sp := range forecastSpecs() {
		sp.Sampler.PerAsset = max(sp.Sampler.PerAsset, 1)
		if sp.Sampler.Kind != spec.RandomWindow && sp.Sampler.Kind != spec.ResizedWindow &&
			sp.Sampler.Kind != spec.TileWindow {
			continue
		}
		sp.Sampler.PerAsset = 40
		e, _ := openCounted(t, sp, sampledTables(), Options{Workers: 2})
		all, err := e.Forecast(t.Context(), dryrun.Options{Samples: -1})
		if err != nil {
			t.Fatal(err)
		}
		if more, err := e.Forecast(t.Context(), dryrun.Options{Samples: math.MaxInt64}); err != nil ||
			more.Total != all.Total || more.Examined != all.Examined {
			t.Errorf("%s: %+v of more samples than there are, %+v of all; %v", name, more.Total, all.Total, err)
		}
		last := int64(0)
		some, err := e.Forecast(t.Context(), dryrun.Options{Samples: all.Samples / 2,
			Progress: func(done, total int64) {
				if done != last+1 || done > total {
					t.Errorf("progress %d of %d after %d", done, total, last)
				}
				last = done
			}})
		if err != nil {
			t.Fatal(err)
		}
		if some.Examined >= all.Steps || some.Examined == 0 || some.Exact() {
			t.Errorf("%s: %d of %d steps", name, some.Examined, all.Steps)
		}
		for _, pair := range [][2]int64{{some.Total.Rows, all.Total.Rows},
			{some.Total.Requests, all.Total.Requests}, {some.Total.Chunks, all.Total.Chunks}} {
			if near := float64(pair[0]) / float64(pair[1]); near < 0.8 || near > 1.25 {
				t.Errorf("%s: %+v of some, %+v of all", name, some.Total, all.Total)
				break
			}
		}
	}
}

// TestForecastOfTilesFromAPart: tiles that the first steps have read are not counted again for the
// steps that stand for others, but evicted ones are.
func TestForecastOfTilesFromAPart(t *testing.T) {
	race.SkipCovered(t)
	sp := fixedSpecs()["tiles"]
	sp.BadSamples, sp.Sampler.PerAsset, sp.Sampler.Pool = spec.BadSkip, 200, 8
	for _, bound := range []int64{0, 20_000, 1 << 30} {
		if testing.Short() && bound != 20_000 {
			continue // the race detector sees the same workers for every bound
		}
		e, _ := openCounted(t, sp, sampledTables(), Options{Workers: 2})
		e.tiles.Bound = bound
		all, err := e.Forecast(t.Context(), dryrun.Options{Samples: -1})
		if err != nil {
			t.Fatal(err)
		}
		some, err := e.Forecast(t.Context(), dryrun.Options{Samples: all.Samples / 5})
		if err != nil {
			t.Fatal(err)
		}
		if near := float64(some.Total.Chunks) / float64(all.Total.Chunks); near < 0.75 || near > 1.33 ||
			some.Examined > all.Steps/4 {
			t.Errorf("bound %d: %d steps say %+v, %d say %+v", bound, some.Examined, some.Total,
				all.Examined, all.Total)
		}
	}
}

// TestForecastOfFiles: the forecast of real files in a catalog is exact. A directory costs their
// headers in addition.
func TestForecastOfFiles(t *testing.T) {
	chip, err := os.ReadFile(filepath.Join(corpus.Testdata(t), "raster", "tog", "tog-series-0.tif"))
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	var paths []string
	for i := range 4 {
		paths = append(paths, filepath.Join(folder, fmt.Sprintf("%d.tif", i)))
		testfile.Write(t, paths[i], chip)
	}
	name := filepath.Join(t.TempDir(), "train.parquet")
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	files := &openers.Files{}
	defer files.Close()
	if _, err := build.Write(t.Context(), f, paths,
		build.Options{Opener: files, Base: filepath.Dir(name)}); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	for _, s := range []Sampler{
		{}, {Kind: spec.RandomWindow, Height: 50, Width: 70, PerAsset: 5},
		{Kind: spec.GridWindow, Height: 64, Width: 64, GridWindows: spec.GridWindows{StrideY: 40}},
		{Kind: spec.TileWindow, Height: 32, Width: 32, TileWindows: spec.TileWindows{PerVisit: 8, Pool: 3},
			PerAsset: 6},
	} {
		if testing.Short() && s.Kind != spec.TileWindow {
			continue // the same worker runs for every sampler
		}
		for k, from := range []string{name, folder, name} {
			c := &meter{Opener: files}
			o := Options{Workers: 1, Opener: c, Stages: &resources.Stages{}}
			if k == 2 {
				o.MaxChunkBytes = 2048 // chunks are decoded in pieces
			}
			e, err := Open(t.Context(), Spec{Source: from, BatchSize: 4, Shuffle: true, Seed: 2, Sampler: s}, o)
			if err != nil {
				t.Fatal(err)
			}
			defer e.Close()
			fc, err := e.Forecast(t.Context(), dryrun.Options{})
			if err != nil {
				t.Fatal(err)
			}
			before := counted{opens: c.opens.Load(), requests: c.requests.Load(), bytes: c.bytes.Load()}
			if from == name && before != (counted{}) {
				t.Errorf("the forecast of a catalog read files: %+v", before)
			}
			got := epochOf(t, e, c, LoaderOptions{})
			got.opens, got.requests, got.bytes = got.opens-before.opens, got.requests-before.requests,
				got.bytes-before.bytes
			if !meets(got, fc) || fc.Loose == fc.Exact() {
				t.Errorf("%q of %s, %d: the run did %+v, the forecast was %+v", s.Kind, from, k, got, fc.Total)
			}
			if k == 2 && fc.Memory.Worker < 4<<20 {
				t.Errorf("the forecast does not know of pieces: %d bytes a worker", fc.Memory.Worker)
			}
		}
	}
}

// TestForecastRefuses: a forecast ends with the error of a run that ends at its first sample, for all samplers and
// kinds of sources.
func TestForecastRefuses(t *testing.T) {
	race.SkipCovered(t)
	data := corpus.Testdata(t)
	chip, err := os.ReadFile(filepath.Join(data, "raster", "tog", "tog-series-0.tif"))
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	path := filepath.Join(folder, "a.tif")
	table, catalog := filepath.Join(t.TempDir(), "t.csv"), filepath.Join(t.TempDir(), "t.parquet")
	var b bytes.Buffer
	err = errors.Join(os.WriteFile(path, chip, 0o600), os.WriteFile(table, []byte("image\n"+path+"\n"), 0o600))
	if err == nil {
		_, err = build.Write(t.Context(), &b, []string{path}, build.Options{Base: filepath.Dir(catalog)})
	}
	if err = errors.Join(err, os.WriteFile(catalog, b.Bytes(), 0o600)); err != nil {
		t.Fatal(err)
	}
	array := filepath.Join(data, "tiledb", "arrays", "dense_2d_order_rc")
	mixed := spec.Mixture{
		Sources: []Source{{Name: "a", Weight: 1, Source: path}, {Name: "b", Weight: 1, Source: table}},
	}
	first := func(sp Spec) (run, plan error) {
		e, err := Open(t.Context(), sp, Options{Workers: 1})
		if err != nil {
			return err, err
		}
		defer e.Close()
		l, err := NewLoader(e, LoaderOptions{})
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		batch, run := l.Next(t.Context())
		if run == nil {
			batch.Release()
		}
		_, plan = e.Forecast(t.Context(), dryrun.Options{})
		return run, plan
	}
	for _, source := range []string{
		path, folder, table, catalog, "", filepath.Join(data, "coast", "flat.tacozip"),
		filepath.Join(data, "taco3", "flat.zip"), array,
	} {
		for _, kind := range spec.SamplerKinds() {
			for _, side := range []int{8, 1 << 9} {
				sp := Spec{Source: source, BatchSize: 1, Sampler: Sampler{Kind: kind, Height: side, Width: side}}
				switch {
				case kind == spec.WholeChip:
					sp.Sampler = Sampler{}
				case kind == spec.GeoWindow || kind == spec.WeightedWindow || kind == spec.RowWindow:
					continue // they have metres, or need a file of weights or columns of boxes
				}
				switch source {
				case "":
					sp.Mixture = mixed
				case array:
					sp.Dims, sp.Fields = "y x", []Field{{Name: "image", Column: "v"}}
				}
				run, plan := first(sp)
				if fmt.Sprint(run) != fmt.Sprint(plan) {
					t.Errorf("%q %s %d: the run says %v, the forecast %v", source, kind, side, run, plan)
				}
				if fits := kind == spec.ResizedWindow || kind == spec.WholeChip || side == 8; fits != (run == nil) {
					t.Errorf("%q %s %d: %v", source, kind, side, run)
				}
			}
		}
	}
}

// TestForecastOfArrays: requests, bytes and chunks of an epoch of arrays are those that an opener and a worker count.
// Where they depend on coordinates, the forecast has at least as many bytes.
func TestForecastOfArrays(t *testing.T) {
	race.SkipCovered(t)
	all := allCubes(t)
	wide := 300
	if testing.Short() {
		wide = 90
	}
	all = append(all, knownCube(t, fmt.Sprint("wide-", wide), 4, 3, wide, wide-20))
	loose := 0
	for i, k := range all {
		coordinates := filepath.Base(k.path) == "dense_with_sparse_fragment"
		if testing.Short() && i%96 != 0 && i != len(all)-1 && !coordinates {
			continue // the race detector sees the same worker for every array, and takes twenty times as long
		}
		for turn, s := range []Sampler{
			{}, {Kind: spec.RandomWindow, Height: 7, Width: 5, PerAsset: 3},
			{Kind: spec.GridWindow, Height: 6, Width: 6, GridWindows: spec.GridWindows{StrideY: max(4, k.size[2]/7),
				StrideX: max(5, k.size[3]/7)}},
			{Kind: spec.ResizedWindow, Height: 6, Width: 6, PerAsset: 3},
			{Kind: spec.TileWindow, Height: 4, Width: 4, TileWindows: spec.TileWindows{TileHeight: 6, TileWidth: 6,
				PerVisit: 4, Pool: 3}, PerAsset: 5},
		} {
			if (i+turn)%2 > 0 && !coordinates && !soak.All() {
				continue // the next array has this sampler
			}
			if k.size[2] >= 8 && k.size[3] >= 8 && forecastOfArray(t, k, s) {
				loose++
			}
		}
	}
	if loose == 0 {
		t.Error("nothing depended on coordinates")
	}
}

// forecastOfArray compares the forecast of an array to a run. It reports whether the forecast is loose.
func forecastOfArray(t *testing.T, k *known, s Sampler) bool {
	sp := k.spec(s, "")
	files := &openers.Files{}
	defer files.Close()
	c := &meter{Opener: files}
	e, err := Open(t.Context(), sp, Options{Workers: 1, Opener: c, Stages: &resources.Stages{}})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	fc, err := e.Forecast(t.Context(), dryrun.Options{})
	if err != nil {
		t.Fatal(err)
	}
	before := counted{requests: c.requests.Load(), bytes: c.bytes.Load()}
	got, want := epochOf(t, e, c, LoaderOptions{}), countedOf(fc.Total)
	got.requests, got.bytes, got.opens, want.opens = got.requests-before.requests, got.bytes-before.bytes, 0, 0
	same := got == want && fc.Exact() && got.requests > 0
	if fc.Loose {
		same = got.bytes <= want.bytes && got.bytes > 0
	}
	if !same {
		t.Errorf("%q of %s: the run did %+v, the forecast was %+v", s.Kind, k.path, got, want)
	}
	return fc.Loose
}
