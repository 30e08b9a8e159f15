// Package shuffle computes which sample is at a global position, and which window of it: pure
// functions of (seed, epoch, position) with O(1) time and memory, no stored permutation.
//
// A Spec of datasets (rows, subsets of rows, sequences in time), their samplers (whole chips; random, grid, resized and
// weighted windows; visits tile by tile; windows on the ground) and mixtures of them is compiled to a Plan. Plan.At
// returns the sample at a position, Plan.Window its window once the asset's size is known, and Plan.Substitute the
// substitute of a bad sample. They are built on Order and Window, and on the tickets of package steps. Split makes the
// subsets.
//
// Not supported: weighted, resized or grid windows in the tile-aware order; weights of rows in a
// mixture (RowWeights).
//
// docs/order.md defines every function here exactly. The Python package computes the order and random windows too, and
// both are tested against the vectors in testdata/order.json. A change of any result needs a new Version
// and breaks resuming.
package shuffle

// Domains keep the uses of a hash apart: equal words in different domains are independent.
const (
	// The numbers are part of the order: they must not change, and new domains get new numbers,
	// otherwise two uses would draw the same words.
	domainOrder      = 1
	domainWindow     = 2
	domainResized    = 3
	domainWeighted   = 4
	domainText       = 5
	domainCell       = 6
	domainSource     = 7
	domainWord       = 8
	domainPool       = 9
	domainVisit      = 10
	domainCorner     = 11
	domainTransform  = 12
	domainSubstitute = 13
	domainBatch      = 14
	domainGround     = 15
	domainBlock      = 16
	domainSide       = 17
	domainView       = 18
	domainRow        = 19
	domainOnce       = 20
)
