package zarr

import (
	"cmp"
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/internal/num"
)

// maxRank is the largest number of dimensions. numpy 1 has the same.
const maxRank = 32

// Meta is the metadata of an array. It does not change.
type Meta struct {
	Format int         // 2 or 3
	Shape  []int64     // cells along each dimension
	Chunks []int64     // cells of a chunk, the unit of decoding
	Shards []int64     // cells of a shard, nil without sharding
	DType  chunk.DType // booleans are uint8; see view
	Bool   bool
	Fill   []byte     // one sample, little-endian
	Names  []string   // of the dimensions, "" for one without; nil if none has a name
	Codecs []string   // in the order in which they encode, those inside of shards last
	Attrs  jsonObject // not decoded

	stored chunk.DType // before view
	keys   keys
	order  []int        // the dimensions in the order in which a decoded chunk holds them, the last one fastest
	shards []shardLevel // the outermost first
	steps  []decodeStep // in the order in which they decode
	// xarrayFill is true if a fill value was given and xarray wrote the array.
	xarrayFill bool
	raw        string // the metadata as text, for the fingerprint
}

// keys say how the coordinates of a chunk become the name of its object.
type keys struct {
	prefix, sep string
}

// name returns the name of an object, relative to the array.
func (k keys) name(at []int64) string {
	var name strings.Builder
	name.WriteString(k.prefix)
	for i, coordinate := range at {
		if i > 0 || k.prefix != "" {
			name.WriteString(k.sep)
		}
		name.WriteString(strconv.FormatInt(coordinate, 10))
	}
	if name.Len() == 0 {
		return "0"
	}
	return name.String()
}

// checkShape checks sizes: as many for chunks as for the array, all positive, and products that fit.
func checkShape(shape, chunks []int64) error {
	if len(shape) > maxRank {
		return fault.New(fault.Limit, metaPart, "%d dimensions, at most %d", len(shape), maxRank)
	}
	if len(chunks) != len(shape) {
		return corrupt("chunks of %d dimensions in an array of %d", len(chunks), len(shape))
	}
	for d, n := range shape {
		if n < 0 || chunks[d] < 1 || n > math.MaxInt64-chunks[d] {
			return corrupt("%d cells in chunks of %d along dimension %d", n, chunks[d], d)
		}
	}
	return nil
}

// cells returns the number of cells of a box, or -1 if it is over limit.
func cells(shape []int64, limit int64) int64 {
	if slices.Contains(shape, 0) {
		return 0
	}
	count := int64(1)
	for _, side := range shape {
		// The product is checked before it is made, so it does not overflow.
		if side > limit/count {
			return -1
		}
		count *= side
	}
	return count
}

// chunkBytes returns the size of a decoded chunk, or an error if it is over limit.
func (m *Meta) chunkBytes(limit int64) (int, error) {
	count := cells(m.Chunks, limit/int64(m.DType.Size()))
	if count < 0 {
		return 0, fault.New(fault.Limit, metaPart, "a chunk of %v %s decodes to more than max_chunk, which is %d "+
			"(--max-chunk of commands)", m.Chunks, m.DType, limit)
	}
	return int(count) * m.DType.Size(), nil
}

// named is a codec or another extension: of version 3 an object with a name and a configuration, or the name alone, and
// of version 2 an object with an id and its settings.
type named struct {
	name string
	conf jsonObject
}

// UnmarshalJSON implements json.Unmarshaler.
func (n *named) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && b[0] == '"' {
		return json.Unmarshal(b, &n.name)
	}
	var extension struct {
		ID   string     `json:"id"`
		Name string     `json:"name"`
		Conf jsonObject `json:"configuration"`
	}
	if err := json.Unmarshal(b, &extension); err != nil {
		return err
	}
	if n.name, n.conf = extension.Name, extension.Conf; extension.ID == "" {
		return nil
	}
	n.name = extension.ID
	return json.Unmarshal(b, &n.conf)
}

// parse2 parses .zarray, with the attributes of .zattrs, or nil.
func parse2(v, attrs jsonObject) (*Meta, error) {
	meta := &Meta{Format: 2, Attrs: attrs, keys: keys{sep: "."}}
	var typ, order string
	var format int
	if err := v.need("zarr_format", &format); err != nil {
		return nil, err
	}
	if format != 2 {
		return nil, unsupported("zarr_format %d in .zarray", format)
	}
	if err := cmp.Or(v.need("shape", &meta.Shape), v.need("chunks", &meta.Chunks), v.need("order",
		&order)); err != nil {
		return nil, err
	}
	if err := v.need("dtype", &typ); err != nil {
		if v["dtype"] != nil {
			return nil, unsupported("data type %.60s: arrays of numbers and booleans are read", v["dtype"])
		}
		return nil, err
	}
	var big bool
	var err error
	if meta.DType, big, err = parseNumpy(typ); err != nil {
		return nil, err
	}
	meta.Bool = strings.HasSuffix(typ, "b1")
	if err := cmp.Or(meta.finish(v), meta.separator(v, "dimension_separator")); err != nil {
		return nil, err
	}
	meta.order = num.Range[int](0, len(meta.Shape))
	switch order {
	case "C":
	case "F":
		slices.Reverse(meta.order)
	default:
		return nil, corrupt("order %q", order)
	}
	if err := meta.codecs2(v, big); err != nil {
		return nil, err
	}
	if ok, err := attrs.get("_ARRAY_DIMENSIONS", &meta.Names); err != nil || ok && len(meta.Names) != len(meta.Shape) {
		// The key is a convention of xarray, so a value of another form is an attribute like any other.
		meta.Names = nil
	}
	meta.xarrayFill = meta.Names != nil && v["fill_value"] != nil && string(v["fill_value"]) != "null"
	return meta, nil
}

// codecs2 makes the steps of version 2.
func (m *Meta) codecs2(v jsonObject, big bool) error {
	var filters []named
	var last *named
	if _, err := v.get("filters", &filters); err != nil {
		return err
	}
	if _, err := v.get("compressor", &last); err != nil {
		return err
	}
	if last != nil {
		filters = append(filters, *last)
	}
	if err := checkChain(len(filters)); err != nil {
		return err
	}
	chained := newChain(m)
	for _, filter := range filters {
		m.Codecs = append(m.Codecs, filter.name)
		if err := chained.add2(filter.name, filter.conf); err != nil {
			return err
		}
	}
	m.steps = chained.decoding(big)
	return nil
}

// known3 are the keys of an array's zarr.json.
var known3 = []string{"zarr_format", "node_type", "shape", "data_type", "chunk_grid", "chunk_key_encoding",
	"fill_value", "codecs", "dimension_names", "attributes", "storage_transformers", "consolidated_metadata"}

// parse3 parses the zarr.json of an array.
func parse3(v jsonObject) (*Meta, error) {
	meta := &Meta{Format: 3}
	var grid, enc named
	var codecs []named
	var transformers []json.RawMessage
	if err := mustUnderstand(v, known3); err != nil {
		return nil, err
	}
	if err := cmp.Or(v.need("shape", &meta.Shape), v.need("chunk_grid", &grid), v.need("codecs", &codecs),
		v.need("chunk_key_encoding", &enc)); err != nil {
		return nil, err
	}
	if _, err := v.get("storage_transformers", &transformers); err != nil || len(transformers) > 0 {
		return nil, unsupported("storage transformers")
	}
	if grid.name != "regular" {
		return nil, unsupported("chunk grid %q: regular ones are read", grid.name)
	}
	if err := grid.conf.need("chunk_shape", &meta.Chunks); err != nil {
		return nil, err
	}
	var err error
	if v["data_type"] == nil {
		return nil, corrupt("%q is missing", "data_type")
	}
	if meta.DType, err = parseType(v["data_type"]); err != nil {
		return nil, err
	}
	meta.Bool = string(v["data_type"]) == `"bool"`
	if err := cmp.Or(meta.finish(v), meta.keyEncoding(enc)); err != nil {
		return nil, err
	}
	if err := meta.codecs3(codecs); err != nil {
		return nil, err
	}
	var names []*string
	if _, err := v.get("dimension_names", &names); err != nil {
		return nil, err
	}
	if len(names) > 0 && len(names) != len(meta.Shape) {
		return nil, corrupt("%d dimension_names for %d dimensions", len(names), len(meta.Shape))
	}
	for _, name := range names {
		if name == nil {
			name = new(string)
		}
		meta.Names = append(meta.Names, *name)
	}
	_, err = v.get("attributes", &meta.Attrs)
	return meta, err
}

// finish reads what both versions write alike, once the sizes and the type are known.
func (m *Meta) finish(v jsonObject) (err error) {
	if err := checkShape(m.Shape, m.Chunks); err != nil {
		return err
	}
	m.Fill, err = parseFill(v["fill_value"], m.DType)
	m.raw = fingerprintText(v)
	return err
}

// separator reads what stands between the numbers in the name of an object, if it is given.
func (m *Meta) separator(v jsonObject, key string) error {
	ok, err := v.get(key, &m.keys.sep)
	if ok && err == nil && m.keys.sep != "." && m.keys.sep != "/" {
		return corrupt("%s %q", key, m.keys.sep)
	}
	return err
}

// mustUnderstand refuses keys that are not known, unless their value says that it may be ignored.
func mustUnderstand(v jsonObject, known []string) error {
	for key, raw := range v {
		if slices.Contains(known, key) {
			continue
		}
		var x struct {
			Must *bool `json:"must_understand"`
		}
		if json.Unmarshal(raw, &x) != nil || x.Must == nil || *x.Must {
			return unsupported("extension %.60q", key)
		}
	}
	return nil
}

// keyEncoding parses chunk_key_encoding.
func (m *Meta) keyEncoding(enc named) error {
	switch enc.name {
	case "default":
		m.keys = keys{prefix: "c", sep: "/"}
	case "v2":
		m.keys = keys{sep: "."}
	default:
		return unsupported("chunk key encoding %q", enc.name)
	}
	return m.separator(enc.conf, "separator")
}

// fingerprintText returns the metadata that decides how chunks are read, in a fixed order.
func fingerprintText(v jsonObject) string {
	var text strings.Builder
	for _, key := range [...]string{"shape", "chunks", "chunk_grid", "dtype", "data_type", "order", "fill_value",
		"codecs", "compressor", "filters"} {
		text.WriteString(key)
		text.Write(v[key])
	}
	return text.String()
}
