package whole

// Kinds of literals (RFC 8878, 3.1.1.3.1.1).
const (
	rawLiterals = iota
	repeatedLiterals
	compressedLiterals
	treelessLiterals
)

// literals are the literals of a block.
type literals struct {
	kind    byte
	four    bool // four streams of Huffman codes
	size    int  // decoded
	start   int  // where they are stored
	end     int
	bytes   []byte // decoded, once decodeLiterals was called
	limit   []byte // bytes, and those after them that may be read
	inPlace bool   // decodeLiterals wrote them to the place that it was given
}

// literals reads the header of the literals of a block that ends at end, and skips them.
func (f *frameState) literals(end int) (literals, bool) {
	b := f.src[f.at:end]
	l := literals{kind: b[0] & 3}
	head, stored := 0, 0
	var v uint64
	for i, x := range b[:min(5, len(b))] {
		v |= uint64(x) << (8 * i)
	}
	format := b[0] >> 2 & 3
	if l.kind == rawLiterals || l.kind == repeatedLiterals {
		switch format {
		case 0, 2:
			head, l.size = 1, int(v>>3&31)
		case 1:
			head, l.size = 2, int(v>>4&0xfff)
		default:
			head, l.size = 3, int(v>>4&0xfffff)
		}
		stored = l.size
		if l.kind == repeatedLiterals {
			stored = 1
		}
	} else {
		l.four = format != 0
		width := [4]uint{10, 10, 14, 18}[format]
		head = [4]int{3, 3, 4, 5}[format]
		l.size, stored = int(v>>4&(1<<width-1)), int(v>>(4+width)&(1<<width-1))
	}
	if l.size > f.blockMax || len(b) < head || len(b)-head < stored {
		return l, false
	}
	l.start = f.at + head
	l.end = l.start + stored
	f.at = l.end
	return l, true
}

// decodeLiterals decodes literals, into to if they have to be written and it has room for them, or else into d.lits.
func (d *Decoder) decodeLiterals(l *literals, to []byte) bool {
	f := &d.frame
	if l.kind == rawLiterals {
		l.bytes, l.limit = f.src[l.start:l.end], f.src[l.start:]
		return true
	}
	if len(to) < l.size {
		if d.lits == nil {
			d.lits = make([]byte, blockMax+slack)
		}
		to = d.lits
	}
	l.bytes, l.limit, l.inPlace = to[:l.size], to, true
	if l.kind == repeatedLiterals {
		fill(l.bytes, f.src[l.start])
		return true
	}
	start := l.start
	if l.kind == compressedLiterals {
		size, ok := d.huff.read(f.src[start:l.end])
		if !ok {
			return false
		}
		start += size
		f.huffKnown = true
	}
	return f.huffKnown && l.size > 0 && d.huff.decode(l.bytes, f.src, start, l.end, l.four)
}
