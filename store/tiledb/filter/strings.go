package filter

import (
	"encoding/binary"
	"slices"

	"github.com/chaski-eo/chaski/fault"
)

// HoldsOffsets reports whether tiles of strings of variable length carry the offsets of their cells,
// because the first filter is RLE or a dictionary. Their tiles of offsets are then empty. ascii says
// which of the two string types that this concerns the strings have.
func (p Pipeline) HoldsOffsets(version uint32, ascii bool) bool {
	runs, dictionary := uint32(sinceUTF8), uint32(sinceUTF8)
	if ascii {
		runs, dictionary = sinceRuns, sinceDictionary
	}
	return p.Has(RLE) && version >= runs || p.Has(Dictionary) && version >= dictionary
}

// Format versions from which the offsets are in the tiles of strings: of ASCII strings by RLE and by
// a dictionary, and of UTF-8 strings by either.
const (
	sinceRuns       = 12
	sinceDictionary = 13
	sinceUTF8       = 17
)

// Strings fills dst with the strings of a tile whose first filter is RLE or a dictionary, and offs
// with the offset of each of its cells as uint64. The tile must have exactly these sizes.
func (d *Decoder) Strings(dst, offs, src []byte, p Pipeline, e Elem) error {
	if len(p.Filters) == 0 || p.Filters[0].ID != RLE && p.Filters[0].ID != Dictionary {
		return fault.New(fault.Unsupported, "filter pipeline",
			"RLE or a dictionary of strings that is not the first filter")
	}
	size, chunks, err := Size(src)
	if err != nil {
		return err
	}
	if size != int64(len(dst)) || chunks > 1 {
		return corrupt("tile", "%d chunks with %d bytes, one with %d needed", chunks, size, len(dst))
	}
	if chunks == 0 {
		clear(offs)
		return nil
	}
	chunk, _, err := nextChunk(src, 8)
	if err != nil {
		return err
	}
	d.plan(p, e)
	meta, data := chunk.meta, chunk.data
	for i := len(d.steps) - 1; i > 0; i-- {
		// The strings may be stored in more bytes than they have, together with their offsets.
		if meta, data, err = d.undo(d.steps[i], nil, meta, data, len(dst)+len(offs)); err != nil {
			return fault.WithPart(err, "chunk 0", int64(chunk.off))
		}
	}
	var tile stringTile
	if err = tile.parse(meta, data, len(dst), len(offs)); err == nil {
		if p.Filters[0].ID == RLE {
			err = tile.runs(dst, offs)
		} else {
			err = tile.words(dst, offs)
		}
	}
	return fault.WithPart(fault.WithPart(err, p.Filters[0].ID.String(), fault.NoOffset), "chunk 0", int64(chunk.off))
}

// stringTile is a tile of strings before its first filter is undone.
type stringTile struct {
	count, length int    // bytes of a run's length or of a word's number, and of a string's length
	rest          []byte // metadata after these
	data          []byte
}

// parse reads the metadata: no parts of metadata and one of data, its length before and after the
// filter, the length of the offsets, and the bytes of two kinds of numbers.
func (t *stringTile) parse(meta, data []byte, size, offsets int) error {
	if len(meta) < 22 {
		return corrupt("metadata", "%d bytes, at least 22 needed", len(meta))
	}
	var header [5]uint32
	for i := range header {
		header[i], _ = u32(&meta)
	}
	switch {
	case header[0] != 0 || header[1] != 1:
		return corrupt("metadata", "%d and %d parts, 0 and 1 expected", header[0], header[1])
	case uint64(header[2]) != uint64(size) || uint64(header[4]) != uint64(offsets):
		return corrupt("metadata", "strings of %d bytes and offsets of %d, %d and %d needed", header[2], header[4],
			size, offsets)
	case uint64(header[3]) > uint64(len(data)):
		return corrupt("metadata", "%d bytes of data, %d are left", header[3], len(data))
	}
	t.count, t.length, t.rest, t.data = int(meta[0]), int(meta[1]), meta[2:], data[:header[3]]
	for _, n := range []int{t.count, t.length} {
		if n != 1 && n != 2 && n != 4 && n != 8 {
			return corrupt("metadata", "numbers of %d bytes", n)
		}
	}
	return nil
}

// number reads a big-endian number from the front of b.
func number(b *[]byte, size int) (v uint64, ok bool) {
	if len(*b) < size {
		return 0, false
	}
	for _, x := range (*b)[:size] {
		v = v<<8 | uint64(x)
	}
	*b = (*b)[size:]
	return v, true
}

// text reads a string and its length from the front of b.
func (t *stringTile) text(b *[]byte) ([]byte, bool) {
	length, ok := number(b, t.length)
	if !ok || length > uint64(len(*b)) {
		return nil, false
	}
	text := (*b)[:length]
	*b = (*b)[length:]
	return text, true
}

// stringCells are the strings and offsets that are filled.
type stringCells struct {
	dst, offs []byte
	at        int
}

// put adds a string. It reports whether there is room.
func (c *stringCells) put(s []byte) bool {
	if len(c.offs) < 8 || len(c.dst)-c.at < len(s) {
		return false
	}
	binary.LittleEndian.PutUint64(c.offs, uint64(c.at))
	c.offs = c.offs[8:]
	c.at += copy(c.dst[c.at:], s)
	return true
}

func (c *stringCells) end() error {
	if len(c.offs) > 0 || c.at != len(c.dst) {
		return corrupt("", "%d cells and %d bytes are missing", len(c.offs)/8, len(c.dst)-c.at)
	}
	return nil
}

// runs undoes RLE: the length of a run, and the string that is repeated.
func (t *stringTile) runs(dst, offs []byte) error {
	if len(t.rest) > 0 {
		return corrupt("metadata", "%d bytes are left over", len(t.rest))
	}
	cells := stringCells{dst: dst, offs: offs}
	for data := t.data; len(data) > 0; {
		run, _ := number(&data, t.count)
		text, ok := t.text(&data)
		if !ok || run == 0 {
			return corrupt("", "a run of %d strings that does not fit into %d bytes", run, len(data))
		}
		if run > uint64(len(offs)/8) {
			return corrupt("", "a run of %d strings in a tile of %d", run, len(offs)/8)
		}
		for range run {
			if !cells.put(text) {
				return corrupt("", "more strings than the tile has")
			}
		}
	}
	return cells.end()
}

// words undoes a dictionary: the metadata has the strings, the data the number of each cell's.
func (t *stringTile) words(dst, offs []byte) error {
	size, ok := u32(&t.rest)
	dict, ok2 := take(&t.rest, size)
	if !ok || !ok2 || len(t.rest) > 0 {
		return corrupt("metadata", "a dictionary of %d bytes, %d are left over", size, len(t.rest))
	}
	var words [][]byte
	for len(dict) > 0 {
		word, ok := t.text(&dict)
		if !ok || len(words) >= len(offs)/8 {
			return corrupt("metadata", "word %d of the dictionary does not fit", len(words))
		}
		words = append(words, word)
	}
	words = slices.Clip(words)
	cells := stringCells{dst: dst, offs: offs}
	for b := t.data; len(b) > 0; {
		index, ok := number(&b, t.count)
		if !ok || index >= uint64(len(words)) {
			return corrupt("", "word %d of %d", index, len(words))
		}
		if !cells.put(words[index]) {
			return corrupt("", "more strings than the tile has")
		}
	}
	return cells.end()
}
