package kernel

// Lookup replaces every byte of values by its entry in t and reports whether all were below count.
func Lookup(values []byte, table *[256]byte, count int) bool {
	var highest byte
	for i, value := range values {
		highest = max(highest, value)
		values[i] = table[value]
	}
	return int(highest) < count || len(values) == 0
}
