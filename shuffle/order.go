package shuffle

import (
	"math/bits"

	"github.com/chaski-eo/chaski/internal/splitmix"
)

const (
	// rounds of the Feistel network. Four fail the tests of this package and six pass them. Twelve
	// leave a margin, because a change would be a new Version.
	rounds = 12
	// minBits is the smallest size of the network. Halves of fewer than three bits have too few
	// functions to choose from, so the orders of small epochs would not be uniform.
	minBits = 6
)

// Order is a permutation of [0, N): a Feistel network over the smallest power of two that holds N
// (at least 64), walked until it lands inside (cycle walking; fewer than two steps on average where
// N is over 32).
// The zero value is the empty order. It is a value: copy it freely, use it from any goroutine.
type Order struct {
	n        uint64
	low, top uint // bits of the two halves
	shuffled bool
	keys     [rounds]uint64
}

// NewOrder returns the order of epoch of n samples. Without shuffled it is the identity.
// It panics if n is negative.
func NewOrder(seed, epoch uint64, n int64, shuffled bool) Order {
	if n < 0 {
		panic("shuffle: negative number of samples")
	}
	if !shuffled {
		return Order{n: uint64(n)}
	}
	return permutation(splitmix.Hash(seed, domainOrder, epoch), n)
}

// permutation returns the network of n with the keys hash(..., i), where h is hash(...).
func permutation(h uint64, n int64) Order {
	order := Order{n: uint64(n), shuffled: n > 1}
	if !order.shuffled {
		return order
	}
	width := max(uint(bits.Len64(uint64(n-1))), minBits)
	order.low = width / 2
	order.top = width - order.low
	for i := range order.keys {
		order.keys[i] = splitmix.Further(h, uint64(i))
	}
	return order
}

// At returns the sample at position p. It panics unless 0 <= p < N.
func (o *Order) At(p int64) int64 { return o.walked(p, (*Order).forward) }

// Position returns the position of sample i: the inverse of At. It panics unless 0 <= i < N.
func (o *Order) Position(i int64) int64 { return o.walked(i, (*Order).backward) }

// walked returns the first number below n to which a network leads from i.
func (o *Order) walked(i int64, network func(*Order, uint64) uint64) int64 {
	o.check(i)
	if !o.shuffled {
		return i
	}
	x := uint64(i)
	// The walk ends, because the network is a bijection: the cycle through x returns to x, which is
	// below n.
	for {
		x = network(o, x)
		if x < o.n {
			return int64(x)
		}
	}
}

func (o *Order) check(p int64) {
	if p < 0 || uint64(p) >= o.n {
		panic("shuffle: position outside the epoch")
	}
}

// forward applies the network once. Even rounds change the top half, odd rounds the low one.
func (o *Order) forward(x uint64) uint64 {
	lo, hi := x&(1<<o.low-1), x>>o.low
	for i := 0; i < rounds; i += 2 {
		hi ^= splitmix.Mix(o.keys[i]^lo) & (1<<o.top - 1)
		lo ^= splitmix.Mix(o.keys[i+1]^hi) & (1<<o.low - 1)
	}
	return hi<<o.low | lo
}

// backward undoes forward.
func (o *Order) backward(x uint64) uint64 {
	lo, hi := x&(1<<o.low-1), x>>o.low
	for i := rounds - 2; i >= 0; i -= 2 {
		lo ^= splitmix.Mix(o.keys[i+1]^hi) & (1<<o.low - 1)
		hi ^= splitmix.Mix(o.keys[i]^lo) & (1<<o.top - 1)
	}
	return hi<<o.low | lo
}
