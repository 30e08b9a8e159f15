package kernel

import numbers "github.com/chaski-eo/chaski/internal/kernel"

// Sentinel writes the numbers of from bytes in values to dst as numbers of to bytes, and replaces every
// sentinel by the next number of exceptions, of to bytes. It reports whether there are exactly as many
// exceptions as sentinels. dst has as many numbers as values.
func Sentinel(dst, values, exceptions []byte, from, to int, sentinel uint64) bool {
	used, count := 0, len(exceptions)/to
	for i := range len(values) / from {
		value := LE(values, i, from)
		if value == sentinel {
			if used == count {
				return false
			}
			value = LE(exceptions, used, to)
			used++
		}
		PutLE(dst, i, to, value)
	}
	return used == count
}

// Sparse fills dst: for every distance, a number of width bytes, it writes that many copies of dominant and
// then the next number of values, if there is one. dst has exactly the bytes needed.
func Sparse(dst, distances, values, dominant []byte, width int) {
	size := len(dominant)
	for i := range len(distances) / width {
		run := int(LE(distances, i, width)) * size
		if run > 0 {
			numbers.Fill(dst[:run], dominant)
			dst = dst[run:]
		}
		if len(values) > 0 {
			dst = dst[copy(dst, values[:size]):]
			values = values[size:]
		}
	}
}
