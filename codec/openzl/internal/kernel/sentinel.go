package kernel

// Sentinel writes the numbers of from bytes in values to dst as numbers of to bytes, and where one
// is the sentinel the next of exceptions, numbers of to bytes. It reports whether that takes all
// exceptions and no more. dst has one number for each in values.
func Sentinel(dst, values, exceptions []byte, from, to int, sentinel uint64) bool {
	used, n := 0, len(exceptions)/to
	for i := range len(values) / from {
		v := LE(values, i, from)
		if v == sentinel {
			if used == n {
				return false
			}
			v = LE(exceptions, used, to)
			used++
		}
		PutLE(dst, i, to, v)
	}
	return used == n
}

// Sparse fills dst: for every distance, a number of width bytes, as many copies of dominant,
// followed by the next number of values, if there is one. dst has just the bytes for that.
func Sparse(dst, distances, values, dominant []byte, width int) {
	w := len(dominant)
	for i := range len(distances) / width {
		n := int(LE(distances, i, width)) * w
		if n > 0 {
			Repeat(dst[:n], dominant)
			dst = dst[n:]
		}
		if len(values) > 0 {
			dst = dst[copy(dst, values[:w]):]
			values = values[w:]
		}
	}
}
