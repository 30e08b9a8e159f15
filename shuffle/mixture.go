package shuffle

import (
	"cmp"
	"fmt"
	"slices"
	"sort"
	"strconv"

	"github.com/chaski-eo/chaski/internal/splitmix"
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
	Batch int64
	// Block makes every source give that many positions in a row, in place of one: with the size of the
	// global batch, each batch is of one source. Counts are then counts of blocks in WordLen blocks, and
	// stand evenly in any stretch of them; epochs are whole numbers of blocks. 0 means 1, and with Batch
	// it must be 0. If a mixture with Block is the source of another, the other needs Batch or Block too,
	// so it takes whole blocks of this one in every batch.
	Block  int64
	Until  Until
	Length int64 // positions of an epoch, with Given
}

// mixtureWord is a compiled mixture. Source i has counts[i] of the WordLen slots, each of block positions. The
// slots repeat over an epoch, so any WordLen consecutive blocks have counts[i] blocks of source i.
type mixtureWord struct {
	counts  []int64
	block   int64   // 1 without Mixture.Block
	draws   []int64 // of each source in an epoch, a multiple of block
	batch   int64   // Mixture.Batch; if it is not 0, source and rank are not used
	seed    uint64  // with batch
	ends    []int64 // with batch: sums of the counts up to and with each source
	nodes   []int   // of the plan
	source  [WordLen]uint16
	rank    [WordLen]uint16 // draws of the slot's source in the slots before
	indices [][]uint16      // the slots of each source; nil once compiled
}

// newWord spreads the sources over the slots: single positions by a keyed permutation, blocks evenly.
func newWord(seed uint64, m *Mixture) (*mixtureWord, error) {
	counts, batch := m.Counts, m.Batch
	if batch < 0 || batch > MaxSamples {
		return nil, fmt.Errorf("mixture: batches of %d positions", batch)
	}
	if m.Block < 0 || m.Block > MaxSamples/WordLen || m.Block > 0 && batch > 0 {
		return nil, fmt.Errorf("mixture: blocks of %d positions, and batches of %d", m.Block, batch)
	}
	sum, length := int64(0), cmp.Or(batch, WordLen)
	var ends []int64
	for i, count := range counts {
		if count < 1 || count > length-sum {
			return nil, fmt.Errorf("mixture: source %d has a count of %d after %d of %d", i, count, sum, length)
		}
		sum += count
		ends = append(ends, sum)
	}
	if sum != length {
		return nil, fmt.Errorf("mixture: counts sum to %d, not %d", sum, length)
	}
	if batch > 0 {
		return &mixtureWord{counts: counts, batch: batch, seed: seed, ends: ends}, nil
	}
	compiled := &mixtureWord{counts: counts, block: max(m.Block, 1), indices: make([][]uint16, len(counts))}
	for i, count := range counts {
		compiled.indices[i] = make([]uint16, 0, count)
	}
	if m.Block > 0 {
		compiled.fill(evenly(seed, counts))
	} else {
		compiled.fill(mixed(seed, counts))
	}
	return compiled, nil
}

// fill sets the sources of the slots.
func (w *mixtureWord) fill(sources []uint16) {
	for slot, source := range sources {
		w.source[slot] = source
		w.rank[slot] = uint16(len(w.indices[source]))
		w.indices[source] = append(w.indices[source], uint16(slot))
	}
}

// mixed returns the source of every slot, in the order of a keyed permutation. An even interleave would be
// in step with the ranks: with two of each, every rank would get one source only.
func mixed(seed uint64, counts []int64) []uint16 {
	owner := make([]uint16, 0, WordLen)
	for i, count := range counts {
		owner = append(owner, slices.Repeat([]uint16{uint16(i)}, int(count))...)
	}
	order := permutation(splitmix.Hash(seed, domainWord), WordLen)
	// The network once for each of its 2^14 inputs, the smallest power of two that holds WordLen: this
	// is faster than a walk from every slot.
	var once [1 << 14]uint16
	for x := range once {
		once[x] = uint16(order.forward(uint64(x)))
	}
	out := make([]uint16, WordLen)
	for slot := range out {
		x := once[slot]
		for x >= WordLen {
			x = once[x]
		}
		out[slot] = owner[x]
	}
	return out
}

// evenly returns the source of every slot, so in any stretch each source has its share but for about
// one slot: an epoch may have few batches, whose sources a permutation would leave to chance. Draw k of
// count c stands at a place drawn in its c-th of the word, so nothing has the period of the sources.
func evenly(seed uint64, counts []int64) []uint16 {
	type place struct {
		at     uint64
		source uint16
	}
	places := make([]place, 0, WordLen)
	for i, count := range counts {
		for k := range uint64(count) {
			// k is below 2^14, so k*2^48 leaves two bits of the 64.
			spot := k<<48 + splitmix.Hash(seed, domainBlock, uint64(i), k)>>16
			places = append(places, place{spot / uint64(count), uint16(i)})
		}
	}
	slices.SortStableFunc(places, func(a, b place) int { return cmp.Compare(a.at, b.at) })
	out := make([]uint16, WordLen)
	for slot, p := range places {
		out[slot] = p.source
	}
	return out
}

// unit returns the positions that lie together in an epoch, which is a whole number of them.
func (w *mixtureWord) unit() int64 { return cmp.Or(w.batch, w.block) }

// position returns the block of the endless word in which block q of source i stands.
func (w *mixtureWord) position(i int, q int64) int64 {
	return q/w.counts[i]*WordLen + int64(w.indices[i][q%w.counts[i]])
}

// notWhole is the error about a mixture that ends after n samples.
func notWhole(n, batch int64) error {
	return fmt.Errorf("mixture: until is %d samples: it must be a whole number of batches of %d", n, batch)
}

// tooFew is the error about a source that has no batch.
func (m *Mixture) tooFew(i int, size, share int64) error {
	return fmt.Errorf("mixture: source %q has %d samples, and a batch takes %d of them", cmp.Or(m.Sources[i].Name,
		strconv.Itoa(i)), size, share)
}

// batches returns the positions of an epoch of whole batches, given the samples of the sources.
func (w *mixtureWord) batches(m *Mixture, sizes []int64) (int64, error) {
	if m.Until == Given && m.Length%w.batch != 0 {
		return 0, notWhole(m.Length, w.batch)
	}
	steps := m.Length / w.batch
	for i, size := range sizes {
		share := w.counts[i]
		switch {
		case m.Until == Shortest && size < share:
			return 0, m.tooFew(i, size, share)
		case m.Until == Shortest && (i == 0 || size/share < steps):
			steps = size / share
		case m.Until == Longest:
			steps = max(steps, (size-1)/share+1)
		}
	}
	if steps > MaxSamples/w.batch {
		return 0, fmt.Errorf("mixture: an epoch of %d batches of %d positions", steps, w.batch)
	}
	return steps * w.batch, nil
}

// epoch returns the positions of an epoch, given the samples of the sources.
func (w *mixtureWord) epoch(m *Mixture, sizes []int64) (n int64, err error) {
	n = m.Length
	for i, size := range sizes {
		if size < 1 || size > MaxSamples/WordLen {
			return 0, fmt.Errorf("mixture: source %d has %d samples, not in 1..%d", i, size, int64(MaxSamples/WordLen))
		}
		if w.batch > 0 {
			continue
		}
		switch m.Until {
		case Shortest:
			if size < w.block {
				return 0, m.tooFew(i, size, w.block)
			}
			if end := w.position(i, size/w.block) * w.block; i == 0 || end < n {
				n = end
			}
		case Longest:
			n = max(n, (w.position(i, (size-1)/w.block)+1)*w.block)
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
	case w.batch == 0 && n%w.block != 0:
		return 0, notWhole(n, w.block)
	}
	// Draws go on from one epoch to the next, so at needs to know how many an epoch takes.
	w.draws = make([]int64, len(sizes))
	if w.batch > 0 {
		for i := range sizes {
			w.draws[i] = n / w.batch * w.counts[i]
		}
		return n, nil
	}
	blocks := n / w.block
	for i := range sizes {
		w.draws[i] = blocks / WordLen * w.counts[i] * w.block
	}
	for _, i := range w.source[:blocks%WordLen] {
		w.draws[i] += w.block
	}
	w.indices = nil
	return n, nil
}

// at returns the source at position p of an epoch, and the number of the draw from this source over
// the whole run, modulo 2^64: sources go on from one epoch of the mixture to the next.
func (w *mixtureWord) at(epoch uint64, p int64) (source int, draw uint64) {
	if w.batch > 0 {
		batch := p / w.batch
		order := permutation(splitmix.Hash(w.seed, domainBatch, epoch, uint64(batch)), w.batch)
		place := order.At(p % w.batch)
		source = sort.Search(len(w.ends), func(k int) bool { return w.ends[k] > place })
		count := w.counts[source]
		return source, epoch*uint64(w.draws[source]) + uint64(batch*count+place-(w.ends[source]-count))
	}
	block := p / w.block
	slot := block % WordLen
	source = int(w.source[slot])
	before := block/WordLen*w.counts[source] + int64(w.rank[slot]) // blocks of the source in this epoch
	return source, epoch*uint64(w.draws[source]) + uint64(before*w.block+p%w.block)
}

// unit returns how many positions lie together in an epoch of a mixture, which is a whole number of such units: a
// batch, or a block.
func (m *Mixture) unit() int64 { return cmp.Or(m.Batch, m.Block) }

// checkSource refuses source i if it is a mixture whose batches or blocks would not lie whole in batches or blocks of
// m.
func (m *Mixture) checkSource(i int) error {
	inner := m.Sources[i].Mixture
	if inner == nil || inner.unit() == 0 {
		return nil
	}
	share := m.Block
	if m.Batch > 0 {
		share = m.Counts[i]
	}
	if inner.unit() != share {
		return fmt.Errorf("source %d: batches of %d in a mixture that takes %d of it at a time", i, inner.unit(),
			max(share, 1))
	}
	return nil
}
