package shuffle

import (
	"cmp"
	"slices"

	"github.com/chaski-eo/chaski/shuffle/steps"
)

// Groups returns the groups of the plan's tickets: by the lanes of its blocks, or by pools of visits; ok is false if it
// has neither. Pools of other blocks last for hundreds of batches, for which one of several servers would work alone.
// Among the datasets with pools that
// are drawn at least a quarter as often as the most drawn one, the dataset leads whose pools last longest: groups then
// cut the pools of the others about once at most.
func (pl *Plan) Groups() (g steps.Groups, ok bool) {
	if lanes := pl.lanes(); lanes > 1 {
		return steps.Groups{Lanes: lanes, Samples: pl.Len()}, true
	}
	var leaders []leader
	top := leader{share: 1}
	if pl.take > 0 {
		top.levels = []steps.Level{{Drawn: pl.take, Samples: pl.nodes[0].n}}
	}
	pl.leaders(0, top, &leaders)
	largest := 0.0
	for _, found := range leaders {
		largest = max(largest, found.share)
	}
	longest := -1.0
	for _, pooled := range leaders {
		leaf := &pl.leaves[pooled.dataset]
		pool := pooled.blocks.PoolLen()
		lasts := float64(min(pool, leaf.n)) / pooled.share
		if 4*pooled.share < largest || lasts <= longest {
			continue
		}
		longest = lasts
		g = steps.Groups{Dataset: pooled.dataset, Pool: pool, Samples: pl.Len(), Levels: pooled.levels}
	}
	return g, len(leaders) > 0 && pl.Len() > 0
}

// lanes returns how many lanes of blocks the positions of an epoch have, 0 without blocks or in a mixture.
func (pl *Plan) lanes() int64 {
	only := &pl.leaves[0]
	if pl.nodes[0].word != nil || pl.take > 0 || pl.Len() == 0 || only.Blocks == nil {
		return 0
	}
	if _, visits := only.Sampler.Kind.(*Visits); visits {
		return 0
	}
	return int64(only.Blocks.Lanes)
}

// leader is a dataset that has pools.
type leader struct {
	dataset int
	blocks  *Blocks
	share   float64       // of all positions
	levels  []steps.Level // from the outermost mixture to it
}

// leaders appends the datasets with pools under a node to all.
func (pl *Plan) leaders(at int, l leader, all *[]leader) {
	nd := &pl.nodes[at]
	if nd.word == nil { // a dataset
		l.dataset = nd.leaf
		leaf := &pl.leaves[nd.leaf]
		if _, visits := leaf.Sampler.Kind.(*Visits); visits && nd.n > 0 {
			l.blocks = leaf.Blocks
			*all = append(*all, l)
		}
		return
	}
	for i, child := range nd.word.nodes {
		// The capacity is cut: siblings must not overwrite each other's level.
		levels := append(slices.Clip(l.levels), steps.Level{Drawn: nd.word.draws[i], Samples: pl.nodes[child].n})
		share := float64(nd.word.counts[i]) / float64(cmp.Or(nd.word.batch, WordLen))
		pl.leaders(child, leader{share: l.share * share, levels: levels}, all)
	}
}
