package zarr

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/num"
	"github.com/chaski-eo/chaski/store/arrays"
)

// not2 are codecs that version 2 lacks, not3 those that version 3 does not have as codecs of numcodecs, and own3 those
// that it has itself.
var (
	not2 = []string{"lzf", "crc32c"}
	not3 = []string{"lzf", "crc32c", "delta", "fixedscaleoffset"}
	own3 = []string{"zstd", "gzip", "blosc", "crc32c"}
)

// filter3 adds a codec of version 3 from bytes to bytes.
func (m *meta) filter3(n named) error {
	id, numcodecs := strings.CutPrefix(n.name, "numcodecs.")
	if numcodecs && slices.Contains(not3, id) || !numcodecs && !slices.Contains(own3, id) {
		return arrays.Unsupported("codec %q", n.name)
	}
	m.Filters = append(m.Filters, arrays.Filter{Name: n.name, Codec: id, Conf: n.conf})
	return nil
}

// maxShardLevels bounds shards in shards: writers use one, tests two.
const maxShardLevels = 4

// codecs3 makes the steps of version 3, and the levels of shards.
func (m *meta) codecs3(list []named) error {
	m.Order = num.Range[int](0, len(m.Shape))
	for i := 0; ; i++ {
		for _, n := range list {
			m.Codecs = append(m.Codecs, n.name)
		}
		pos := slices.IndexFunc(list, func(n named) bool { return n.name == "sharding_indexed" })
		if pos < 0 {
			return m.chain3(list)
		}
		if len(list) != 1 {
			return arrays.Unsupported("codecs around sharding_indexed: %q", m.Codecs)
		}
		if i == maxShardLevels {
			return arrays.Unsupported("more than %d levels of shards", maxShardLevels)
		}
		var err error
		if list, err = m.shard(list[0].conf); err != nil {
			return fault.WithPart(err, "sharding_indexed", fault.NoOffset)
		}
	}
}

// shard adds a level of shards and returns the codecs inside.
func (m *meta) shard(conf arrays.Object) (inside []named, err error) {
	level := shardLevel{}
	var index []named
	if err := cmp.Or(conf.Need("chunk_shape", &level.inner), conf.Need("codecs", &inside),
		conf.Need("index_codecs", &index)); err != nil {
		return nil, err
	}
	var place string
	if _, err := conf.Get("index_location", &place); err != nil {
		return nil, err
	}
	switch place {
	case "", "end":
	case "start":
		level.atStart = true
	default:
		return nil, arrays.Corrupt("index_location %q", place)
	}
	if err := arrays.CheckShape(m.Chunks, level.inner); err != nil {
		return nil, err
	}
	for d, side := range m.Chunks {
		if side%level.inner[d] != 0 {
			return nil, arrays.Corrupt("chunks of %d cells in a shard of %d along dimension %d",
				level.inner[d], side, d)
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
			return nil, arrays.Unsupported("index codec %q", codec.name)
		}
	}
	if len(index) == 0 {
		return nil, arrays.Corrupt("no index codecs")
	}
	if m.Shards == nil {
		m.Shards = m.Chunks
	}
	m.shards, m.Chunks = append(m.shards, level), level.inner
	return inside, nil
}

// endian parses the configuration of the codec bytes, and reports whether samples of size bytes are big-endian.
func endian(conf arrays.Object, size int) (big bool, err error) {
	var order string
	ok, err := conf.Get("endian", &order)
	switch {
	case err != nil:
		return false, err
	case !ok && size == 1:
		return false, nil
	case order == "little" || order == "big":
		return order == "big" && size > 1, nil
	}
	return false, arrays.Corrupt("endian %q of the codec bytes", order)
}

// chain3 makes the steps of the codecs of a chunk: transposes, bytes, then what works on bytes.
func (m *meta) chain3(list []named) error {
	seen := false
	for _, codec := range list {
		var err error
		switch {
		case codec.name == "transpose" && !seen:
			err = m.transpose(codec.conf)
		case codec.name == vlenText && m.Strings && !seen:
			seen = true
		case codec.name == "bytes" && !seen && !m.Strings:
			seen = true
			m.Big, err = endian(codec.conf, m.DType.Size())
		case seen:
			err = m.filter3(codec)
		default:
			err = arrays.Unsupported("codec %q", codec.name)
		}
		if err != nil {
			return err
		}
	}
	if !seen {
		return arrays.Corrupt("no codec from numbers to bytes among %q", m.Codecs)
	}
	return m.Check()
}

// transpose applies the codec transpose: dimension i of its output is dimension order[i] of its input.
func (m *meta) transpose(conf arrays.Object) error {
	var order []int
	if raw := conf["order"]; len(raw) > 0 && raw[0] == '"' { // drafts of version 3 had "C" and "F"
		var letter string
		if err := json.Unmarshal(raw, &letter); err != nil || letter != "C" && letter != "F" {
			return arrays.Corrupt("order %.40q of the codec transpose", raw)
		}
		order = num.Range[int](0, len(m.Order))
		if letter == "F" {
			slices.Reverse(order)
		}
	} else if err := conf.Need("order", &order); err != nil {
		return err
	}
	if len(order) != len(m.Order) {
		return arrays.Corrupt("order %v of the codec transpose for %d dimensions", order, len(m.Order))
	}
	next, used := make([]int, len(order)), make([]bool, len(order))
	for i, d := range order {
		if d < 0 || d >= len(order) || used[d] {
			return arrays.Corrupt("order %v of the codec transpose", order)
		}
		used[d], next[i] = true, m.Order[d]
	}
	m.Order = next
	return nil
}
