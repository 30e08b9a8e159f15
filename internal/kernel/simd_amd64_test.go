//go:build !purego && !twins

package kernel

import "testing"

// TestWithoutVectors: the tests of the vector loops also pass without vector instructions.
func TestWithoutVectors(t *testing.T) {
	if !hasAVX2 {
		t.Skip("this processor has none")
	}
	avx2, halfs := hasAVX2, hasHalfs
	defer func() { hasAVX2, hasHalfs = avx2, halfs }()
	hasAVX2, hasHalfs = false, false
	t.Run("horizontal", TestUndoHorizontalUndoesThePredictor)
	t.Run("strided sums", TestStridedSumsAgainstTheObviousLoop)
	t.Run("strided copy", TestStridedCopyAgainstTheObviousLoop)
	t.Run("float", TestUndoFloatPredictorUndoesThePredictor)
	t.Run("load", TestLoadAgainstExactValues)
	t.Run("store", TestStoreAndCopyAndRepeat)
	t.Run("clip", TestClip)
	t.Run("valid", TestValidAgainstHit)
	hasAVX2 = avx2
	t.Run("rows", TestRowsAgainstTheTwin)
}
