package loader

import (
	"bytes"
	"testing"

	"github.com/chaski-eo/chaski/internal/invariants"
	"github.com/chaski-eo/chaski/loader/batch"
)

// TestMemoryThatIsGivenUp: a buffer that comes back is overwritten, and one that comes back twice
// ends the program. A discarded buffer may still be read by another process, so it does not change.
func TestMemoryThatIsGivenUp(t *testing.T) {
	if !invariants.Enabled {
		t.Skip("needs the build tag invariants")
	}
	m := newMemory(1000, batch.NewHeap, nil, 0, func() {})
	take := func() batch.Buffer {
		return mustTake(t, m, 100)
	}
	kept, discarded := take(), take()
	m.give(discarded, false)
	if !bytes.Equal(discarded.Bytes(), make([]byte, 100)) {
		t.Error("a discarded buffer is overwritten")
	}
	m.give(kept, true)
	if !bytes.Equal(kept.Bytes(), bytes.Repeat([]byte{invariants.Overwritten}, 100)) {
		t.Error("a buffer that came back is not overwritten")
	}
	for _, keep := range []bool{true, false} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("a buffer comes back twice, keep is %t", keep)
				}
			}()
			m.give(kept, keep)
		}()
	}
}
