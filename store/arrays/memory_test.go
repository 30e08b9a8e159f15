package arrays

import (
	"testing"

	"github.com/chaski-eo/chaski/fault"
)

// TestMostOfAStore: the metadata of a store is bounded without a budget, too.
func TestMostOfAStore(t *testing.T) {
	m := newMemory(nil, 1, maxHeld)
	if err := m.take(t.Context(), maxHeld); err != nil {
		t.Error(err)
	}
	if err := m.take(t.Context(), 1); fault.KindOf(err) != fault.Limit {
		t.Errorf("more than a store may hold: %v", err)
	}
}
