package shuffle

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"sort"
)

// MaxSamples bounds the samples of a dataset to half of int64, so the position past the end of a
// ticket still fits.
const MaxSamples = 1 << 62

// Runs lays the samples of items (rows, sequences) end to end: the samples of item 0, then of
// item 1, and so on. It takes 8 bytes per item, or nothing if all items have the same number of
// samples. The zero value has no items. Runs are immutable and may be used from any goroutine.
type Runs struct {
	items, each int64
	ends        []int64 // samples up to and including each item; nil if every item has each samples
}

// EqualRuns returns the runs of items with each samples per item. It returns an error if a number is
// negative or the samples are more than MaxSamples.
func EqualRuns(items, each int64) (Runs, error) {
	if items < 0 || each < 0 {
		return Runs{}, fmt.Errorf("%d items with %d samples each", items, each)
	}
	if each > 0 && items > MaxSamples/each {
		return Runs{}, fmt.Errorf("%d items with %d samples each are more than %d samples", items, each,
			int64(MaxSamples))
	}
	return Runs{items: items, each: each}, nil
}

// NewRuns returns the runs of items, where item i has count(i) samples, which may be 0.
func NewRuns(items int64, count func(i int64) int64) (Runs, error) {
	if items <= 0 {
		return EqualRuns(items, 0)
	}
	first, total, i := count(0), int64(0), int64(0)
	for ; i < items && count(i) == first; i++ {
		continue
	}
	if i == items {
		return EqualRuns(items, first)
	}
	ends := make([]int64, items)
	for i := range ends {
		n := count(int64(i))
		if n < 0 || n > MaxSamples-total {
			return Runs{}, fmt.Errorf("item %d has %d samples after %d: at most %d in all", i, n, total,
				int64(MaxSamples))
		}
		total += n
		ends[i] = total
	}
	return Runs{items: items, ends: ends}, nil
}

// Items returns the number of items.
func (r *Runs) Items() int64 { return r.items }

// Len returns the number of samples.
func (r *Runs) Len() int64 {
	if r.ends == nil {
		return r.items * r.each
	}
	return r.ends[len(r.ends)-1]
}

// Count returns the number of samples of an item.
func (r *Runs) Count(item int64) int64 {
	if r.ends == nil {
		return r.each
	}
	return r.ends[item] - r.Index(item, 0)
}

// At returns the item of sample i and the sample's number in it. It panics unless 0 <= i < Len().
func (r *Runs) At(i int64) (item, sub int64) {
	if i < 0 || i >= r.Len() {
		panic("shuffle: sample outside the runs")
	}
	if r.ends == nil {
		return i / r.each, i % r.each
	}
	item = int64(sort.Search(len(r.ends), func(k int) bool { return r.ends[k] > i }))
	return item, i - r.Index(item, 0)
}

// Index returns the sample that is number sub of item: the inverse of At.
func (r *Runs) Index(item, sub int64) int64 {
	switch {
	case r.ends == nil:
		return item*r.each + sub
	case item == 0:
		return sub
	default:
		return r.ends[item-1] + sub
	}
}

// Apportion divides total into whole parts in proportion to weights, each part at least 1, by the
// largest remainder (Hamilton's method; ties go to the first). Specs hold its result, never the
// weights, so an order depends on integers only. Apportion returns an error if a weight is not
// positive and finite, or if there are more weights than parts.
func Apportion(total int64, weights []float64) ([]int64, error) {
	sum := 0.0
	for _, weight := range weights {
		if !(weight > 0) || math.IsInf(weight, 1) {
			return nil, fmt.Errorf("weight %v is not positive and finite", weight)
		}
		sum += weight
	}
	switch {
	case len(weights) == 0:
		return nil, errors.New("no weights")
	// Above 2^52 a float64 has no fraction left for the remainders.
	case int64(len(weights)) > total || total > 1<<52:
		return nil, fmt.Errorf("%d weights for %d parts", len(weights), total)
	case math.IsInf(sum, 1):
		return nil, errors.New("the sum of the weights is not finite")
	}
	parts, rest := make([]int64, len(weights)), make([]float64, len(weights))
	left := total
	for i, weight := range weights {
		// The conversions prevent a fused multiply-add, which would round otherwise on some machines.
		quota := float64(float64(total) * float64(weight/sum))
		parts[i] = int64(math.Floor(quota))
		rest[i] = quota - math.Floor(quota)
		left -= parts[i]
	}
	for ; left > 0; left-- {
		i := indexOfLargest(rest)
		parts[i]++
		rest[i]--
	}
	// A source with an empty part would be left out, so it takes one from the largest.
	for i := range parts {
		if parts[i] == 0 {
			parts[i], left = 1, left-1
		}
	}
	for ; left < 0; left++ {
		parts[indexOfLargest(parts)]--
	}
	return parts, nil
}

// Temperature returns the weights N^(1/t) of sources of N samples: in proportion to their sizes at
// t = 1, equal as t grows. It is an error if t or a size is not positive.
func Temperature(sizes []int64, t float64) ([]float64, error) {
	if !(t > 0) {
		return nil, fmt.Errorf("temperature %v is not positive", t)
	}
	weights := make([]float64, len(sizes))
	// Sizes are divided by the largest one, because N^(1/t) would overflow for small t.
	largest := float64(slices.Max(append([]int64{1}, sizes...)))
	for i, size := range sizes {
		if size <= 0 {
			return nil, fmt.Errorf("source %d has %d samples", i, size)
		}
		weights[i] = math.Max(math.Pow(float64(size)/largest, 1/t), math.SmallestNonzeroFloat64)
	}
	return weights, nil
}

// indexOfLargest returns the index of the first of the largest values.
func indexOfLargest[T int64 | float64](v []T) int {
	largest := 0
	for i, value := range v {
		if value > v[largest] {
			largest = i
		}
	}
	return largest
}
