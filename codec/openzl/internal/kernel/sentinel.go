package kernel

import numbers "github.com/chaski-eo/chaski/internal/kernel"

// Sentinel writes the numbers of from bytes in values to dst as numbers of to bytes, and replaces every
// sentinel by the next number of exceptions, of to bytes. It reports whether there are exactly as many
// exceptions as sentinels. dst has as many numbers as values.
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

// Sparse fills dst: for every distance, a number of width bytes, it writes that many copies of dominant and
// then the next number of values, if there is one. dst has exactly the bytes needed.
func Sparse(dst, distances, values, dominant []byte, width int) {
	w := len(dominant)
	for i := range len(distances) / width {
		n := int(LE(distances, i, width)) * w
		if n > 0 {
			numbers.Fill(dst[:n], dominant)
			dst = dst[n:]
		}
		if len(values) > 0 {
			dst = dst[copy(dst, values[:w]):]
			values = values[w:]
		}
	}
}
