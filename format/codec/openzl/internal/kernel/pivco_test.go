package kernel

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/chaski-eo/chaski/tools/testkit/guard"
)

// slowPivco writes PivCo Huffman by its definition: it splits lists of symbols by the codes of the leaves.
type slowPivco struct {
	leaf map[byte]slowLeaf
	bits []byte // one bit each
}

// slowLeaf says where a symbol is: the code of its leaf, as ones and zeros, and its place in the leaf.
type slowLeaf struct {
	code  string
	index int
	depth int
}

// newSlowPivco groups the symbols of the weights into leaves and gives these canonical codes.
func newSlowPivco(weights []byte) *slowPivco {
	sum := 0
	for _, w := range weights {
		sum += 1 << w / 2
	}
	log := 0
	for 1<<log < sum {
		log++
	}
	leaves := map[int][][]byte{} // by the length of their codes
	for w := log + 1; w >= 1; w-- {
		var all []byte
		for s, x := range weights {
			if int(x) == w {
				all = append(all, byte(s))
			}
		}
		for len(all) > 2 {
			k := 1
			for 2<<k <= len(all) {
				k++
			}
			at := len(all) - 1<<k
			length := log + 1 - w - k
			leaves[length] = append(leaves[length], all[at:])
			all = all[:at]
		}
		var single [][]byte
		for i := range all {
			single = append(single, all[i:i+1])
		}
		// Those of longer codes come later, and stand behind.
		leaves[log+1-w] = append(single, leaves[log+1-w]...)
	}
	p := &slowPivco{leaf: map[byte]slowLeaf{}}
	code := 0
	for length := 0; length <= log; length++ {
		for _, symbols := range leaves[length] {
			text := ""
			for i := length - 1; i >= 0; i-- {
				text += string('0' + byte(code>>i&1))
			}
			depth := 0
			for 1<<depth < len(symbols) {
				depth++
			}
			for i, s := range symbols {
				p.leaf[s] = slowLeaf{text, i, depth}
			}
			code++
		}
		code *= 2
	}
	return p
}

func (p *slowPivco) put(v, n int) {
	for i := range n {
		p.bits = append(p.bits, byte(v>>i&1))
	}
}

// node writes the symbols whose codes begin with prefix.
func (p *slowPivco) node(prefix string, symbols []byte) {
	under := map[slowLeaf]bool{} // leaves below, without indexes
	for _, l := range p.leaf {
		if len(l.code) >= len(prefix) && l.code[:len(prefix)] == prefix {
			under[slowLeaf{code: l.code, depth: l.depth}] = true
		}
	}
	align := func() {
		for len(p.bits)%8 > 0 {
			p.bits = append(p.bits, 0)
		}
	}
	if len(under) == 1 {
		for l := range under {
			if l.depth == 0 {
				return
			}
			align()
			for _, s := range symbols {
				p.put(p.leaf[s].index, l.depth)
			}
		}
		return
	}
	align()
	var sides [2][]byte
	for _, s := range symbols {
		side := int(p.leaf[s].code[len(prefix)] - '0')
		p.put(side, 1)
		sides[side] = append(sides[side], s)
	}
	two := under[slowLeaf{code: prefix + "0"}] && under[slowLeaf{code: prefix + "1"}]
	if !two {
		n := 0
		for 1<<n < len(symbols)+1 {
			n++
		}
		p.put(len(sides[1]), n)
	}
	p.node(prefix+"0", sides[0])
	p.node(prefix+"1", sides[1])
}

func (p *slowPivco) encode(src []byte, block int) []byte {
	p.bits = nil
	for part := range slices.Chunk(src, block) {
		p.node("", part)
	}
	out := make([]byte, (len(p.bits)+7)/8)
	for i, b := range p.bits {
		out[i/8] |= b << (i % 8)
	}
	return out
}

// randomWeights returns a complete code: it splits codes until there are as many as wanted.
func randomWeights(rng *rand.Rand) []byte {
	lengths := []int{0}
	for range rng.IntN(1 << rng.IntN(9)) {
		i := rng.IntN(len(lengths))
		if rng.IntN(3) == 0 {
			i = len(lengths) - 1
		}
		if lengths[i] < maxPivcoBits && len(lengths) < 256 {
			lengths[i]++
			lengths = append(lengths, lengths[i])
		}
	}
	longest := slices.Max(lengths)
	weights := make([]byte, 256)
	for i, s := range rng.Perm(256)[:len(lengths)] {
		weights[s] = byte(longest + 1 - lengths[i])
	}
	return weights
}

// eachPivco runs a test with every set of loops that this processor has.
func eachPivco(t *testing.T, test func(t *testing.T)) {
	defer func(l PivcoLoops) { pivcoLoops = l }(pivcoLoops)
	for l := range pivcoLoops + 1 {
		pivcoLoops = l
		t.Run(l.String(), test)
	}
}

// TestPivco: symbols of random codes that a slow encoder writes by the definition are read back, and nothing
// outside of the arguments is touched. A byte more or less is refused.
func TestPivco(t *testing.T) { eachPivco(t, testPivco) }

func testPivco(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	guard.Faults(t)
	const room = 1 << 16
	to, from, tmp := guard.New(t, room), guard.New(t, room), guard.New(t, 2*room)
	p := new(Pivco)
	rounds := 2000
	if testing.Short() {
		rounds = 200
	}
	for range rounds {
		weights := randomWeights(rng)
		var used []byte
		for s, w := range weights {
			for range min(int(w)*int(w), 1<<rng.IntN(8)) {
				used = append(used, byte(s))
			}
		}
		want := make([]byte, 1+rng.IntN(1<<rng.IntN(13)))
		for i := range want {
			want[i] = used[rng.IntN(len(used))]
		}
		if !p.Build(weights) {
			t.Fatalf("weights are refused: %v", weights)
		}
		if v, one := p.Constant(); one {
			if v != used[0] {
				t.Fatalf("constant %d, want %d", v, used[0])
			}
			continue
		}
		block := 1 + rng.IntN(2*len(want))
		stream := newSlowPivco(weights).encode(want, block)
		got := p.Append([]byte("front"), want, block, make([]byte, 2*min(block, len(want))))
		if !bytes.Equal(got[5:], stream) {
			t.Fatalf("%d symbols, blocks of %d, weights %v: written otherwise", len(want), block, weights)
		}
		back := rng.IntN(2) == 0
		src, dst := from.At(back, len(stream)), to.At(back, len(want))
		copy(src, stream)
		scratch := tmp.At(back, p.Scratch(len(want), block))
		if !p.Decode(dst, src, block, scratch) || !bytes.Equal(dst, want) {
			t.Fatalf("%d symbols, blocks of %d, weights %v: wrong", len(want), block, weights)
		}
		if p.Decode(dst, src[:len(src)-1], block, scratch) {
			t.Fatalf("a byte less is read")
		}
		if p.Decode(dst, append(bytes.Clone(src), 0), block, scratch) {
			t.Fatalf("a byte more is read")
		}
		// Damage is read or refused, within the memory.
		for range 3 {
			src[rng.IntN(len(src))] ^= 1 << rng.IntN(8)
			p.Decode(dst, src, block, scratch)
		}
	}
}

// TestPivcoLoops: each loop writes what its twin in Go does, for all lengths up to 300 and some random ones, and
// touches nothing outside of its arguments but the slack that it may read.
func TestPivcoLoops(t *testing.T) { eachPivco(t, testPivcoLoops) }

func testPivcoLoops(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	guard.Faults(t)
	const room = 1 << 13
	to, bitmap := guard.New(t, room), guard.New(t, room)
	first, second := guard.New(t, room+pivcoSlack), guard.New(t, room+pivcoSlack)
	noise := func(b []byte) []byte {
		for i := range b {
			b[i] = byte(rng.Uint32())
		}
		return b
	}
	for round := range 600 {
		n, back := round/2+1, round%2 == 0
		if round >= 590 {
			n = 1 + rng.IntN(room)
		}
		m := noise(bitmap.At(back, (n+7)/8))
		for i, all := 0, byte(rng.IntN(2)*255); round%5 == 0 && i < len(m); i++ {
			m[i] = all
		}
		ones := pivcoOnes(m, n)
		a := noise(first.At(back, n-ones+pivcoSlack))[:n-ones]
		b := noise(second.At(back, ones+pivcoSlack))[:ones]
		got, want := to.At(back, n), make([]byte, n)
		check := func(loop string) {
			if !bytes.Equal(got, want) {
				t.Fatalf("%s of %d bytes is wrong", loop, n)
			}
		}
		pivcoMergeGo(want, a, b, m)
		pivcoMerge(got, a[:len(a)+1], b[:len(b)+1], m)
		check("merge")
		v := byte(rng.Uint32())
		pivcoFillGo(want, b, m, v, 0)
		pivcoFill(got, b[:len(b)+1], m, v, 0)
		check("fill of zeros")
		pivcoFillGo(want, a, m, v, ^uint64(0))
		pivcoFill(got, a[:len(a)+1], m, v, ^uint64(0))
		check("fill of ones")
		for depth := 1; depth <= 8; depth++ {
			m := noise(bitmap.At(back, (n*depth+7)/8))
			symbols := make([]byte, 256)
			for i, s := range rng.Perm(1 << depth) {
				symbols[i] = byte(s * 37) // an odd factor keeps symbols different
			}
			if depth == 8 { // symbols in order
				slices.Sort(symbols)
			}
			pivcoFlatGo(want, m, depth, symbols)
			pivcoFlat(got, m, depth, symbols)
			check("flat")
		}
	}
}

// TestPivcoWeights: what is no complete code of at most 12 bits is refused.
func TestPivcoWeights(t *testing.T) {
	for _, w := range [][]byte{
		nil, {0}, {1, 1, 1}, {13, 13}, {12, 12, 13}, {2, 1}, {255, 255}, make([]byte, 256),
		slices.Repeat([]byte{1}, 257),
	} {
		if new(Pivco).Build(w) {
			t.Errorf("weights %v are a code", w)
		}
	}
	for _, w := range [][]byte{{1}, {0, 7}, {12}, {1, 1}, {12, 12}, slices.Repeat([]byte{1}, 256)} {
		if !new(Pivco).Build(w) {
			t.Errorf("weights %v are no code", w)
		}
	}
}

// FuzzPivco: any weights and bytes are refused, or read alike by all loops.
func FuzzPivco(f *testing.F) {
	rng := rand.New(rand.NewPCG(5, 6))
	for range 20 {
		weights := randomWeights(rng)
		var used []byte
		for s, w := range weights {
			if w > 0 {
				used = append(used, byte(s))
			}
		}
		src := make([]byte, 300)
		for i := range src {
			src[i] = used[rng.IntN(len(used))]
		}
		f.Add(weights, newSlowPivco(weights).encode(src, 100), uint16(300), uint16(100))
	}
	p := new(Pivco)
	f.Fuzz(func(t *testing.T, weights, src []byte, n, block uint16) {
		if !p.Build(weights) || n == 0 || block == 0 {
			return
		}
		if _, one := p.Constant(); one {
			return
		}
		scratch := make([]byte, p.Scratch(int(n), int(block)))
		dst, again := make([]byte, n), make([]byte, n)
		ok := p.Decode(dst, src, int(block), scratch)
		defer func(l PivcoLoops) { pivcoLoops = l }(pivcoLoops)
		for l := range pivcoLoops {
			pivcoLoops = l
			if p.Decode(again, src, int(block), scratch) != ok || ok && !bytes.Equal(dst, again) {
				t.Fatalf("the loops %s differ", l)
			}
		}
	})
}
