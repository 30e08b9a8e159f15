package webp

// lossless decodes a stream of VP8L (RFC 9649, section 3) behind its header: pixels of alpha, red, green and blue,
// from the highest byte on. Memory follows the pixels, and the codes that the stream has for them. A stream can
// number 65,536 codes; unused ones are read and forgotten.
func lossless(src []byte, w, h int) ([]uint32, error) {
	bits := &reader{src: src}
	var steps []transform
	width := w
	for seen := 0; bits.read(1) == 1; {
		step := transform{kind: bits.read(2), w: width}
		if seen&(1<<step.kind) != 0 {
			return nil, bad("two transforms of kind %d", step.kind)
		}
		seen |= 1 << step.kind
		if err := step.read(bits, h); err != nil {
			return nil, err
		}
		if step.kind == colorIndexing {
			width = ceil(width, step.bits)
		}
		steps = append(steps, step)
	}
	pix, err := pixels(bits, width, h, true)
	if err != nil {
		return nil, err
	}
	for last := len(steps) - 1; last >= 0; last-- {
		pix = steps[last].undo(pix, h)
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
	var recent cache
	size := 0
	if r.read(1) == 1 {
		bits := uint(r.read(4))
		if bits < 1 || bits > 11 {
			return nil, bad("a cache of 2^%d colours", bits)
		}
		size = 1 << bits
		recent = cache{make([]uint32, size), 32 - bits}
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
	codes, across := &groups[0], ceil(w, prefix)
	for pos := 0; pos < len(pix); {
		// Bits past the end are 0 and may be codes, so the pixels do not show that the stream has ended.
		if r.isPastEnd {
			return nil, bad("the stream ends after %d of %d pixels", pos, len(pix))
		}
		if which != nil {
			codes = &groups[which[(pos/w)>>prefix*across+(pos%w)>>prefix]]
		}
		symbol := codes[0].read(r)
		switch {
		case symbol < literals:
			red, blue, alpha := codes[1].read(r), codes[2].read(r), codes[3].read(r)
			pix[pos] = uint32(alpha)<<24 | uint32(red)<<16 | uint32(symbol)<<8 | uint32(blue)
			recent.add(pix[pos])
			pos++
		case symbol < literals+lengths:
			count := extended(r, symbol-literals)
			start := pos - distance(extended(r, codes[4].read(r)), w)
			if start < 0 || count > len(pix)-pos {
				return nil, bad("a copy of %d pixels from %d to %d of %d", count, start, pos, len(pix))
			}
			for range count {
				pix[pos] = pix[start]
				recent.add(pix[pos])
				pos, start = pos+1, start+1
			}
		default:
			pix[pos] = recent.colors[symbol-literals-lengths]
			recent.add(pix[pos])
			pos++
		}
	}
	if r.isPastEnd {
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
	for i, pixel := range which {
		number := pixel >> 8 & 0xffff
		which[i] = number
		used[number] = 1
		last = max(last, int(number))
	}
	var unused group
	for number := range used[:last+1] {
		codes := &unused
		if used[number] != 0 {
			groups = append(groups, group{})
			codes = &groups[kept]
			kept++
			used[number] = kept
		}
		if err := codes.read(r, colors); err != nil {
			return nil, err
		}
	}
	for i, number := range which {
		which[i] = used[number] - 1
	}
	return groups, nil
}

func (g *group) read(r *reader, colors int) error {
	sizes := [...]int{literals + lengths + colors, literals, literals, literals, distances}
	for index, symbols := range sizes {
		if err := readCode(r, &g[index], symbols); err != nil {
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
			symbol := int(r.read([...]uint{1, 8}[max(long, k)]))
			if symbol >= n {
				return bad("symbol %d of %d", symbol, n)
			}
			lens[symbol] = 1
		}
	} else {
		var lengths [len(lengthOrder)]uint8
		for _, symbol := range lengthOrder[:r.read(4)+4] {
			lengths[symbol] = uint8(r.read(3))
		}
		if !c.set(lengths[:]) {
			return bad("not a code of lengths")
		}
		if err := readLengths(r, c, lens); err != nil {
			return err
		}
	}
	if r.isPastEnd {
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
	for pos := 0; pos < len(lens) && limit > 0 && !r.isPastEnd; limit-- {
		symbol, count := c.read(r), 1
		length := uint8(0)
		switch {
		case symbol < 16:
			if length = uint8(symbol); length != 0 {
				before = length
			}
		case symbol == 16:
			length, count = before, 3+int(r.read(2))
		case symbol == 17:
			count = 3 + int(r.read(3))
		default:
			count = 11 + int(r.read(7))
		}
		if count > len(lens)-pos {
			return bad("%d lengths for %d symbols", count, len(lens)-pos)
		}
		for next := range lens[pos : pos+count] {
			lens[pos+next] = length
		}
		pos += count
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
	neighbour := neighbours[n-1]
	return max(1, int(neighbour[0])+int(neighbour[1])*w)
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
