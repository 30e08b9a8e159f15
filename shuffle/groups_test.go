package shuffle

import (
	"testing"

	"github.com/chaski-eo/chaski/shuffle/steps"
)

// TestGroupsFollowTheLead: nearly all tickets of a mixture are in the group of the pool where the
// leading dataset is when they begin, in any epoch. Tickets of two groups begin in two pools.
func TestGroupsFollowTheLead(t *testing.T) {
	tiles := func(visits int64, k, b int) Source {
		return jsonSource{Visits: visits, PerVisit: k, Pool: b}.source()
	}
	pl := mustPlan(t, Spec{Seed: 5, Shuffle: true, Source: Source{Mixture: &Mixture{
		Counts: []int64{2000, 5000, 3000},
		Sources: []Source{
			{Dataset: &Dataset{Items: 1000}},
			{
				Mixture: &Mixture{
					Counts: []int64{7500, 2500}, Until: Longest,
					Sources: []Source{tiles(901, 16, 32), tiles(307, 16, 16)},
				},
			},
			tiles(411, 16, 40),
		},
		Until: Longest,
	}}})
	g, ok := pl.Groups()
	if !ok || g.Dataset != 3 || len(g.Levels) != 1 {
		t.Fatalf("dataset %d leads, over %+v; pools of number 3 last longest", g.Dataset, g.Levels)
	}
	const batch = 32
	all, same, found := 0, 0, map[int64]bool{}
	group, turn := int64(-1), uint64(0)
	for epoch := range uint64(3) {
		for step := range steps.Count(pl.Len(), batch, true) {
			tk := steps.StepTicket(epoch, step, batch, 0, 1)
			of, at := g.Of(tk, 3)
			for p := tk.First; p < pl.Len(); p++ {
				if pool, ok := pl.poolOf(epoch, p); ok && pool.Dataset == g.Dataset {
					if all++; of == int64(pool.Key()>>1) {
						same++
					}
					break
				}
			}
			found[of] = true
			if at != turn && at != turn+1 && group >= 0 || (at == turn) != (of == group) && group >= 0 {
				t.Fatalf("epoch %d, step %d: turn %d after %d", epoch, step, at, turn)
			}
			group, turn = of, at
		}
	}
	if 100*same < 95*all || len(found) < 10 {
		t.Errorf("%d of %d tickets are in the group of their pool; %d groups", same, all, len(found))
	}
}

// TestTurns: pools of the leading dataset are numbered through all of its epochs.
func TestTurns(t *testing.T) {
	g := steps.Groups{Dataset: 1, Pool: 7, Samples: 160, Levels: []steps.Level{{Drawn: 80, Samples: 50}}}
	// Draw 2*80 + 50 = 210 is position 10 of epoch 4, in the second of eight pools.
	if _, got := g.Of(steps.StepTicket(2, 10, 10, 0, 1), 3); got != 4*8+1 {
		t.Errorf("turn %d, want 33", got)
	}
}

// TestLanes: the tickets of a rank are one group if its rows are lanes of their own, and all servers have a rank.
func TestLanes(t *testing.T) {
	one := &Dataset{Items: 1000, Blocks: &Blocks{Samples: 8, Pool: 4, Lanes: 12}}
	pl := mustPlan(t, Spec{Seed: 1, Shuffle: true, Batch: 12, Source: Source{Dataset: one}})
	g, ok := pl.Groups()
	if !ok || g.Lanes != 12 {
		t.Fatalf("groups %+v", g)
	}
	for world := 1; world <= 13; world++ {
		for servers := 1; servers <= 4; servers++ {
			apart := world >= servers && 12%world == 0
			for rank := range world {
				of, turn := g.Of(steps.StepTicket(0, 3, 12, rank, world), servers)
				if apart && (of != int64(rank) || turn != uint64(rank)) || !apart && of != -1 {
					t.Errorf("rank %d of %d, %d servers: group %d, turn %d", rank, world, servers, of, turn)
				}
			}
		}
	}
	one.Blocks.Lanes = 1
	pl = mustPlan(t, Spec{Seed: 1, Shuffle: true, Batch: 12, Source: Source{Dataset: one}})
	if g, ok := pl.Groups(); ok {
		t.Errorf("one lane: groups %+v", g)
	}
}

// TestInvalidGroups: groups that come from another process are checked before they are used.
func TestInvalidGroups(t *testing.T) {
	good := steps.Groups{Dataset: 1, Pool: 5, Samples: 10}
	good.Levels = []steps.Level{{Drawn: 4, Samples: 7}, {Drawn: 7, Samples: 1}}
	if err := good.Check(); err != nil {
		t.Error(err)
	}
	for _, g := range []steps.Groups{
		{Dataset: -1, Pool: 5, Samples: 10},
		{Pool: 0, Samples: 10},
		{Pool: 5, Samples: 0},
		{Pool: 5, Samples: 10, Levels: []steps.Level{{Drawn: 11, Samples: 5}}},
		{Pool: 5, Samples: 10, Levels: []steps.Level{{Drawn: 5, Samples: 0}}},
		{Pool: 5, Samples: 10, Levels: []steps.Level{{Drawn: 5, Samples: 4}, {Drawn: 5, Samples: 4}}},
		{Pool: 5, Samples: 10, Levels: make([]steps.Level, steps.MaxDepth+1)},
	} {
		if g.Check() == nil {
			t.Errorf("%+v is taken", g)
		}
	}
}
