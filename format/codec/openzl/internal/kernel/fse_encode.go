package kernel

import (
	"math"
	"math/bits"
)

// FSENormalize scales the counts of the symbols to a sum of 1<<log; each symbol that occurs gets at least 1.
// It returns the scaled counts, the number of symbols up to the last that occurs, and the bits that all
// symbols take. At least two symbols must occur, and at most 1<<log.
func FSENormalize(counts *[256]uint32, log int) (norm [256]int16, used int, total float64) {
	var sum uint64
	for _, count := range counts {
		sum += uint64(count)
	}
	size := 1 << log
	left := size
	for symbol, count := range counts {
		if count > 0 {
			scaled := max(1, int((uint64(count)<<log+sum/2)/sum))
			norm[symbol] = int16(scaled)
			left -= scaled
			used = symbol + 1
		}
	}
	// Rounding leaves a surplus or a deficit. It goes to the symbols where one state more or less changes
	// the size of the stream the least, or gains the most.
	for ; left != 0; left -= sign(left) {
		best, cost := -1, math.Inf(1)
		for symbol, count := range counts {
			if count == 0 || left < 0 && norm[symbol] == 1 {
				continue
			}
			price := float64(count) / float64(norm[symbol])
			if left > 0 {
				price = -price
			}
			if price < cost {
				best, cost = symbol, price
			}
		}
		norm[best] += int16(sign(left))
	}
	for symbol, count := range counts {
		if count > 0 {
			total += float64(count) * (float64(log) - math.Log2(float64(norm[symbol])))
		}
	}
	return norm, used, total
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
	for _, count := range norm {
		size += int(count)
	}
	writer := bitWriter{dst: dst}
	writer.put(uint64(bits.Len(uint(size))-1-MinFSELog), 4)
	left, limit := size+1, size
	for i := 0; left > 1; {
		coded := int(norm[i]) + 1
		i++
		short := 2*limit - 1 - left
		width := uint(bits.Len(uint(limit)) - 1)
		switch {
		case coded < short:
			writer.put(uint64(coded), width)
		case coded < limit:
			writer.put(uint64(coded), width+1)
		default:
			writer.put(uint64(coded+short), width+1)
		}
		writer.flush()
		coded--
		left -= coded
		for left < limit && limit > 1 {
			limit >>= 1
		}
		if coded != 0 {
			continue
		}
		zeros := 0
		for norm[i] == 0 {
			zeros++
			i++
		}
		for ; zeros >= 3; zeros -= 3 {
			writer.put(3, 2)
			writer.flush()
		}
		writer.put(uint64(zeros), 2)
		writer.flush()
	}
	writer.bits = (writer.bits + 7) &^ 7
	writer.flush()
	return writer.dst
}

// AppendFSE codes src with 2 or 4 states and appends it to dst in the form that FSETable.Decode reads with
// counts norm. src has at least as many bytes as states, and only symbols that have a count.
func AppendFSE(dst, src []byte, norm []int16, states int) []byte {
	var table FSETable
	table.Build(norm)
	size := 1 << table.log
	// For every symbol its states in order, and where they begin.
	var begin, next [256]int
	pos := 0
	for s, count := range norm {
		begin[s], next[s] = pos, pos
		pos += int(count)
	}
	var order [1 << MaxFSELog]uint16
	for i, state := range table.t[:size] {
		order[next[state.sym]] = uint16(size + i)
		next[state.sym]++
	}
	// A symbol of count v goes from state x to the one that has x>>n, which lies in v to 2v-1: n is
	// high for x from 1<<high*v on, one less below.
	type symbol struct {
		from  int // of its states in order, less its count
		least uint32
		high  uint8
	}
	var symbols [256]symbol
	for s, count := range norm {
		if count > 0 {
			high := table.log - bits.Len16(uint16(count)) + 1
			symbols[s] = symbol{begin[s] - int(count), uint32(count) << high, uint8(high)}
		}
	}
	var current [4]uint32
	mask := states - 1
	i := len(src) - 1
	for range states {
		// Any state of the symbol would decode, but the first one needs bits, so it marks the end.
		current[i&mask] = uint32(order[begin[src[i]]])
		i--
	}
	writer := bitWriter{dst: dst}
	for ; i >= 0; i-- {
		entry := &symbols[src[i]]
		state := current[i&mask]
		width := uint(entry.high)
		if state < entry.least {
			width--
		}
		writer.put(uint64(state)&(1<<width-1), width)
		current[i&mask] = uint32(order[entry.from+int(state>>width)])
		if writer.bits > 48 {
			writer.flush()
		}
	}
	for i := states - 1; i >= 0; i-- {
		writer.flush()
		writer.put(uint64(current[i])-uint64(size), uint(table.log))
	}
	return writer.close()
}
