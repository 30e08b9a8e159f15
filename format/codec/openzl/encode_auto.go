package openzl

import (
	"math/bits"

	"github.com/chaski-eo/chaski/format/codec/openzl/internal/kernel"
)

// autoGraph is a graph that auto and best may choose.
type autoGraph struct {
	graph graphSpec
	costs costs     // with the fastest loops of PivCo, those for AVX-512
	slow  *[2]costs // of graphs with PivCo: with its loops in Go, and with those for AVX2
}

// costs are times to decode samples of 1, 2, 4 and 8 bytes, as multiples of the times of delta>zstd.
type costs [4]float64

// cost returns what the graph costs for samples of width bytes, on a processor that has some loops of PivCo.
func (c *autoGraph) cost(width int, loops kernel.PivcoLoops) float64 {
	column := bits.TrailingZeros(uint(width))
	if c.slow != nil && loops < kernel.PivcoAVX512 {
		return c.slow[loops][column]
	}
	return c.costs[column]
}

// candidates have the costs that TestSpeedsOfGraphs measured: processor time on an Intel Xeon (Sapphire Rapids, with
// AVX-512 VBMI2), 18 tiles of 256 by 256 of a Sentinel-2 scene, as bytes, uint16, float32 and float64. Costs depend on
// the samples: these order the graphs, and do not forecast.
//
// Only PivCo has loops that need more than AVX2. Its costs for AVX2 are the Xeon's times what the loops for AVX2 took
// in units of the loops for AVX-512 on one AMD EPYC with both (Zen 5), 1.07 to 1.24, where all other graphs took equal
// times to 0.04. Its costs in Go were measured on that EPYC without AVX2.
var candidates = []autoGraph{
	{graphSpec{end: "zstd"}, costs{0.9, 0.93, 1.04, 0.9}, nil},
	{graphSpec{predict: predictDelta, end: "zstd"}, costs{1, 1, 1, 1}, nil},
	{graphSpec{transpose: true, end: "zstd"}, costs{0.93, 0.6, 0.58, 0.88}, nil},
	{graphSpec{predict: predictDelta, transpose: true, end: "zstd"}, costs{0.97, 0.74, 0.95, 1.08}, nil},
	{graphSpec{predict: predictDelta, zigzag: true, transpose: true, end: "zstd"}, costs{1, 0.61, 0.79, 1.17}, nil},
	{graphSpec{transpose: true, end: "entropy"}, costs{0.66, 0.52, 0.83, 0.86}, nil},
	{graphSpec{predict: predictDelta, transpose: true, end: "entropy"}, costs{0.65, 0.77, 1.02, 1.19}, nil},
	{
		graphSpec{predict: predictDelta, zigzag: true, transpose: true, end: "entropy"},
		costs{0.67, 0.72, 1.28, 1.24}, nil,
	},
	{graphSpec{end: "bitpack"}, costs{0.28, 0.44, 0.73, 1.74}, nil},
	{graphSpec{predict: predictPlanar, zigzag: true, end: "zstd"}, costs{1.01, 1.07, 1.18, 1.03}, nil},
	{graphSpec{predict: predictPlanar, zigzag: true, transpose: true, end: "zstd"}, costs{1.02, 0.71, 0.82, 1.13}, nil},
	{
		graphSpec{predict: predictPlanar, zigzag: true, transpose: true, end: "entropy"},
		costs{0.65, 0.86, 1.45, 1.72}, nil,
	},
	{graphSpec{end: "pfor"}, costs{0.17, 0.19, 0.19, 0.26}, nil},
	{graphSpec{predict: predictPlanar, zigzag: true, end: "pfor"}, costs{0.38, 0.28, 0.27, 0.36}, nil},
	{
		graphSpec{transpose: true, end: "pivco"}, costs{0.3, 0.31, 0.49, 0.54},
		&[2]costs{{3.61, 2.21, 3.88, 4.38}, {0.37, 0.36, 0.58, 0.63}},
	},
	{
		graphSpec{predict: predictPlanar, zigzag: true, end: "pivco"}, costs{0.32, 0.54, 0.73, 0.75},
		&[2]costs{{5.25, 3.75, 5.33, 5.58}, {0.38, 0.59, 0.84, 0.84}},
	},
	{
		graphSpec{predict: predictPlanar, zigzag: true, transpose: true, end: "pivco"},
		costs{0.35, 0.57, 0.91, 1.3}, &[2]costs{{4.77, 3.28, 5.64, 6.57}, {0.42, 0.63, 1, 1.39}},
	},
}

// tried is how many samples auto tries graphs on: half a tile of 256 by 256.
const tried = 1 << 15

// choose sets e.graph: constant if all samples are equal, otherwise the candidate that makes the middle
// rows of the raster smallest.
func (e *Encoder) choose(samples []byte, width, h, w int) {
	if len(samples) > 0 && firstOther(samples, width) == len(samples) {
		e.graph = graphSpec{end: "constant"}
		return
	}
	best := graphSpec{end: "store"}
	rows := h
	if h*w > tried {
		rows = max(1, tried/w)
	}
	part := samples[(h-rows)/2*w*width:][:rows*w*width]
	size := len(part) + storeOverhead
	for i := range candidates {
		candidate := &candidates[i]
		cost := candidate.cost(width, e.loops)
		if candidate.graph.geozl() > e.opt.Geozl || e.opt.MaxCost > 0 && cost > e.opt.MaxCost {
			continue
		}
		e.graph = candidate.graph
		var err error
		if e.trial, err = e.encode(e.trial[:0], part, width, w); err == nil && len(e.trial) < size {
			best, size = candidate.graph, len(e.trial)
		}
	}
	e.graph = best
}

// firstOther returns the first byte that differs from the sample before, or the end of the samples.
func firstOther(samples []byte, width int) int {
	for i := width; i < len(samples); i++ {
		if samples[i] != samples[i-width] {
			return i
		}
	}
	return len(samples)
}
