package openzl

// candidate is a graph that auto may choose.
type candidate struct {
	graph graphSpec
	speed float64 // MB of 16-bit samples per second that one core decodes, about
}

var candidates = []candidate{
	{graphSpec{end: "zstd"}, 700},
	{graphSpec{predict: predictDelta, end: "zstd"}, 650},
	{graphSpec{transpose: true, end: "zstd"}, 700},
	{graphSpec{predict: predictDelta, transpose: true, end: "zstd"}, 600},
	{graphSpec{predict: predictDelta, zigzag: true, transpose: true, end: "zstd"}, 600},
	{graphSpec{transpose: true, end: "entropy"}, 800},
	{graphSpec{predict: predictDelta, transpose: true, end: "entropy"}, 700},
	{graphSpec{predict: predictDelta, zigzag: true, transpose: true, end: "entropy"}, 700},
	{graphSpec{end: "bitpack"}, 3000},
	{graphSpec{predict: predictPlanar, zigzag: true, end: "zstd"}, 500},
	{graphSpec{predict: predictPlanar, zigzag: true, transpose: true, end: "zstd"}, 500},
	{graphSpec{predict: predictPlanar, zigzag: true, transpose: true, end: "entropy"}, 650},
}

// tried is how many samples auto tries graphs on: half a tile of 256 by 256.
const tried = 1 << 15

// choose sets e.graph: constant if all samples are equal, otherwise the candidate that makes the middle
// rows of the raster smallest.
func (e *Encoder) choose(samples []byte, width, h, w int) {
	if len(samples) > 0 && allEqual(samples, width) {
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
	for _, c := range candidates {
		if c.graph.geozl() > e.opt.Geozl || c.speed < e.opt.MinSpeed {
			continue
		}
		e.graph = c.graph
		var err error
		if e.trial, err = e.encode(e.trial[:0], part, width, w); err == nil && len(e.trial) < size {
			best, size = c.graph, len(e.trial)
		}
	}
	e.graph = best
}

func allEqual(samples []byte, width int) bool {
	for i := width; i < len(samples); i++ {
		if samples[i] != samples[i-width] {
			return false
		}
	}
	return true
}
