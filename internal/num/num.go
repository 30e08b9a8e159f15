// Package num computes with whole numbers and makes slices: of numbers, and of values by their numbers.
package num

// Number is a type of row numbers, indices and samples.
type Number interface {
	~int | ~int32 | ~int64 | ~uint32 | ~float32 | ~float64
}

// Common returns the greatest common divisor of two numbers that are not negative.
func Common[T ~int | ~int64](a, b T) T {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// Range returns lo, lo+1, …, hi-1.
func Range[T Number](lo, hi int) []T {
	out := make([]T, hi-lo)
	for i := range out {
		out[i] = T(lo + i)
	}
	return out
}

// As returns the numbers of a slice as another type.
func As[T, S Number](list []S) []T {
	out := make([]T, len(list))
	for i, v := range list {
		out[i] = T(v)
	}
	return out
}

// Pick returns the values at some positions, in the order of these.
func Pick[T any, I ~int | ~int32 | ~uint8 | ~uint32](values []T, at []I) []T {
	out := make([]T, len(at))
	for i, k := range at {
		out[i] = values[k]
	}
	return out
}
