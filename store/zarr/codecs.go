package zarr

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/num"
)

// chain collects the steps of codecs in the order in which they encode.
type chain struct {
	m     *Meta
	cells int64 // of a chunk, -1 if too many: Meta.chunkBytes refuses it later
	size  int   // bytes so far; -1 after a compressor
	steps []decodeStep
}

func newChain(m *Meta) *chain {
	// 2^40 only keeps products within an int64; the limit of decoded bytes is lower.
	chained := &chain{m: m, cells: cells(m.Chunks, 1<<40)}
	chained.size = max(int(chained.cells), 0) * m.DType.Size()
	return chained
}

// maxCodecs bounds the codecs of one chunk, since each may go over all its bytes. Writers chain up to four.
const maxCodecs = 16

// checkChain returns an error if codecs are too many.
func checkChain(n int) error {
	if n > maxCodecs {
		return fault.New(fault.Limit, metaPart, "%d codecs of a chunk, at most %d", n, maxCodecs)
	}
	return nil
}

// add adds the step of a codec, whose decoded size is the size so far.
func (c *chain) add(name string, kind *codecKind, conf jsonObject) error {
	added := decodeStep{name: name, codecKind: kind, size: c.size}
	if c.size < 0 && kind.compresses {
		return unsupported("codec %q around another compressor", name)
	}
	// Only a checksum may be around a compressor, because it needs no size of its input.
	if c.size < 0 && kind.sum == nil {
		return unsupported("codec %q around a compressor", name)
	}
	if kind.configure != nil {
		if err := kind.configure(c, &added, conf); err != nil {
			return err
		}
	}
	c.steps, c.size = append(c.steps, added), added.stored()
	return nil
}

// add2 adds a codec of version 2.
func (c *chain) add2(id string, conf jsonObject) error {
	switch kind := codecs[id]; {
	case kind != nil:
		return c.add(id, kind, conf)
	case id == "bitround", id == "quantize" && conf.text("dtype") == conf.text("astype"):
		return nil // it changed the values when the chunk was written, and kept their type: decoding does nothing
	}
	return unsupported("codec %q", id)
}

// add3 adds a codec of version 3 from bytes to bytes.
func (c *chain) add3(n named) error {
	id, numcodecs := strings.CutPrefix(n.name, "numcodecs.")
	kind := codecs[id]
	if n.name == "crc32c" {
		kind, numcodecs = crc32cCodec, true
	}
	if kind == nil || kind.only2 || !numcodecs && !kind.standard {
		return unsupported("codec %q", n.name)
	}
	return c.add(n.name, kind, n.conf)
}

// decoding returns the steps in the order in which they decode. big says that samples are big-endian.
func (c *chain) decoding(big bool) []decodeStep {
	var out []decodeStep
	for _, s := range slices.Backward(c.steps) {
		out = append(out, s)
	}
	if big {
		size := c.m.DType.Size()
		out = append(out, decodeStep{name: "bytes", codecKind: swapCodec, size: max(int(c.cells), 0) * size,
			elem: size})
	}
	return out
}

// maxShardLevels bounds shards in shards: writers use one, tests two.
const maxShardLevels = 4

// codecs3 makes the steps of version 3, and the levels of shards.
func (m *Meta) codecs3(list []named) error {
	m.order = num.Range[int](0, len(m.Shape))
	for i := 0; ; i++ {
		if err := checkChain(len(list)); err != nil {
			return err
		}
		for _, n := range list {
			m.Codecs = append(m.Codecs, n.name)
		}
		pos := slices.IndexFunc(list, func(n named) bool { return n.name == "sharding_indexed" })
		if pos < 0 {
			return m.chain3(list)
		}
		if len(list) != 1 {
			return unsupported("codecs around sharding_indexed: %q", m.Codecs)
		}
		if i == maxShardLevels {
			return unsupported("more than %d levels of shards", maxShardLevels)
		}
		var err error
		if list, err = m.shard(list[0].conf); err != nil {
			return fault.WithPart(err, "sharding_indexed", fault.NoOffset)
		}
	}
}

// shard adds a level of shards and returns the codecs inside.
func (m *Meta) shard(conf jsonObject) (inside []named, err error) {
	level := shardLevel{}
	var index []named
	if err := cmp.Or(conf.need("chunk_shape", &level.inner), conf.need("codecs", &inside),
		conf.need("index_codecs", &index)); err != nil {
		return nil, err
	}
	var place string
	if _, err := conf.get("index_location", &place); err != nil {
		return nil, err
	}
	switch place {
	case "", "end":
	case "start":
		level.atStart = true
	default:
		return nil, corrupt("index_location %q", place)
	}
	if err := checkShape(m.Chunks, level.inner); err != nil {
		return nil, err
	}
	for d, side := range m.Chunks {
		if side%level.inner[d] != 0 {
			return nil, corrupt("chunks of %d cells in a shard of %d along dimension %d", level.inner[d], side, d)
		}
		level.grid = append(level.grid, side/level.inner[d])
	}
	for i, codec := range index {
		switch {
		case codec.name == "bytes" && i == 0:
			if level.big, err = endian(codec.conf, 8); err != nil {
				return nil, err
			}
		case codec.name == "crc32c" && i == 1:
			level.sum = true
		default:
			return nil, unsupported("index codec %q", codec.name)
		}
	}
	if len(index) == 0 {
		return nil, corrupt("no index codecs")
	}
	if m.Shards == nil {
		m.Shards = m.Chunks
	}
	m.shards, m.Chunks = append(m.shards, level), level.inner
	return inside, nil
}

// endian parses the configuration of the codec bytes, and reports whether samples of size bytes are big-endian.
func endian(conf jsonObject, size int) (big bool, err error) {
	var order string
	ok, err := conf.get("endian", &order)
	switch {
	case err != nil:
		return false, err
	case !ok && size == 1:
		return false, nil
	case order == "little" || order == "big":
		return order == "big" && size > 1, nil
	}
	return false, corrupt("endian %q of the codec bytes", order)
}

// chain3 makes the steps of the codecs of a chunk: transposes, bytes, then what works on bytes.
func (m *Meta) chain3(list []named) error {
	chained := newChain(m)
	big, seen := false, false
	for _, codec := range list {
		var err error
		switch {
		case codec.name == "transpose" && !seen:
			err = m.transpose(codec.conf)
		case codec.name == "bytes" && !seen:
			seen = true
			big, err = endian(codec.conf, m.DType.Size())
		case seen:
			err = chained.add3(codec)
		default:
			err = unsupported("codec %q", codec.name)
		}
		if err != nil {
			return err
		}
	}
	if !seen {
		return corrupt("no codec from numbers to bytes among %q", m.Codecs)
	}
	m.steps = chained.decoding(big)
	return nil
}

// transpose applies the codec transpose: dimension i of its output is dimension order[i] of its input.
func (m *Meta) transpose(conf jsonObject) error {
	var order []int
	if raw := conf["order"]; len(raw) > 0 && raw[0] == '"' { // drafts of version 3 had "C" and "F"
		var letter string
		if err := json.Unmarshal(raw, &letter); err != nil || letter != "C" && letter != "F" {
			return corrupt("order %.40q of the codec transpose", raw)
		}
		order = num.Range[int](0, len(m.order))
		if letter == "F" {
			slices.Reverse(order)
		}
	} else if err := conf.need("order", &order); err != nil {
		return err
	}
	if len(order) != len(m.order) {
		return corrupt("order %v of the codec transpose for %d dimensions", order, len(m.order))
	}
	next, used := make([]int, len(order)), make([]bool, len(order))
	for i, d := range order {
		if d < 0 || d >= len(order) || used[d] {
			return corrupt("order %v of the codec transpose", order)
		}
		used[d], next[i] = true, m.order[d]
	}
	m.order = next
	return nil
}
