package whole

import "github.com/klauspost/compress/huff0"

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
	four    bool   // four streams of Huffman codes
	size    int    // decoded
	code    []byte // as stored
	bytes   []byte // decoded, once decodeLiterals was called
	limit   []byte // bytes, and those after them that may be read
	inPlace bool   // decodeLiterals wrote them to the place that it was given
}

// literals reads the header of the literals of a block that ends at end, and skips them.
func (f *frame) literals(end int) (literals, bool) {
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
	l.code = b[head : head+stored]
	l.limit = f.src[f.at+head:]
	f.at += head + stored
	return l, true
}

// decodeLiterals decodes literals, into to if they have to be written. to has no elements, and room for all of them or
// less than d.lits has.
func (d *Decoder) decodeLiterals(l *literals, to []byte) bool {
	if l.kind == rawLiterals {
		l.bytes = l.code
		return true
	}
	if cap(to) < l.size {
		d.lits = make([]byte, blockMax+slack)
		to = d.lits[:0:l.size]
	}
	l.inPlace = true
	if l.kind == repeatedLiterals {
		l.bytes = to[:l.size]
		fill(l.bytes, l.code[0])
		l.limit = d.lits
		return true
	}
	code := l.code
	if l.kind == compressedLiterals {
		var err error
		if d.huff, code, err = huff0.ReadTable(code, d.huff); err != nil {
			d.huff = nil
			return false
		}
		d.frame.huffKnown = true
	} else if !d.frame.huffKnown {
		return false
	}
	var err error
	if l.four {
		l.bytes, err = d.huff.Decoder().Decompress4X(to, code)
	} else {
		l.bytes, err = d.huff.Decoder().Decompress1X(to, code)
	}
	l.limit = d.lits
	return err == nil && len(l.bytes) == l.size
}
