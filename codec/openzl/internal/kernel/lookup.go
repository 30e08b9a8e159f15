package kernel

// Lookup replaces every byte of b by its entry in t and reports whether all were below n.
func Lookup(b []byte, t *[256]byte, n int) bool {
	var highest byte
	for i, v := range b {
		highest = max(highest, v)
		b[i] = t[v]
	}
	return int(highest) < n || len(b) == 0
}
