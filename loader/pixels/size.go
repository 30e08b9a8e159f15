package pixels

// BoundedBytes returns the product of factors, none of which counts less than 1, or -1 if it is over bound.
func BoundedBytes(bound int64, factors ...int) int64 {
	n := int64(1)
	for _, f := range factors {
		if int64(f) > bound/n {
			return -1
		}
		n *= max(int64(f), 1)
	}
	return n
}

func Align64(n int) int { return (n + 63) &^ 63 }

func Int64s(s []int) []int64 {
	out := make([]int64, len(s))
	for i, v := range s {
		out[i] = int64(v)
	}
	return out
}
