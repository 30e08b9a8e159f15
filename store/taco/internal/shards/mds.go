package shards

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/chaski-eo/chaski/chunk"
	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/picture/npy"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store/taco/internal/model"
	"github.com/chaski-eo/chaski/tables"
)

// IndexName is the name of the index of a directory of MDS shards.
const IndexName = "index.json"

// maxIndex limits an index: 64 MiB are 60,000 shards of 1 KiB each, which hold 4 TB of the usual 64 MiB.
const maxIndex = 64 << 20

// maxIndexShard bounds the entry of one shard in an index: 1 MiB lists 10,000 columns.
const maxIndexShard = 1 << 20

// indexShards are the shards of an index, which are checked one after the other. The first that is wrong ends the
// decoding, because a shard takes 100 bytes of memory even if the index has two bytes for it.
type indexShards []*indexShard

type indexShard struct {
	Format    string     `json:"format"`
	Version   int        `json:"version"`
	Samples   int64      `json:"samples"`
	Names     []string   `json:"column_names"`
	Encodings []string   `json:"column_encodings"`
	Sizes     []*int64   `json:"column_sizes"`
	Raw       *indexFile `json:"raw_data"`
	Zip       *indexFile `json:"zip_data"`
}

type indexFile struct {
	Name  string `json:"basename"`
	Bytes int64  `json:"bytes"`
}

// UnmarshalJSON implements json.Unmarshaler.
func (l *indexShards) UnmarshalJSON(b []byte) error {
	decoder := json.NewDecoder(bytes.NewReader(b))
	if t, err := decoder.Token(); err != nil || t != json.Delim('[') {
		return fault.New(fault.Corrupt, IndexName, fault.NoOffset, "its shards are not a list")
	}
	for i := 0; decoder.More(); i++ {
		var text json.RawMessage
		if err := decoder.Decode(&text); err != nil {
			return err
		}
		if len(text) > maxIndexShard {
			return fault.New(fault.Limit, IndexName, fault.NoOffset, "shard %d has %d bytes, at most %d", i, len(text),
				maxIndexShard)
		}
		shard := &indexShard{}
		if err := json.Unmarshal(text, shard); err != nil {
			return err
		}
		*l = append(*l, shard)
		if err := shard.check(i, (*l)[0]); err != nil {
			return err
		}
		// They are equal, and would otherwise be kept for each shard.
		shard.Names, shard.Encodings = (*l)[0].Names, (*l)[0].Encodings
	}
	return nil
}

// check checks shard i of an index.
func (s *indexShard) check(i int, first *indexShard) error {
	bad := func(k fault.Kind, format string, args ...any) error {
		return fault.New(k, fmt.Sprintf("%s shard %d", IndexName, i), fault.NoOffset, format, args...)
	}
	switch {
	case s.Format != "mds" || s.Version != 2:
		return bad(fault.Unsupported, "is of format %.40q, version %d: mds, version 2, is read", s.Format, s.Version)
	case s.Raw == nil || model.Climbs(s.Raw.Name) || s.Zip != nil && model.Climbs(s.Zip.Name):
		return bad(fault.Corrupt, "has no raw_data, or a name that is not below the directory")
	case len(s.Names) == 0 || len(s.Encodings) != len(s.Names) || len(s.Sizes) != len(s.Names):
		return bad(fault.Corrupt, "has %d columns, %d encodings and %d sizes", len(s.Names), len(s.Encodings),
			len(s.Sizes))
	case s.Samples < 0 || s.Samples > maxRows:
		return bad(fault.Corrupt, "has %d samples", s.Samples)
	case !slices.Equal(s.Names, first.Names) || !slices.Equal(s.Encodings, first.Encodings):
		return bad(fault.Unsupported, "and shard 0 have different columns: %.200q and %.200q", s.Names, first.Names)
	}
	return nil
}

// IsMDS reports whether r is an index of shards of MosaicML Streaming, also one that OpenMDS refuses.
func IsMDS(ctx context.Context, r source.Reader) bool {
	shards, _ := readIndex(ctx, r)
	return len(shards) > 0 && shards[0].Format != ""
}

// readIndex reads an index. After an error it returns the shards decoded so far.
func readIndex(ctx context.Context, r source.Reader) (indexShards, error) {
	if r.Size() > maxIndex {
		return nil, fault.New(fault.Limit, IndexName, fault.NoOffset, "%d bytes, at most %d", r.Size(), maxIndex)
	}
	data := make([]byte, r.Size())
	if err := r.ReadAt(ctx, data, 0); err != nil {
		return nil, err
	}
	var index struct {
		Shards indexShards `json:"shards"`
	}
	err := json.Unmarshal(data, &index)
	switch {
	case err != nil && fault.KindOf(err) == 0:
		err = fault.Wrap(fault.Corrupt, IndexName, fault.NoOffset, err)
	case err == nil && len(index.Shards) == 0:
		err = fault.New(fault.Corrupt, IndexName, fault.NoOffset, "lists no shards")
	}
	return index.Shards, err
}

// OpenMDS opens a directory of MDS shards, or its index. It reads the index and, of each shard, the places and values
// of its samples. Shards that are compressed as a whole are refused, because a sample in one has no byte range: all
// bytes before it would be decompressed for each.
func OpenMDS(ctx context.Context, from model.Source) (*model.Container, error) {
	dir, file := from.URI, from.File
	name := source.Join(dir, IndexName)
	if file != nil {
		dir, name = from.Base, dir
	} else {
		var err error
		if file, err = from.Opener.Open(ctx, name); err != nil {
			return nil, err
		}
	}
	index, err := readIndex(ctx, file)
	err = cmp.Or(err, file.Close())
	var encodings []encoding
	if err == nil {
		encodings, err = parseEncodings(index[0])
	}
	if err != nil {
		return nil, fault.WithFile(err, name)
	}
	uris := make([]string, len(index))
	for i, s := range index {
		uris[i] = source.Join(dir, s.Raw.Name)
	}
	container, err := open(ctx, from.Opener, dir, model.MDS, uris, func(p *part, i int, w *window) error {
		return readMDS(p, w, index[i], encodings)
	})
	compressed := func(s *indexShard) bool { return s.Zip != nil }
	if fault.KindOf(err) == fault.NotFound && slices.ContainsFunc(index, compressed) {
		err = fault.WithFile(fault.New(fault.Unsupported, "shards", fault.NoOffset, "are compressed as a whole, so "+
			"that their samples have no byte ranges: decompress each beside itself"), name)
	}
	return container, err
}

// encoding is how MDS stores one column.
type encoding struct {
	name  string
	size  int64                          // -1 if each sample has its own
	typ   tables.Type                    // of numbers
	value func(b []byte) (string, error) // nil for files
	array bool
	// dtype and shape of an array stand before each one where they are Invalid and nil.
	dtype chunk.DType
	shape []int
}

// fileEncodings are encodings of bytes that are files, or that chaski hands out as they are.
var fileEncodings = []string{"bytes", "png", "jpeg", "jpeg_array", "jpegarray", "pil", "pkl", "list[pil]", "list[jpeg]",
	"list[png]"}

// textEncodings are encodings of values that are written as text.
var textEncodings = map[string]func(b []byte) (string, error){"str": text, "str_decimal": text, "str_int": number,
	"str_float": number, "json": parseJSON}

// arrayCodes are the numbers of dtypes before an array. Numbers in columns have these dtypes, too.
var arrayCodes = map[byte]chunk.DType{8: chunk.Uint8, 9: chunk.Int8, 16: chunk.Uint16, 17: chunk.Int16,
	18: chunk.Float16, 32: chunk.Uint32, 33: chunk.Int32, 34: chunk.Float32, 64: chunk.Uint64, 65: chunk.Int64,
	66: chunk.Float64}

// dtypeOf returns the dtype with a name, Invalid if MDS has none of that name.
func dtypeOf(name string) chunk.DType {
	for _, dtype := range arrayCodes {
		if dtype.String() == name || name == "int" && dtype == chunk.Int64 {
			return dtype
		}
	}
	return chunk.Invalid
}

// parseEncodings parses the columns of a shard.
func parseEncodings(s *indexShard) (all []encoding, err error) {
	seen := map[string]bool{}
	for i, name := range s.Names {
		column := encoding{name: name, size: -1}
		if s.Sizes[i] != nil {
			column.size = max(*s.Sizes[i], 0)
		}
		err := column.parse(s.Encodings[i])
		if err == nil && (seen[name] || strings.Trim(name, ".") == "" || strings.ContainsAny(name, "/\x00")) {
			err = fault.New(fault.Corrupt, "", fault.NoOffset,
				"its name is empty, only dots, there twice, or has / or NUL")
		}
		if err != nil {
			return nil, fault.WithPart(err, fmt.Sprintf("column %.200q", name), fault.NoOffset)
		}
		seen[name] = true
		all = append(all, column)
	}
	return all, nil
}

// parse parses the text of an encoding: "int", "ndarray:uint16:2,8,9".
func (e *encoding) parse(text string) error {
	kind, rest, _ := strings.Cut(text, ":")
	dtype := dtypeOf(text)
	switch {
	case dtype != chunk.Invalid:
		e.typ = tables.Type{Kind: tables.Float64, Bits: uint8(8 * dtype.Size())}
		if text[0] == 'u' {
			e.typ.Kind = tables.Uint64
		} else if dtype.Integer() {
			e.typ.Kind = tables.Int64
		}
		e.value = func(b []byte) (string, error) { return stored(dtype, b) }
	case kind == "ndarray":
		e.array = true
		return e.parseArray(rest)
	case textEncodings[text] != nil:
		e.value = textEncodings[text]
	case !slices.Contains(fileEncodings, text):
		return fault.New(fault.Unsupported, "", fault.NoOffset, "its encoding is %q", text)
	}
	return nil
}

// stored returns a number of a dtype as a value of a column.
func stored(dtype chunk.DType, b []byte) (string, error) {
	switch {
	case len(b) != dtype.Size():
		return "", fault.New(fault.Corrupt, "number", fault.NoOffset, "a %s of size %d", dtype, len(b))
	case dtype == chunk.Int64:
		return strconv.FormatInt(int64(binary.LittleEndian.Uint64(b)), 10), nil
	case dtype == chunk.Uint64:
		return strconv.FormatUint(binary.LittleEndian.Uint64(b), 10), nil
	}
	return strconv.FormatFloat(dtype.Number(b), 'f', -1, 64), nil
}

// maxAxes is NumPy's limit, but for one that a byte cannot say.
const maxAxes = 63

// parseArray reads "DTYPE:SHAPE", "DTYPE" or "".
func (e *encoding) parseArray(text string) error {
	name, shape, shaped := strings.Cut(text, ":")
	if e.dtype = dtypeOf(name); name != "" && e.dtype == chunk.Invalid {
		return fault.New(fault.Unsupported, "", fault.NoOffset, "arrays of dtype %q", name)
	}
	for axis := range strings.SplitSeq(shape, ",") {
		n, err := strconv.ParseInt(axis, 10, 32)
		if shaped && (err != nil || n < 1 || len(e.shape) == maxAxes) {
			return fault.New(fault.Corrupt, "", fault.NoOffset, "arrays of shape %q", shape)
		}
		if shaped {
			e.shape = append(e.shape, int(n))
		}
	}
	return nil
}

// head reads what stands before an array of size bytes at an offset. It returns the header of a .npy file for it, and
// how many bytes were read.
func (e *encoding) head(w *window, off, size int64) (head string, read int64, err error) {
	bad := func(format string, args ...any) (string, int64, error) {
		return "", 0, fault.New(fault.Corrupt, "array", off, format, args...)
	}
	data, err := w.bytes(off, int(min(size, 2+8*maxAxes)))
	if err != nil {
		return "", 0, err
	}
	total := len(data)
	dtype, shape := e.dtype, e.shape
	if dtype == chunk.Invalid {
		if len(data) == 0 || arrayCodes[data[0]] == chunk.Invalid {
			return bad("its dtype is unknown")
		}
		dtype, data = arrayCodes[data[0]], data[1:]
	}
	if shape == nil {
		// A byte has the number of axes, and in the last two bits the width of their lengths.
		if len(data) == 0 || len(data)-1 < int(data[0]>>2)<<(data[0]&3) {
			return bad("it ends in its shape")
		}
		axes, width := int(data[0]>>2), 1<<(data[0]&3)
		data = data[1:]
		for range axes {
			var wide [8]byte
			copy(wide[:], data[:width])
			length := binary.LittleEndian.Uint64(wide[:])
			if length < 1 || length > math.MaxInt32 {
				return bad("an axis of %d", length)
			}
			shape, data = append(shape, int(length)), data[width:]
		}
	}
	read = int64(total - len(data))
	// Divided by the axes, because their product may be too large.
	left := size - read
	exact := true
	for _, n := range append([]int{dtype.Size()}, shape...) {
		exact = exact && left%int64(n) == 0
		left /= int64(n)
	}
	if !exact || left != 1 {
		return bad("of shape %d and dtype %s in %d bytes", shape, dtype, size-read)
	}
	made, err := npy.Header(dtype, shape)
	return string(made), read, err
}

// readMDS reads the places and values of the samples of a shard.
func readMDS(p *part, w *window, s *indexShard, encodings []encoding) error {
	if s.Raw.Bytes != w.r.Size() {
		return fault.New(fault.Corrupt, "shard", fault.NoOffset, "%d bytes, and %d by %s", w.r.Size(), s.Raw.Bytes,
			IndexName)
	}
	// The table of offsets lies in the file, so that its size bounds the allocation.
	data, err := w.bytes(0, int(4+4*(s.Samples+1)))
	if err != nil {
		return fault.WithPart(err, "offsets", 0)
	}
	if n := binary.LittleEndian.Uint32(data); int64(n) != s.Samples {
		return fault.New(fault.Corrupt, "header", 0, "%d samples, and %d by %s", n, s.Samples, IndexName)
	}
	// A copy, because the window is used again for the samples.
	data = slices.Clone(data[4:])
	begin := int64(binary.LittleEndian.Uint32(data))
	if begin < int64(4+len(data)) {
		return fault.New(fault.Corrupt, "offsets", 4, "sample 0 is at %d, in the table of offsets", begin)
	}
	for i := range int(s.Samples) {
		end := int64(binary.LittleEndian.Uint32(data[4*i+4:]))
		if end < begin || end > w.r.Size() {
			return fault.New(fault.Corrupt, "offsets", int64(8+4*i), "sample %d is at %d, after %d in %d bytes", i+1,
				end, begin, w.r.Size())
		}
		if err := sampleMDS(p, w, encodings, begin, end); err != nil {
			return fault.WithPart(err, fmt.Sprintf("sample %d", i), fault.NoOffset)
		}
		if begin = end; i%4096 == 0 && w.ctx.Err() != nil {
			return w.ctx.Err()
		}
	}
	return nil
}

// sampleMDS reads one sample, from one offset to another: the sizes of the columns without one of their own, and the
// columns.
func sampleMDS(p *part, w *window, encodings []encoding, from, to int64) error {
	pos := from
	sizes := make([]int64, len(encodings))
	for i, column := range encodings {
		if sizes[i] = column.size; column.size < 0 {
			data, err := w.bytes(pos, 4)
			if err != nil {
				return err
			}
			sizes[i] = int64(binary.LittleEndian.Uint32(data))
			pos += 4
		}
	}
	id := ""
	for i, column := range encodings {
		if sizes[i] > to-pos {
			return fault.New(fault.Corrupt, "sizes", from, "the column %q ends behind its sample, at %d", column.name,
				to)
		}
		var head, value string
		var read int64
		var err error
		if column.array {
			head, read, err = column.head(w, pos, sizes[i])
		} else if column.value != nil {
			value, err = w.value(pos, sizes[i], column.value)
		}
		switch {
		case column.value == nil:
			p.file(column.name, head, pos+read, sizes[i]-read)
		case column.name == columnID:
			id = unquoted(value)
		default:
			p.column(column.name, column.typ).add(len(p.ids), value)
		}
		if err != nil {
			return fault.WithPart(err, fmt.Sprintf("column %q", column.name), fault.NoOffset)
		}
		pos += sizes[i]
	}
	if pos != to {
		return fault.New(fault.Corrupt, "sizes", from, "the columns end at %d, and the sample at %d", pos, to)
	}
	p.ids = append(p.ids, id)
	return nil
}
