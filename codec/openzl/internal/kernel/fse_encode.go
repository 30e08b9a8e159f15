package kernel

import (
	"math"
	"math/bits"
)

// FSENormalize scales the counts of the symbols to a sum of 1<<log; each symbol that occurs gets at least 1.
// It returns the scaled counts, the number of symbols up to the last that occurs, and the bits that all
// symbols take. At least two symbols must occur, and at most 1<<log.
func FSENormalize(counts *[256]uint32, log int) (norm [256]int16, n int, total float64) {
	var sum uint64
	for _, c := range counts {
		sum += uint64(c)
	}
	size := 1 << log
	left := size
	for s, c := range counts {
		if c > 0 {
			v := max(1, int((uint64(c)<<log+sum/2)/sum))
			norm[s] = int16(v)
			left -= v
			n = s + 1
		}
	}
	// Rounding leaves a surplus or a deficit. It goes to the symbols where one state more or less changes
	// the size of the stream the least, or gains the most.
	for ; left != 0; left -= sign(left) {
		best, cost := -1, math.Inf(1)
		for s, c := range counts {
			if c == 0 || left < 0 && norm[s] == 1 {
				continue
			}
			k := float64(c) / float64(norm[s])
			if left > 0 {
				k = -k
			}
			if k < cost {
				best, cost = s, k
			}
		}
		norm[best] += int16(sign(left))
	}
	for s, c := range counts {
		if c > 0 {
			total += float64(c) * (float64(log) - math.Log2(float64(norm[s])))
		}
	}
	return norm, n, total
}

func sign(v int) int {
	if v < 0 {
		return -1
	}
	return 1
}

// FSELog returns a good logarithm of the number of states for n symbols with values up to last.
func FSELog(n, last int) int {
	log := min(11, bits.Len(uint(n-1))-3)
	smallest := min(bits.Len(uint(n)), bits.Len(uint(last))+1)
	return max(log, smallest, MinFSELog)
}

// AppendFSECounts appends norm to dst in the form that fse.Counts reads. No count may be negative.
func AppendFSECounts(dst []byte, norm []int16) []byte {
	size := 0
	for _, v := range norm {
		size += int(v)
	}
	w := bitWriter{dst: dst}
	w.put(uint64(bits.Len(uint(size))-1-MinFSELog), 4)
	left, limit := size+1, size
	for i := 0; left > 1; {
		v := int(norm[i]) + 1
		i++
		short := 2*limit - 1 - left
		width := uint(bits.Len(uint(limit)) - 1)
		switch {
		case v < short:
			w.put(uint64(v), width)
		case v < limit:
			w.put(uint64(v), width+1)
		default:
			w.put(uint64(v+short), width+1)
		}
		w.flush()
		v--
		left -= v
		for left < limit && limit > 1 {
			limit >>= 1
		}
		if v != 0 {
			continue
		}
		zeros := 0
		for norm[i] == 0 {
			zeros++
			i++
		}
		for ; zeros >= 3; zeros -= 3 {
			w.put(3, 2)
			w.flush()
		}
		w.put(uint64(zeros), 2)
		w.flush()
	}
	w.held = (w.held + 7) &^ 7
	w.flush()
	return w.dst
}

// AppendFSE codes src with 2 or 4 states and appends it to dst in the form that FSETable.Decode reads with
// counts norm. src has at least as many bytes as states, and only symbols that have a count.
func AppendFSE(dst, src []byte, norm []int16, states int) []byte {
	var t FSETable
	t.Build(norm)
	size := 1 << t.log
	// For every symbol its states in order, and where they begin.
	var begin, next [256]int
	pos := 0
	for s, v := range norm {
		begin[s], next[s] = pos, pos
		pos += int(v)
	}
	var order [1 << MaxFSELog]uint16
	for i, e := range t.t[:size] {
		order[next[e.sym]] = uint16(size + i)
		next[e.sym]++
	}
	// A symbol of count v goes from state x to the one that has x>>n, which lies in v to 2v-1: n is
	// high for x from 1<<high*v on, one less below.
	type symbol struct {
		from  int // of its states in order, less its count
		least uint32
		high  uint8
	}
	var symbols [256]symbol
	for s, v := range norm {
		if v > 0 {
			high := t.log - bits.Len16(uint16(v)) + 1
			symbols[s] = symbol{begin[s] - int(v), uint32(v) << high, uint8(high)}
		}
	}
	var x [4]uint32
	mask := states - 1
	i := len(src) - 1
	for range states {
		// Any state of the symbol would decode, but the first one needs bits, so that it marks the end.
		x[i&mask] = uint32(order[begin[src[i]]])
		i--
	}
	w := bitWriter{dst: dst}
	for ; i >= 0; i-- {
		s := &symbols[src[i]]
		v := x[i&mask]
		n := uint(s.high)
		if v < s.least {
			n--
		}
		w.put(uint64(v)&(1<<n-1), n)
		x[i&mask] = uint32(order[s.from+int(v>>n)])
		if w.held > 48 {
			w.flush()
		}
	}
	for i := states - 1; i >= 0; i-- {
		w.flush()
		w.put(uint64(x[i])-uint64(size), uint(t.log))
	}
	return w.close()
}
