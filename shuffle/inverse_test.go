package shuffle

import (
	"github.com/chaski-eo/chaski/internal/splitmix"
)

// The inverse of an order, by which tests find samples. No program needs it.

// Position returns the position of sample i: the inverse of At.
func (o *Order) Position(i int64) int64 {
	o.check(i)
	if !o.shuffled {
		return i
	}
	x := uint64(i)
	for {
		x = o.backward(x)
		if x < o.n {
			return int64(x)
		}
	}
}

func (o *Order) backward(x uint64) uint64 {
	lo, hi := x&(1<<o.low-1), x>>o.low
	for i := rounds - 2; i >= 0; i -= 2 {
		lo ^= splitmix.Mix(o.keys[i+1]^hi) & (1<<o.low - 1)
		hi ^= splitmix.Mix(o.keys[i]^lo) & (1<<o.top - 1)
	}
	return hi<<o.low | lo
}
