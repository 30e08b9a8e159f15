package loader

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/loader/batch"
	"github.com/chaski-eo/chaski/loader/spec"
	"github.com/chaski-eo/chaski/shuffle/steps"
	"github.com/chaski-eo/chaski/store/catalog"
)

// TestSharedTilesComeBack: tickets of windows that share decoded tiles are cancelled at all stages,
// with chunks that cannot be read, and with room for all tiles of a pool or for hardly any. Tiles
// that others wait for arrive complete. In the end no tile is held or planned, and the memory counted is
// that of the cached tiles.
func TestSharedTilesComeBack(t *testing.T) {
	pool := Sampler{Kind: spec.TileWindow, Height: 12, Width: 12, TileWindows: spec.TileWindows{TileHeight: 20,
		TileWidth: 24, PerVisit: 5, Pool: 3}}
	random := Sampler{Kind: spec.RandomWindow, Height: 12, Width: 12, PerAsset: 20}
	for name, memory := range map[string]int64{"room for all": 0, "room for few": 26000} {
		t.Run(name, func(t *testing.T) { sharedTiles(t, pool, memory) })
		t.Run("planned, "+name, func(t *testing.T) { sharedTiles(t, random, memory) })
	}
}

func sharedTiles(t *testing.T, sampler Sampler, memory int64) {
	r := rand.New(rand.NewPCG(21, 22))
	tab := &fakeTable{rows: 6, kinds: []catalog.Kind{catalog.Raster}}
	for row := range tab.rows {
		a, o := newFakeAsset(r, 2, 40, 48, 8, row%2 == 0, row%3 == 0)
		o = a.addMask(r, o, 9, 16, row%2 == 1)
		if row == 3 {
			a.index.Ranges[4].Len--
			a.index.Mask.Ranges[1].Len--
		}
		tab.add(0, row, a, o)
	}
	spec := Spec{
		Source: "memory", BatchSize: 4, Shuffle: true, BadSamples: spec.BadSkip,
		Fields:  []Field{{Name: "image", DType: "float32", Validity: "ok"}},
		Sampler: sampler,
	}.WithDefaults()
	if err := spec.Validate(); err != nil {
		t.Fatal(err)
	}
	e, err := newEngine(context.Background(), spec,
		Options{Workers: 4, Opener: tab, MemoryBytes: memory}.WithDefaults(), tab.table())
	if err != nil {
		t.Fatal(err)
	}
	want := map[int64]*batch.Batch{}
	for step := range e.Steps() {
		want[step] = wait(t, e.Start(context.Background(), steps.StepTicket(0, step, 4, 0, 1), false))
		want[step].Tensors[0].Data = append([]byte(nil), want[step].Tensors[0].Data...)
		want[step].Release()
	}
	tries := 150
	if testing.Short() {
		tries = 50
	}
	var group sync.WaitGroup
	for g := range 4 {
		group.Go(func() {
			r := rand.New(rand.NewPCG(uint64(g), 5))
			for range tries {
				step := r.Int64N(e.Steps())
				ctx, cancel := context.WithTimeout(context.Background(), time.Duration(r.IntN(500))*time.Microsecond)
				p := e.Start(context.Background(), steps.StepTicket(0, step, 4, 0, 1), false)
				if r.IntN(3) == 0 {
					ctx = context.Background()
				}
				b, err := p.Wait(ctx)
				cancel()
				if errors.Is(err, context.DeadlineExceeded) {
					continue
				}
				if err != nil {
					t.Error(err)
					return
				}
				if string(b.Tensors[0].Data) != string(want[step].Tensors[0].Data) ||
					len(b.Bad) != len(want[step].Bad) {
					t.Errorf("step %d: another batch than at first", step)
				}
				b.Release()
			}
		})
	}
	group.Wait()
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	bad := 0
	for _, b := range want {
		for _, k := range b.Bad {
			bad++
			if fault.KindOf(k.Err) != fault.Corrupt {
				t.Error(k.Err)
			}
		}
	}
	if bad == 0 {
		t.Error("no window met a chunk that is cut")
	}
	c := e.tiles
	if c.Held != 0 || len(c.By) != 0 || len(c.Idle) != 0 || len(c.Planned) != 0 {
		t.Errorf("%d bytes of %d tiles are still held, %d planned", c.Held, len(c.By), len(c.Planned))
	}
	if taken, idle := e.memory.counts(); taken != idle {
		t.Errorf("%d bytes are still out", taken-idle)
	}
}
