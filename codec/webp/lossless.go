package webp

// lossless decodes a stream of VP8L (RFC 9649, section 3) behind its header: pixels of alpha, red, green and blue,
// from the highest byte on. Memory follows the pixels, and the codes that the stream has for them: unused codes, of
// which a stream can number 65,536, are read and forgotten.
func lossless(src []byte, w, h int) ([]uint32, error) {
	r := &reader{src: src}
	var steps []transform
	width := w
	for seen := 0; r.read(1) == 1; {
		t := transform{kind: r.read(2), w: width}
		if seen&(1<<t.kind) != 0 {
			return nil, bad("two transforms of kind %d", t.kind)
		}
		seen |= 1 << t.kind
		if err := t.read(r, h); err != nil {
			return nil, err
		}
		if t.kind == colorIndexing {
			width = ceil(width, t.bits)
		}
		steps = append(steps, t)
	}
	pix, err := pixels(r, width, h, true)
	if err != nil {
		return nil, err
	}
	for k := len(steps) - 1; k >= 0; k-- {
		pix = steps[k].undo(pix, h)
	}
	return pix, nil
}

func ceil(n int, bits uint) int { return (n + 1<<bits - 1) >> bits }

// Lengths and distances have 24 and 40 symbols, and more bits behind them.
const (
	literals  = 256
	lengths   = 24
	distances = 40
)

// group has the codes of a pixel: green with lengths and cached colours, red, blue, alpha, distances.
type group [5]code

// cache has the colours that came last, by a hash.
type cache struct {
	colors []uint32
	shift  uint
}

func (c *cache) add(v uint32) {
	if c.colors != nil {
		c.colors[v*0x1e35a7bd>>c.shift] = v
	}
}

// pixels reads an image. The one of the stream itself, not of a transform, may have several groups of codes.
func pixels(r *reader, w, h int, main bool) ([]uint32, error) {
	var c cache
	size := 0
	if r.read(1) == 1 {
		bits := uint(r.read(4))
		if bits < 1 || bits > 11 {
			return nil, bad("a cache of 2^%d colours", bits)
		}
		size = 1 << bits
		c = cache{make([]uint32, size), 32 - bits}
	}
	which, prefix := []uint32(nil), uint(0)
	if main && r.read(1) == 1 {
		prefix = uint(r.read(3)) + 2
		var err error
		if which, err = pixels(r, ceil(w, prefix), ceil(h, prefix), false); err != nil {
			return nil, err
		}
	}
	groups, err := readGroups(r, which, size)
	if err != nil {
		return nil, err
	}
	pix := make([]uint32, w*h)
	g, across := &groups[0], ceil(w, prefix)
	for pos := 0; pos < len(pix); {
		if r.over {
			return nil, bad("the stream ends after %d of %d pixels", pos, len(pix))
		}
		if which != nil {
			g = &groups[which[(pos/w)>>prefix*across+(pos%w)>>prefix]]
		}
		s := g[0].read(r)
		switch {
		case s < literals:
			red, blue, alpha := g[1].read(r), g[2].read(r), g[3].read(r)
			pix[pos] = uint32(alpha)<<24 | uint32(red)<<16 | uint32(s)<<8 | uint32(blue)
			c.add(pix[pos])
			pos++
		case s < literals+lengths:
			n := extended(r, s-literals)
			start := pos - distance(extended(r, g[4].read(r)), w)
			if start < 0 || n > len(pix)-pos {
				return nil, bad("a copy of %d pixels from %d to %d of %d", n, start, pos, len(pix))
			}
			for range n {
				pix[pos] = pix[start]
				c.add(pix[pos])
				pos, start = pos+1, start+1
			}
		default:
			pix[pos] = c.colors[s-literals-lengths]
			c.add(pix[pos])
			pos++
		}
	}
	if r.over {
		return nil, bad("the stream ends early")
	}
	return pix, nil
}

// readGroups reads the groups of codes, and keeps those whose numbers are in which, or the only one. It changes the
// numbers in which to positions among the kept groups.
func readGroups(r *reader, which []uint32, colors int) ([]group, error) {
	var groups []group
	if which == nil {
		groups = make([]group, 1)
		return groups, groups[0].read(r, colors)
	}
	var used [1 << 16]uint32 // 1 + the number of the group that is kept
	last, kept := 0, uint32(0)
	for i, v := range which {
		k := v >> 8 & 0xffff
		which[i] = k
		used[k] = 1
		last = max(last, int(k))
	}
	var unused group
	for k := range used[:last+1] {
		g := &unused
		if used[k] != 0 {
			groups = append(groups, group{})
			g = &groups[kept]
			kept++
			used[k] = kept
		}
		if err := g.read(r, colors); err != nil {
			return nil, err
		}
	}
	for i, k := range which {
		which[i] = used[k] - 1
	}
	return groups, nil
}

func (g *group) read(r *reader, colors int) error {
	sizes := [...]int{literals + lengths + colors, literals, literals, literals, distances}
	for k, n := range sizes {
		if err := readCode(r, &g[k], n); err != nil {
			return err
		}
	}
	return nil
}

// lengthOrder is the order of the lengths of the code of code lengths.
var lengthOrder = [19]int{17, 18, 0, 1, 2, 3, 4, 5, 16, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}

// readCode reads a code of n symbols.
func readCode(r *reader, c *code, n int) error {
	var codes [literals + lengths + 1<<11]uint8
	lens := codes[:n]
	if r.read(1) == 1 {
		extra, long := r.read(1), r.read(1)
		for k := range extra + 1 {
			s := int(r.read([...]uint{1, 8}[max(long, k)]))
			if s >= n {
				return bad("symbol %d of %d", s, n)
			}
			lens[s] = 1
		}
	} else {
		var lengths [len(lengthOrder)]uint8
		for _, s := range lengthOrder[:r.read(4)+4] {
			lengths[s] = uint8(r.read(3))
		}
		if !c.set(lengths[:]) {
			return bad("not a code of lengths")
		}
		if err := readLengths(r, c, lens); err != nil {
			return err
		}
	}
	if r.over {
		return bad("the stream ends in its codes")
	}
	if !c.set(lens) {
		return bad("not a code")
	}
	return nil
}

// readLengths reads the lengths of the codes of symbols by a code of their own.
func readLengths(r *reader, c *code, lens []uint8) error {
	limit := len(lens)
	if r.read(1) == 1 {
		limit = 2 + int(r.read(2+2*uint(r.read(3))))
		if limit > len(lens) {
			return bad("lengths of %d symbols of %d", limit, len(lens))
		}
	}
	before := uint8(8)
	for pos := 0; pos < len(lens) && limit > 0 && !r.over; limit-- {
		s, n := c.read(r), 1
		v := uint8(0)
		switch {
		case s < 16:
			if v = uint8(s); v != 0 {
				before = v
			}
		case s == 16:
			v, n = before, 3+int(r.read(2))
		case s == 17:
			n = 3 + int(r.read(3))
		default:
			n = 11 + int(r.read(7))
		}
		if n > len(lens)-pos {
			return bad("%d lengths for %d symbols", n, len(lens)-pos)
		}
		for k := range lens[pos : pos+n] {
			lens[pos+k] = v
		}
		pos += n
	}
	return nil
}

// extended returns the length or the distance of a symbol.
func extended(r *reader, s int) int {
	if s < 4 {
		return s + 1
	}
	bits := uint(s-2) >> 1
	return (2+s&1)<<bits + int(r.read(bits)) + 1
}

// distance returns how many pixels before one a copy begins. The first 120 numbers stand for neighbours.
func distance(n, w int) int {
	if n > len(neighbours) {
		return n - len(neighbours)
	}
	p := neighbours[n-1]
	return max(1, int(p[0])+int(p[1])*w)
}

// neighbours are the pixels near one, columns to the left and rows above, from the nearest on.
var neighbours = [120][2]int8{
	{0, 1}, {1, 0}, {1, 1}, {-1, 1}, {0, 2}, {2, 0}, {1, 2}, {-1, 2}, {2, 1}, {-2, 1}, {2, 2}, {-2, 2}, {0, 3}, {3, 0},
	{1, 3}, {-1, 3}, {3, 1}, {-3, 1}, {2, 3}, {-2, 3}, {3, 2}, {-3, 2}, {0, 4}, {4, 0}, {1, 4}, {-1, 4}, {4, 1},
	{-4, 1}, {3, 3}, {-3, 3}, {2, 4}, {-2, 4}, {4, 2}, {-4, 2}, {0, 5}, {3, 4}, {-3, 4}, {4, 3}, {-4, 3}, {5, 0},
	{1, 5}, {-1, 5}, {5, 1}, {-5, 1}, {2, 5}, {-2, 5}, {5, 2}, {-5, 2}, {4, 4}, {-4, 4}, {3, 5}, {-3, 5}, {5, 3},
	{-5, 3}, {0, 6}, {6, 0}, {1, 6}, {-1, 6}, {6, 1}, {-6, 1}, {2, 6}, {-2, 6}, {6, 2}, {-6, 2}, {4, 5}, {-4, 5},
	{5, 4}, {-5, 4}, {3, 6}, {-3, 6}, {6, 3}, {-6, 3}, {0, 7}, {7, 0}, {1, 7}, {-1, 7}, {5, 5}, {-5, 5}, {7, 1},
	{-7, 1}, {4, 6}, {-4, 6}, {6, 4}, {-6, 4}, {2, 7}, {-2, 7}, {7, 2}, {-7, 2}, {3, 7}, {-3, 7}, {7, 3}, {-7, 3},
	{5, 6}, {-5, 6}, {6, 5}, {-6, 5}, {8, 0}, {4, 7}, {-4, 7}, {7, 4}, {-7, 4}, {8, 1}, {8, 2}, {6, 6}, {-6, 6}, {8, 3},
	{5, 7}, {-5, 7}, {7, 5}, {-7, 5}, {8, 4}, {6, 7}, {-6, 7}, {7, 6}, {-7, 6}, {8, 5}, {7, 7}, {-7, 7}, {8, 6}, {8, 7},
}
