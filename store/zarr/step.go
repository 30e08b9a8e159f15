package zarr

import "github.com/chaski-eo/chaski/chunk"

// step undoes one codec of a chunk.
type step struct {
	name string
	do   action
	size int // bytes of the output; of the last step the chunk itself; -1 for a checksum around a compressor
	elem int // bytes of a value, where the codec has values
	// The types of the filters delta and fixedscaleoffset: of the output and of the stored values.
	to, from     number
	scale, shift float64
}

// number is a type of a filter's values.
type number struct {
	t   chunk.DType
	big bool
}

// action is how a step is undone.
type action uint8

const (
	doZstd action = iota
	doGzip
	doZlib
	doBzip2
	doLZ4
	doBlosc
	doCRC32C
	doFletcher32
	doShuffle
	doDelta
	doScale
	doSwap
)

// compresses reports whether the size of an action's input does not follow from the size of its output.
func (a action) compresses() bool { return a <= doBlosc }

// sums reports whether an action checks and removes a checksum at the end of its input.
func (a action) sums() bool { return a == doCRC32C || a == doFletcher32 }

// shard is one level of sharding: an object, or a chunk of an outer shard, that holds a grid of chunks.
type shard struct {
	inner   []int64 // cells of a chunk of its grid
	grid    []int64 // chunks along each dimension
	atStart bool    // the index comes first
	big     bool    // its numbers are big-endian
	sum     bool    // it ends with a CRC-32C
}

// known reports whether the filter's types are implemented.
func (s *step) known() bool {
	switch s.do {
	case doScale: // whole numbers are scaled as float64, as numpy does; float32 would round as float32
		return !isFloat(s.from.t) && (s.to.t == chunk.Float32 || s.to.t == chunk.Float64)
	case doDelta:
		return !isFloat(s.from.t) && !isFloat(s.to.t) || s.from.t == s.to.t && s.to.t != chunk.Float16
	}
	return true
}

// storedSize returns the bytes that a chunk has in its object, or -1 if it is compressed.
func storedSize(steps []step, decoded int) int {
	if len(steps) == 0 {
		return decoded
	}
	switch step := &steps[0]; {
	case step.do.compresses(), step.size < 0:
		return -1
	case step.do.sums():
		return step.size + sumBytes
	case step.do == doDelta, step.do == doScale:
		return step.size / step.to.t.Size() * step.from.t.Size()
	default:
		return step.size
	}
}
