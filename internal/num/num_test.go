package num

import (
	"slices"
	"testing"
)

func TestRange(t *testing.T) {
	if got := Range[int32](3, 6); !slices.Equal(got, []int32{3, 4, 5}) {
		t.Errorf("3 to 6: %v", got)
	}
	if got := Range[int](0, 0); len(got) > 0 {
		t.Errorf("0 to 0: %v", got)
	}
}

func TestAs(t *testing.T) {
	if got := As[int64]([]int32{-1, 7}); !slices.Equal(got, []int64{-1, 7}) {
		t.Errorf("int32 as int64: %v", got)
	}
	if got := As[float32]([]float64{0.1}); !slices.Equal(got, []float32{float32(0.1)}) {
		t.Errorf("float64 as float32: %v", got)
	}
}

func TestPick(t *testing.T) {
	if got := Pick([]string{"a", "b", "c"}, []uint8{2, 0, 2}); !slices.Equal(got, []string{"c", "a", "c"}) {
		t.Errorf("positions 2, 0 and 2: %q", got)
	}
}
