package shuffle

import (
	"fmt"
	"math"
)

// WordLen is the length of a mixture's word: proportions are whole parts of it.
const WordLen = 10_000

// Until says when an epoch of a mixture ends.
type Until uint8

const (
	// Shortest ends an epoch just before a source would come to its second epoch: that source gives
	// every sample once, the others a part.
	Shortest Until = iota
	// Longest ends an epoch when every source has given every sample at least once.
	Longest
	// Given is an epoch of Mixture.Length positions.
	Given
)

// Mixture draws from several sources in fixed proportions.
type Mixture struct {
	Sources []Source
	// Counts is how often each source stands in WordLen positions; they sum to WordLen and none is 0.
	// See Apportion and Temperature.
	Counts []int64
	Until  Until
	Length int64 // positions of an epoch, with Given
}

// word is a compiled mixture. Source i stands at counts[i] of WordLen slots, which repeat over an
// epoch, so that any WordLen consecutive positions of it have counts[i] of source i.
type word struct {
	counts  []int64
	drawn   []int64 // draws of each source in an epoch
	nodes   []int   // of the plan
	source  [WordLen]uint16
	rank    [WordLen]uint16 // draws of the slot's source in the slots before
	indices [][]uint16      // of each source, its slots; only while compiling
}

// newWord spreads the sources over the slots by a keyed permutation. An even interleave would
// be in step with the ranks: one of two would get one of two sources.
func newWord(seed uint64, counts []int64) (*word, error) {
	sum := int64(0)
	for i, c := range counts {
		if c < 1 || c > WordLen-sum {
			return nil, fmt.Errorf("mixture: source %d has a count of %d after %d of %d", i, c, sum, WordLen)
		}
		sum += c
	}
	if sum != WordLen {
		return nil, fmt.Errorf("mixture: counts sum to %d, not %d", sum, WordLen)
	}
	w := &word{counts: counts, indices: make([][]uint16, len(counts))}
	var of [WordLen]uint16
	at := 0
	for i, c := range counts {
		for range c {
			of[at] = uint16(i)
			at++
		}
	}
	for i, c := range counts {
		w.indices[i] = make([]uint16, 0, c)
	}
	order := permutation(Hash(seed, domainWord), WordLen)
	var once [1 << 14]uint16 // the network alone: faster than walking it from every slot
	for x := range once {
		once[x] = uint16(order.forward(uint64(x)))
	}
	for j := range w.source {
		x := once[j]
		for x >= WordLen {
			x = once[x]
		}
		i := of[x]
		w.source[j] = i
		w.rank[j] = uint16(len(w.indices[i]))
		w.indices[i] = append(w.indices[i], uint16(j))
	}
	return w, nil
}

// position returns where in the endless word draw q of source i stands.
func (w *word) position(i int, q int64) int64 {
	return q/w.counts[i]*WordLen + int64(w.indices[i][q%w.counts[i]])
}

// epoch returns the positions of an epoch, given the samples of the sources.
func (w *word) epoch(m *Mixture, sizes []int64) (int64, error) {
	n := m.Length
	for i, size := range sizes {
		if size < 1 || size > MaxSamples/WordLen {
			return 0, fmt.Errorf("mixture: source %d has %d samples, not in 1..%d", i, size, int64(MaxSamples/WordLen))
		}
		switch end := w.position(i, size); {
		case m.Until == Shortest && (i == 0 || end < n):
			n = end
		case m.Until == Longest:
			n = max(n, w.position(i, size-1)+1)
		}
	}
	switch {
	case m.Until > Given:
		return 0, fmt.Errorf("mixture: no rule %d for its epochs", m.Until)
	case m.Until != Given && m.Length != 0:
		return 0, fmt.Errorf("mixture: a length of %d, and a rule for its epochs", m.Length)
	case n < 1 || n > MaxSamples:
		return 0, fmt.Errorf("mixture: an epoch of %d positions", n)
	}
	w.drawn = make([]int64, len(sizes))
	for i := range sizes {
		w.drawn[i] = n / WordLen * w.counts[i]
	}
	for _, i := range w.source[:n%WordLen] {
		w.drawn[i]++
	}
	w.indices = nil
	return n, nil
}

// at returns the source at position p of an epoch, and which draw of this source it is, over the
// whole run: sources go on from one epoch of the mixture to the next. The draw wraps at 2^64.
func (w *word) at(epoch uint64, p int64) (source int, draw uint64) {
	slot := p % WordLen
	source = int(w.source[slot])
	return source, epoch*uint64(w.drawn[source]) + uint64(p/WordLen*w.counts[source]) + uint64(w.rank[slot])
}

// checkSources is what a mixture's sources must be before they are compiled.
func (m *Mixture) check() error {
	if len(m.Sources) == 0 || len(m.Sources) != len(m.Counts) || len(m.Sources) > math.MaxUint16 {
		return fmt.Errorf("mixture: %d counts for %d sources", len(m.Counts), len(m.Sources))
	}
	return nil
}
