//go:build !purego && !twins

package picture

import "testing"

func TestUnfilterWithoutVectors(t *testing.T) {
	if !hasAVX2 {
		t.Skip("this processor has none")
	}
	defer func() { hasAVX2 = true }()
	hasAVX2 = false
	TestUnfilterAgainstTheSpecification(t)
}
