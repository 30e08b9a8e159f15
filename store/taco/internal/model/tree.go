package model

// Group sorts rows by their n parents, in storage order within each parent. The children of parent
// p are rows[first[p]:first[p+1]].
func Group(parents []int32, n int) (first, rows []int32) {
	first = make([]int32, n+1)
	for _, p := range parents {
		first[p+1]++
	}
	for p := range n {
		first[p+1] += first[p]
	}
	next := append([]int32(nil), first[:n]...)
	rows = make([]int32, len(parents))
	for i, p := range parents {
		rows[next[p]] = int32(i)
		next[p]++
	}
	return first, rows
}
