package zarr

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"github.com/chaski-eo/chaski/fault"
)

// chain collects the steps of codecs in the order in which they encode.
type chain struct {
	m     *Meta
	cells int64 // of a chunk, -1 if too many: Meta.chunkBytes refuses it later
	size  int   // bytes so far; -1 after a compressor
	steps []step
}

func newChain(m *Meta) *chain {
	// 2^40 only keeps products within an int64; the limit of decoded bytes is lower.
	c := &chain{m: m, cells: cells(m.Chunks, 1<<40)}
	c.size = max(int(c.cells), 0) * m.DType.Size()
	return c
}

// maxCodecs bounds the codecs of one chunk, since each may go over all its bytes. Writers chain up to four.
const maxCodecs = 16

// checkChain returns an error if codecs are too many.
func checkChain(n int) error {
	if n > maxCodecs {
		return fault.New(fault.Limit, metaPart, fault.NoOffset, "%d codecs of a chunk, at most %d", n, maxCodecs)
	}
	return nil
}

// add appends a step, whose decoded size is the size so far.
func (c *chain) add(s step) error {
	if s.do.compresses() && c.size < 0 {
		return unsupported("codec %q around another compressor", s.name)
	}
	if c.size < 0 && !s.do.sums() {
		return unsupported("codec %q around a compressor", s.name)
	}
	s.size = c.size
	c.steps = append(c.steps, s)
	switch {
	case s.do.compresses():
		c.size = -1
	case s.do.sums() && c.size >= 0:
		c.size += sumBytes
	}
	return nil
}

// byName are the codecs of numcodecs without settings that decoding needs.
var byName = map[string]action{"zstd": doZstd, "gzip": doGzip, "zlib": doZlib, "bz2": doBzip2, "lz4": doLZ4,
	"blosc": doBlosc, "fletcher32": doFletcher32}

// add2 adds a codec of version 2.
func (c *chain) add2(id string, conf object) error {
	if do, ok := byName[id]; ok {
		return c.add(step{name: id, do: do})
	}
	switch id {
	case "shuffle":
		return c.shuffle(conf)
	case "delta", "fixedscaleoffset":
		return c.filter(id, conf)
	case "quantize", "bitround":
		// They changed the values when the chunk was written. If they keep the type, decoding does nothing.
		if conf.text("dtype") == conf.text("astype") || id == "bitround" {
			return nil
		}
	}
	return unsupported("codec %q", id)
}

func (c *chain) shuffle(conf object) error {
	size := 4
	if _, err := conf.get("elementsize", &size); err != nil {
		return err
	}
	if size < 1 || size > 1<<16 {
		return corrupt("elementsize %d of the codec shuffle", size)
	}
	return c.add(step{name: "shuffle", do: doShuffle, elem: size})
}

// filter adds the filter delta or fixedscaleoffset.
func (c *chain) filter(id string, conf object) error {
	s := step{name: id, do: doDelta}
	target, source := conf.text("dtype"), conf.text("astype")
	source = cmp.Or(source, target)
	var err error
	if s.to.t, s.to.big, err = parseNumpy(target); err != nil {
		return err
	}
	if s.from.t, s.from.big, err = parseNumpy(source); err != nil {
		return err
	}
	if c.size < 0 || c.size != max(int(c.cells), 0)*s.to.t.Size() {
		return corrupt("codec %q of values of type %q in an array of type %s", id, target, c.m.DType)
	}
	if id == "fixedscaleoffset" {
		s.do = doScale
		if err := cmp.Or(conf.need("scale", &s.scale), conf.need("offset", &s.shift)); err != nil {
			return err
		}
	}
	if !s.known() {
		return unsupported("codec %q from %q to %q", id, source, target)
	}
	if err := c.add(s); err != nil {
		return err
	}
	c.size = max(int(c.cells), 0) * s.from.t.Size()
	return nil
}

// add3 adds a codec of version 3 from bytes to bytes.
func (c *chain) add3(n named) error {
	if n.name == "crc32c" {
		return c.add(step{name: n.name, do: doCRC32C})
	}
	id, numcodecs := strings.CutPrefix(n.name, "numcodecs.")
	if id == "shuffle" && numcodecs {
		return c.shuffle(n.conf)
	}
	do, ok := byName[id]
	standard := do == doZstd || do == doGzip || do == doBlosc // without a prefix
	if !ok || !numcodecs && !standard {
		return unsupported("codec %q", n.name)
	}
	return c.add(step{name: n.name, do: do})
}

// decoding returns the steps in the order in which they decode. big says that samples are big-endian.
func (c *chain) decoding(big bool) []step {
	var out []step
	for _, s := range slices.Backward(c.steps) {
		out = append(out, s)
	}
	if big {
		out = append(out, step{name: "bytes", do: doSwap, size: max(int(c.cells), 0) * c.m.DType.Size(),
			elem: c.m.DType.Size()})
	}
	return out
}

// maxShardLevels bounds shards in shards: writers use one, tests two.
const maxShardLevels = 4

// codecs3 makes the steps of version 3, and the levels of shards.
func (m *Meta) codecs3(list []named) error {
	m.order = count(len(m.Shape))
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
func (m *Meta) shard(conf object) (inside []named, err error) {
	s := shard{}
	var index []named
	if err := cmp.Or(conf.need("chunk_shape", &s.inner), conf.need("codecs", &inside),
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
		s.atStart = true
	default:
		return nil, corrupt("index_location %q", place)
	}
	if err := checkShape(m.Chunks, s.inner); err != nil {
		return nil, err
	}
	for d, n := range m.Chunks {
		if n%s.inner[d] != 0 {
			return nil, corrupt("chunks of %d cells in a shard of %d along dimension %d", s.inner[d], n, d)
		}
		s.grid = append(s.grid, n/s.inner[d])
	}
	for i, named := range index {
		switch {
		case named.name == "bytes" && i == 0:
			if s.big, err = endian(named.conf, 8); err != nil {
				return nil, err
			}
		case named.name == "crc32c" && i == 1:
			s.sum = true
		default:
			return nil, unsupported("index codec %q", named.name)
		}
	}
	if len(index) == 0 {
		return nil, corrupt("no index codecs")
	}
	if m.Shards == nil {
		m.Shards = m.Chunks
	}
	m.shards, m.Chunks = append(m.shards, s), s.inner
	return inside, nil
}

// endian parses the configuration of the codec bytes, and reports whether samples of size bytes are big-endian.
func endian(conf object, size int) (big bool, err error) {
	var e string
	ok, err := conf.get("endian", &e)
	switch {
	case err != nil:
		return false, err
	case !ok && size == 1:
		return false, nil
	case e == "little" || e == "big":
		return e == "big" && size > 1, nil
	}
	return false, corrupt("endian %q of the codec bytes", e)
}

// chain3 makes the steps of the codecs of a chunk: transposes, bytes, then what works on bytes.
func (m *Meta) chain3(list []named) error {
	chain := newChain(m)
	big, seen := false, false
	for _, named := range list {
		var err error
		switch {
		case named.name == "transpose" && !seen:
			err = m.transpose(named.conf)
		case named.name == "bytes" && !seen:
			seen = true
			big, err = endian(named.conf, m.DType.Size())
		case seen:
			err = chain.add3(named)
		default:
			err = unsupported("codec %q", named.name)
		}
		if err != nil {
			return err
		}
	}
	if !seen {
		return corrupt("no codec from numbers to bytes among %q", m.Codecs)
	}
	m.steps = chain.decoding(big)
	return nil
}

// transpose applies the codec transpose: dimension i of its output is dimension order[i] of its input.
func (m *Meta) transpose(conf object) error {
	var order []int
	if raw := conf["order"]; len(raw) > 0 && raw[0] == '"' { // drafts of version 3 had "C" and "F"
		var s string
		if err := json.Unmarshal(raw, &s); err != nil || s != "C" && s != "F" {
			return corrupt("order %.40q of the codec transpose", raw)
		}
		order = count(len(m.order))
		if s == "F" {
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
