package loader

import (
	"bytes"
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/chaski-eo/chaski/loader/batch"
	"github.com/chaski-eo/chaski/shuffle/steps"
	"github.com/chaski-eo/chaski/tools/testkit/race"
	"github.com/chaski-eo/chaski/tools/testkit/taken"
)

// TestTaken: specs of many parts take memory by their length.
func TestTaken(t *testing.T) {
	race.SkipCovered(t)
	for _, array := range []string{"[", `{"fields":[`, `{"where":[`, `{"sources":[`, `{"source":[`,
		`{"sampler":{"roi":[`,
		`{"source":"s","batch_size":2,"bbox":[`, `{"stats":{"a":{"bands":[`, `{"split":{"shares":[`} {
		for _, text := range taken.JSON(array) {
			for _, end := range []string{"", "}", "]}", "}}", "]}}"} {
				taken.Check(t, len(text+end), 2*taken.Factor, func() { _, _ = ParseSpec([]byte(text + end)) })
			}
		}
	}
}

// FuzzSpec: specs come from other machines. Any bytes are refused, or are a spec that is the same
// after writing and reading it. An engine for it is refused, or yields the batches of its first and
// last step within its memory.
func FuzzSpec(f *testing.F) {
	for _, s := range []string{
		`{"source":"s","batch_size":4}`,
		`{"source":"s","batch_size":3,"shuffle":true,"seed":7,"bad_samples":"replace","last":"drop",` +
			`"sampler":{"kind":"random_window","height":8,"width":6,"per_asset":2}}`,
		`{"source":"s","batch_size":2,"sampler":{"kind":"grid","height":8,"width":8}}`,
		`{"source":"s","batch_size":2,"shuffle":true,"sampler":{"kind":"tile_window","height":8,"width":8,` +
			`"tile_height":10,"tile_width":10,"per_visit":4,"pool":3}}`,
		`{"source":"s","batch_size":2,"sampler":{"kind":"resized_window","height":7,"width":9}}`,
		`{"sources":[{"name":"a","source":"s"},{"name":"b","source":"t","weight":3}],"batch_size":5,"shuffle":true}`,
		`{"source":"s","batch_size":2,"fields":[{"name":"image","bands":[2,0],"dtype":"float32",` +
			`"layout":"n (y x) b","normalize":{"scale":[0.5],"offset":[1]},"fill":-1,"pad":true,` +
			`"validity":"ok"},{"name":"mask"}]}`,
		`{"source":"s","batch_size":2,"fields":[{"name":"image","dtype":"float32","band_names":["R"],` +
			`"normalize":{"method":"mean_std","stats":{"bands":[{"name":"R","mean":4,"std":2}]}}}]}`,
		`{"source":"s","batch_size":2,"defaults":{"dtype":"float32","fill":0,"pad":true,"normalize":"min_max"},` +
			`"stats":{"a":{"bands":[{"name":"R","min":4,"max":9}]}},"fields":{"a":"c",` +
			`"b":{"dtype":"native","pad":false},"c":{"bands":["R"],"normalize":{"offset":1}},` +
			`"d":{"normalize":false,"pattern":"{id}"}}}`,
		`{"batch_size":2,"defaults":{"bands":[1],"normalize":"mean_std"},` +
			`"stats":{"image":{"bands":[{"mean":4,"std":2}]}},` +
			`"sources":[{"source":"s","fields":{"image":{"normalize":"mean_std"}}},{"source":"t"}]}`,
		`{"source":"s","batch_size":2,"augment":"d4","subset":{"size":0.5}}`,
		`{"source":"s","batch_size":2,"sampler":[6,8],"where":["a < 1",["b","in",[true,2]]],"bbox":[0,0,1,1],` +
			`"bbox_crs":"EPSG:32633","datetime":"2020-01-01","split":"a","timestamp":"2020-01-01T00:00:00Z"}`,
		`{"source":"s","batch_size":2,"sampler":{"kind":"grid","size":8,"overlap":[2,0]},"use":"b",` +
			`"strata":{"column":"c","until":7},"split":{"by":"hash","shares":{"b":1,"a":2}}}`,
		`{"source":"s","batch_size":2,"sampler":{"kind":"geo_window","size_m":8,"resolution":1,"overviews":false,` +
			`"roi":{"type":"Point"},"crs":3035},"use":"b","split":{"by":"date","ranges":{"b":[null,1],"a":[1,null]}}}`,
		`{"source":"s","batch_size":3,"shuffle":true,"mixture":{"until":"shortest"},` +
			`"sources":[{"name":"a","source":"s","count":3},{"name":"b","sources":[{"name":"c","source":"t"}]}]}`,
	} {
		f.Add([]byte(s))
	}
	tab := chips(3, 6)
	f.Fuzz(func(t *testing.T, b []byte) {
		var s Spec
		var err error
		taken.Check(t, len(b), 200, func() { s, err = ParseSpec(b) }) // see TestHostileSpecs
		if err != nil {
			return
		}
		written, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		again, err := ParseSpec(written)
		if err != nil {
			t.Fatalf("%s is refused: %v", written, err)
		}
		if w, err := json.Marshal(again); err != nil || !bytes.Equal(w, written) {
			t.Fatalf("%s becomes %s", written, w)
		}
		if len(s.Fields) > len(tab.kinds) {
			return
		}
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
		defer cancel()
		const memory = 1 << 20
		taken := 0
		o := Options{
			Workers: 1, Opener: tab, MemoryBytes: memory,
			Alloc: func(n int) batch.Buffer { taken = max(taken, n); return batch.NewHeap(n) },
		}
		e, err := newEngine(ctx, s, o.WithDefaults(), tab.table())
		if err != nil {
			return
		}
		defer e.Close()
		for _, step := range []int64{0, e.Steps() - 1} {
			if step < 0 {
				continue
			}
			batch, err := e.Start(ctx, steps.StepTicket(0, step, s.BatchSize, 0, 1), false).Wait(ctx)
			if ctx.Err() != nil {
				t.Fatalf("%s: step %d takes too long", written, step)
			}
			if err == nil {
				batch.Release()
			}
		}
		if taken > memory {
			t.Fatalf("%s: a batch of %d bytes", written, taken)
		}
	})
}
