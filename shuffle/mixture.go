package shuffle

import (
	"cmp"
	"fmt"
	"math"
	"sort"
)

// WordLen is the length of a mixture's word. Proportions are rounded to whole parts of it: with 10,000
// to 0.01 %, and a word takes 40 kB.
const WordLen = 10_000

// Until says when an epoch of a mixture ends.
type Until uint8

const (
	// Shortest ends an epoch just before a source would repeat a sample: that source gives every
	// sample once, the others a part of theirs.
	Shortest Until = iota
	// Longest ends an epoch when every source has given every sample at least once.
	Longest
	// Given is an epoch of Mixture.Length positions.
	Given
)

// Mixture draws from several sources in fixed proportions.
type Mixture struct {
	Sources []Source
	// Counts is how often each source stands in WordLen positions, or with Batch in a batch. They sum
	// to that number, and none is 0. See Apportion and Temperature.
	Counts []int64
	// Batch makes the counts exact in every batch of that many positions, and epochs a whole number
	// of batches. 0 means counts in WordLen positions. If a mixture with Batch is the source of
	// another, the other needs Batch too, and its count of this source must equal Batch.
	Batch  int64
	Until  Until
	Length int64 // positions of an epoch, with Given
}

// word is a compiled mixture. Source i has counts[i] of the WordLen slots. The slots repeat over an
// epoch, so that any WordLen consecutive positions have counts[i] samples of source i.
type word struct {
	counts  []int64
	drawn   []int64 // draws of each source in an epoch
	batch   int64   // Mixture.Batch; if it is not 0, source and rank are not used
	seed    uint64  // with batch
	ends    []int64 // with batch: sums of the counts up to and with each source
	nodes   []int   // of the plan
	source  [WordLen]uint16
	rank    [WordLen]uint16 // draws of the slot's source in the slots before
	indices [][]uint16      // the slots of each source; nil once compiled
}

// newWord spreads the sources over the slots by a keyed permutation. An even interleave would be in
// step with the ranks: with two of each, every rank would get one source only.
func newWord(seed uint64, counts []int64, batch int64) (*word, error) {
	if batch < 0 || batch > MaxSamples {
		return nil, fmt.Errorf("mixture: batches of %d positions", batch)
	}
	sum, length := int64(0), cmp.Or(batch, WordLen)
	var ends []int64
	for i, c := range counts {
		if c < 1 || c > length-sum {
			return nil, fmt.Errorf("mixture: source %d has a count of %d after %d of %d", i, c, sum, length)
		}
		sum += c
		ends = append(ends, sum)
	}
	if sum != length {
		return nil, fmt.Errorf("mixture: counts sum to %d, not %d", sum, length)
	}
	if batch > 0 {
		return &word{counts: counts, batch: batch, seed: seed, ends: ends}, nil
	}
	w := &word{counts: counts, indices: make([][]uint16, len(counts))}
	var owner [WordLen]uint16
	pos := 0
	for i, c := range counts {
		for range c {
			owner[pos] = uint16(i)
			pos++
		}
	}
	for i, c := range counts {
		w.indices[i] = make([]uint16, 0, c)
	}
	order := permutation(Hash(seed, domainWord), WordLen)
	// The network once for each of its 2^14 inputs, the smallest power of two that holds WordLen: this
	// is faster than a walk from every slot.
	var once [1 << 14]uint16
	for x := range once {
		once[x] = uint16(order.forward(uint64(x)))
	}
	for j := range w.source {
		x := once[j]
		for x >= WordLen {
			x = once[x]
		}
		i := owner[x]
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

// batches returns the positions of an epoch of whole batches, given the samples of the sources.
func (w *word) batches(m *Mixture, sizes []int64) (int64, error) {
	if m.Until == Given && m.Length%w.batch != 0 {
		return 0, fmt.Errorf("mixture: an epoch of %d positions is not a whole number of batches of %d",
			m.Length, w.batch)
	}
	steps := m.Length / w.batch
	for i, size := range sizes {
		c := w.counts[i]
		switch {
		case m.Until == Shortest && size < c:
			return 0, fmt.Errorf("mixture: source %d has %d samples, and a batch takes %d of them", i, size, c)
		case m.Until == Shortest && (i == 0 || size/c < steps):
			steps = size / c
		case m.Until == Longest:
			steps = max(steps, (size-1)/c+1)
		}
	}
	if steps > MaxSamples/w.batch {
		return 0, fmt.Errorf("mixture: an epoch of %d batches of %d positions", steps, w.batch)
	}
	return steps * w.batch, nil
}

// epoch returns the positions of an epoch, given the samples of the sources.
func (w *word) epoch(m *Mixture, sizes []int64) (n int64, err error) {
	n = m.Length
	for i, size := range sizes {
		if size < 1 || size > MaxSamples/WordLen {
			return 0, fmt.Errorf("mixture: source %d has %d samples, not in 1..%d", i, size, int64(MaxSamples/WordLen))
		}
		if w.batch > 0 {
			continue
		}
		switch end := w.position(i, size); {
		case m.Until == Shortest && (i == 0 || end < n):
			n = end
		case m.Until == Longest:
			n = max(n, w.position(i, size-1)+1)
		}
	}
	if w.batch > 0 {
		if n, err = w.batches(m, sizes); err != nil {
			return 0, err
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
	// Draws go on from one epoch to the next, so that at needs to know how many an epoch takes.
	w.drawn = make([]int64, len(sizes))
	for i := range sizes {
		w.drawn[i] = n / cmp.Or(w.batch, WordLen) * w.counts[i]
	}
	if w.batch > 0 {
		return n, nil
	}
	for _, i := range w.source[:n%WordLen] {
		w.drawn[i]++
	}
	w.indices = nil
	return n, nil
}

// at returns the source at position p of an epoch, and the number of the draw from this source over
// the whole run, modulo 2^64: sources go on from one epoch of the mixture to the next.
func (w *word) at(epoch uint64, p int64) (source int, draw uint64) {
	if w.batch > 0 {
		b := p / w.batch
		order := permutation(Hash(w.seed, domainBatch, epoch, uint64(b)), w.batch)
		x := order.At(p % w.batch)
		i := sort.Search(len(w.ends), func(k int) bool { return w.ends[k] > x })
		c := w.counts[i]
		return i, epoch*uint64(w.drawn[i]) + uint64(b*c+x-(w.ends[i]-c))
	}
	slot := p % WordLen
	source = int(w.source[slot])
	return source, epoch*uint64(w.drawn[source]) + uint64(p/WordLen*w.counts[source]) + uint64(w.rank[slot])
}

// check validates the sources before they are compiled.
func (m *Mixture) check() error {
	if len(m.Sources) == 0 || len(m.Sources) != len(m.Counts) || len(m.Sources) > math.MaxUint16 {
		return fmt.Errorf("mixture: %d counts for %d sources", len(m.Counts), len(m.Sources))
	}
	return nil
}
