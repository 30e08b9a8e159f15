package pixels

import "github.com/chaski-eo/chaski/fault"

// BoundedBytes returns the product of factors, or -1 if it is over bound. Factors below 1 count as 1.
func BoundedBytes(bound int64, factors ...int) int64 {
	n := int64(1)
	for _, f := range factors {
		if int64(f) > bound/n { // a division, because n*f could overflow with the sizes of a hostile file
			return -1
		}
		n *= max(int64(f), 1)
	}
	return n
}

// Align64 rounds n up to a multiple of 64, the alignment of tensors in a batch.
func Align64(n int) int { return (n + 63) &^ 63 }

// Int64s returns s as int64, the type that shapes have in messages.
func Int64s(s []int) []int64 {
	out := make([]int64, len(s))
	for i, v := range s {
		out[i] = int64(v)
	}
	return out
}

// OverMemory returns the error for a batch that is over the memory. each describes one row of it.
func OverMemory(part string, rows int, each string, bound int64) error {
	return fault.New(fault.Limit, part, fault.NoOffset,
		"%d rows%s are over the %d bytes of batch memory: raise the memory, or take smaller batches", rows, each, bound)
}
