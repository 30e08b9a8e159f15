package zarr

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"github.com/chaski-eo/chaski/format/chunk"
	"github.com/chaski-eo/chaski/internal/num"
	"github.com/chaski-eo/chaski/store/arrays"
)

// meta is the metadata of an array, and how its chunks become objects.
type meta struct {
	arrays.Meta
	keys   keys
	shards []shardLevel // the outermost first
}

// pixelsIn reports whether metadata is of an array of two dimensions or more, of anything but strings.
func pixelsIn(v arrays.Object) bool {
	var shape []json.RawMessage
	if ok, err := v.Get("shape", &shape); !ok || err != nil || len(shape) < 2 {
		return false
	}
	for _, key := range [...]string{"dtype", "data_type"} {
		raw := v[key]
		var extension struct {
			Name string `json:"name"`
		}
		name := v.String(key)
		if name == "" && json.Unmarshal(raw, &extension) == nil {
			name = extension.Name
		}
		name = strings.TrimLeft(name, "<>|=")
		version2 := strings.HasPrefix(name, "U") || strings.HasPrefix(name, "S") || name == "O"
		if version2 || name == "string" || strings.Contains(name, "_utf") || strings.HasSuffix(name, "_bytes") {
			return false
		}
	}
	return true
}

// named is a codec or another extension: of version 3 an object with a name and a configuration, or the name alone, and
// of version 2 an object with an id and its settings.
type named struct {
	name string
	conf arrays.Object
}

// UnmarshalJSON implements json.Unmarshaler.
func (n *named) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && b[0] == '"' {
		return json.Unmarshal(b, &n.name)
	}
	var extension struct {
		ID   string        `json:"id"`
		Name string        `json:"name"`
		Conf arrays.Object `json:"configuration"`
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
func parse2(v, attrs arrays.Object) (*meta, error) {
	meta := &meta{Meta: arrays.Meta{Format: 2, Attrs: attrs}, keys: keys{sep: "."}}
	var typ, order string
	var format int
	if err := v.Need("zarr_format", &format); err != nil {
		return nil, err
	}
	if format != 2 {
		return nil, arrays.Unsupported("zarr_format %d in .zarray", format)
	}
	if err := cmp.Or(v.Need("shape", &meta.Shape), v.Need("chunks", &meta.Chunks), v.Need("order",
		&order)); err != nil {
		return nil, err
	}
	if err := v.Need("dtype", &typ); err != nil {
		if v["dtype"] != nil {
			return nil, arrays.Unsupported("data type %.60s: arrays of numbers and booleans are read", v["dtype"])
		}
		return nil, err
	}
	text, isText := textType(typ)
	if meta.Strings = typ == "|O"; meta.Strings {
		meta.DType, meta.Fill = chunk.Uint8, []byte{0}
	}
	err := meta.separator(v, "dimension_separator")
	if isText || meta.Strings {
		err = cmp.Or(err, meta.finishText(v))
	} else if meta.DType, meta.Big, err = arrays.ParseNumpy(typ); err == nil {
		meta.Bool = strings.HasSuffix(typ, "b1")
		err = cmp.Or(meta.finish(v), meta.separator(v, "dimension_separator"))
	}
	if err != nil {
		return nil, err
	}
	meta.Order = num.Range[int](0, len(meta.Shape))
	switch order {
	case "C":
	case "F":
		slices.Reverse(meta.Order)
	default:
		return nil, arrays.Corrupt("order %q", order)
	}
	if isText {
		text.hold(meta)
		meta.Order = append(meta.Order, len(meta.Order))
	}
	if err := meta.codecs2(v); err != nil {
		return nil, err
	}
	if ok, err := attrs.Get("_ARRAY_DIMENSIONS", &meta.Names); err != nil || ok && len(meta.Names) != len(meta.Shape) ||
		isText {
		// The key is a convention of xarray, so a value of another form is an attribute like any other.
		meta.Names = nil
	}
	meta.FillMissing = meta.Names != nil && v["fill_value"] != nil && string(v["fill_value"]) != "null"
	return meta, nil
}

// codecs2 reads the codecs of version 2.
func (m *meta) codecs2(v arrays.Object) error {
	var list []named
	var last *named
	if _, err := v.Get("filters", &list); err != nil {
		return err
	}
	if _, err := v.Get("compressor", &last); err != nil {
		return err
	}
	if last != nil {
		list = append(list, *last)
	}
	if m.Strings {
		if len(list) == 0 || list[0].name != vlenText {
			return arrays.Unsupported("data type %q: arrays of numbers, booleans and strings are read", "|O")
		}
		m.Codecs, list = append(m.Codecs, vlenText), list[1:]
	}
	for _, codec := range list {
		m.Codecs = append(m.Codecs, codec.name)
		id := codec.name
		if id == "bitround" || id == "quantize" && codec.conf.String("dtype") == codec.conf.String("astype") {
			continue // it changed the values when the chunk was written, and kept their type: decoding does nothing
		}
		if slices.Contains(not2, id) {
			return arrays.Unsupported("codec %q", id)
		}
		m.Filters = append(m.Filters, arrays.Filter{Name: id, Codec: id, Conf: codec.conf})
	}
	return m.Check()
}

// known3 are the keys of an array's zarr.json.
var known3 = []string{"zarr_format", "node_type", "shape", "data_type", "chunk_grid", "chunk_key_encoding",
	"fill_value", "codecs", "dimension_names", "attributes", "storage_transformers", "consolidated_metadata"}

// parse3 parses the zarr.json of an array.
func parse3(v arrays.Object) (*meta, error) {
	meta := &meta{Meta: arrays.Meta{Format: 3}}
	var grid, enc named
	var codecs []named
	var transformers []json.RawMessage
	if err := mustUnderstand(v, known3); err != nil {
		return nil, err
	}
	if err := cmp.Or(v.Need("shape", &meta.Shape), v.Need("chunk_grid", &grid), v.Need("codecs", &codecs),
		v.Need("chunk_key_encoding", &enc)); err != nil {
		return nil, err
	}
	if _, err := v.Get("storage_transformers", &transformers); err != nil || len(transformers) > 0 {
		return nil, arrays.Unsupported("storage transformers")
	}
	if grid.name != "regular" {
		return nil, arrays.Unsupported("chunk grid %q: regular ones are read", grid.name)
	}
	if err := grid.conf.Need("chunk_shape", &meta.Chunks); err != nil {
		return nil, err
	}
	var err error
	if v["data_type"] == nil {
		return nil, arrays.Corrupt("%q is missing", "data_type")
	}
	if text, ok := textType3(v["data_type"]); ok {
		if err = meta.finishText(v); err == nil {
			err = meta.plainText(codecs, &text)
		}
		text.hold(meta)
	} else if meta.Strings = string(v["data_type"]) == `"string"`; meta.Strings {
		meta.DType, meta.Fill = chunk.Uint8, []byte{0}
		err = cmp.Or(meta.finishText(v), meta.plainText(codecs, &fixedText{}))
	} else if meta.DType, err = parseType(v["data_type"]); err == nil {
		meta.Bool = string(v["data_type"]) == `"bool"`
		err = meta.finish(v)
	}
	if err = cmp.Or(err, meta.keyEncoding(enc)); err != nil {
		return nil, err
	}
	if err := meta.codecs3(codecs); err != nil {
		return nil, err
	}
	var names []*string
	if _, err := v.Get("dimension_names", &names); err != nil {
		return nil, err
	}
	if meta.Texts != nil {
		names = nil
	}
	if len(names) > 0 && len(names) != len(meta.Shape) {
		return nil, arrays.Corrupt("%d dimension_names for %d dimensions", len(names), len(meta.Shape))
	}
	for _, name := range names {
		if name == nil {
			name = new(string)
		}
		meta.Names = append(meta.Names, *name)
	}
	_, err = v.Get("attributes", &meta.Attrs)
	return meta, err
}

// parseType parses a type of version 3.
func parseType(raw json.RawMessage) (chunk.DType, error) {
	var name string
	if arrays.Decode(raw, &name) != nil {
		var extension arrays.Object
		if err := arrays.Decode(raw, &extension); err != nil {
			return 0, err
		}
		return 0, arrays.Unsupported("data type %q: arrays of numbers and booleans are read", extension.String("name"))
	}
	if name == "bool" {
		return chunk.Uint8, nil
	}
	for typ := chunk.Uint8; typ <= chunk.Float64; typ++ {
		if typ.String() == name {
			return typ, nil
		}
	}
	return 0, arrays.Unsupported("data type %q: arrays of numbers and booleans are read", name)
}

// finishText is finish for strings, before they are bytes.
func (m *meta) finishText(v arrays.Object) error {
	m.Text = fingerprintText(v)
	return arrays.CheckShape(m.Shape, m.Chunks)
}

// plainText finds the byte order of strings, whose chunks lie in no shards.
func (m *meta) plainText(codecs []named, t *fixedText) (err error) {
	for _, codec := range codecs {
		switch {
		case codec.name == "sharding_indexed", codec.name == "transpose":
			return arrays.Unsupported("codec %q of strings", codec.name)
		case codec.name == "bytes" && t.wide:
			t.big, err = endian(codec.conf, 4)
		}
	}
	return err
}

// finish reads what both versions write alike, once the sizes and the type are known.
func (m *meta) finish(v arrays.Object) (err error) {
	if err := arrays.CheckShape(m.Shape, m.Chunks); err != nil {
		return err
	}
	m.Fill, err = arrays.ParseFill(v["fill_value"], m.DType)
	m.Text = fingerprintText(v)
	return err
}

// separator reads what stands between the numbers in the name of an object, if it is given.
func (m *meta) separator(v arrays.Object, key string) error {
	ok, err := v.Get(key, &m.keys.sep)
	if ok && err == nil && m.keys.sep != "." && m.keys.sep != "/" {
		return arrays.Corrupt("%s %q", key, m.keys.sep)
	}
	return err
}

// mustUnderstand refuses keys that are not known, unless their value says that it may be ignored.
func mustUnderstand(v arrays.Object, known []string) error {
	for key, raw := range v {
		if slices.Contains(known, key) {
			continue
		}
		var x struct {
			Must *bool `json:"must_understand"`
		}
		if json.Unmarshal(raw, &x) != nil || x.Must == nil || *x.Must {
			return arrays.Unsupported("extension %.60q", key)
		}
	}
	return nil
}

// keyEncoding parses chunk_key_encoding.
func (m *meta) keyEncoding(enc named) error {
	switch enc.name {
	case "default":
		m.keys = keys{prefix: "c", sep: "/"}
	case "v2":
		m.keys = keys{sep: "."}
	default:
		return arrays.Unsupported("chunk key encoding %q", enc.name)
	}
	return m.separator(enc.conf, "separator")
}

// fingerprintText returns the metadata that decides how chunks are read, in a fixed order.
func fingerprintText(v arrays.Object) string {
	var text strings.Builder
	for _, key := range [...]string{"shape", "chunks", "chunk_grid", "dtype", "data_type", "order", "fill_value",
		"codecs", "compressor", "filters"} {
		text.WriteString(key)
		text.Write(v[key])
	}
	return text.String()
}
