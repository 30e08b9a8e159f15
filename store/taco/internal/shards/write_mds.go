package shards

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/klauspost/compress/zstd"

	"github.com/chaski-eo/chaski/chunk"
	"github.com/chaski-eo/chaski/fault"
)

// Output says where shards are written to, and how.
type Output struct {
	// Bytes is the largest size of a shard, unless a single sample is larger.
	Bytes int64
	// Level is the level of zstd, 1 to 22, that MDS shards are compressed with as a whole; 0 leaves them as they are.
	Level int
	// Hashes are the names of those that an index of MDS shards has, sorted.
	Hashes []string
	// Put writes a new file of several pieces, which it must not keep.
	Put func(name string, pieces ...[]byte) error
}

// Encoding is a column of MDS shards that are written: its name, and how its values are encoded.
type Encoding struct{ Name, Encoding string }

// MDS writes MDS shards as MDSWriter of MosaicML Streaming does. A shard is in memory until it is complete: its offsets
// stand before its samples, and its hashes in the index.
type MDS struct {
	out     Output
	columns []Encoding
	sizes   []*int64 // of columns whose values have one size
	before  string   // members about a shard whose names come before that of its file
	after   string   // and those behind its samples
	config  []byte   // all of them, which stand behind the offsets
	ends    []int64  // of the samples in data
	data    []byte
	shards  []string // their JSON
}

// NewMDS returns a writer of shards with some columns, in the order of their names.
func NewMDS(columns []Encoding, o Output) (*MDS, error) {
	mds := &MDS{out: o, columns: columns}
	if o.Bytes >= math.MaxUint32 {
		return nil, fault.New(fault.Limit, "shard", fault.NoOffset, "%d bytes: an MDS shard has less than 4 GiB",
			o.Bytes)
	}
	for _, encoding := range columns {
		e, err := encodingOf(encoding.Encoding)
		if err != nil {
			return nil, fault.WithPart(err, fmt.Sprintf("column %q", encoding.Name), fault.NoOffset)
		}
		var size *int64
		if e.size >= 0 {
			size = &e.size
		}
		mds.sizes = append(mds.sizes, size)
	}
	mds.describe()
	return mds, nil
}

// describe sets the texts about the shards. Their members are in the order of their names and have blanks, as Python
// writes them: MDSWriter counts the bytes of the configuration toward the limit of a shard.
func (w *MDS) describe() {
	n := len(w.columns)
	names, encodings, sizes := make([]string, n), make([]string, n), make([]string, n)
	for i, c := range w.columns {
		names[i], encodings[i], sizes[i] = quoted(c.Name), quoted(c.Encoding), "null"
		if w.sizes[i] != nil {
			sizes[i] = strconv.FormatInt(*w.sizes[i], 10)
		}
	}
	hashes := make([]string, len(w.out.Hashes))
	for i, name := range w.out.Hashes {
		hashes[i] = quoted(name)
	}
	compression := "null"
	if w.out.Level > 0 {
		compression = quoted("zstd:" + strconv.Itoa(w.out.Level))
	}
	w.before = fmt.Sprintf(`"column_encodings": %s, "column_names": %s, "column_sizes": %s, "compression": %s, `+
		`"format": "mds", "hashes": %s`, pythonList(encodings), pythonList(names), pythonList(sizes), compression,
		pythonList(hashes))
	w.after = fmt.Sprintf(`"size_limit": %d, "version": 2`, w.out.Bytes)
	w.config = []byte("{" + w.before + ", " + w.after + "}")
}

func quoted(s string) string {
	b, _ := json.Marshal(s) // strings always marshal
	return string(b)
}

func pythonList(items []string) string { return "[" + strings.Join(items, ", ") + "]" }

// Add adds a sample, with the encoded value of each column.
func (w *MDS) Add(values [][]byte) error {
	size := int64(0)
	for i, v := range values {
		if size += int64(len(v)); w.sizes[i] == nil {
			size += 4
		}
	}
	// As MDSWriter counts: 4 bytes for the number of samples, the offset of each, and one more.
	count := int64(len(w.ends))
	used := 8 + int64(len(w.config)) + 4*count + int64(len(w.data))
	if count > 0 && used+size+4 > w.out.Bytes {
		if err := w.flush(); err != nil {
			return err
		}
		used = 8 + int64(len(w.config))
	}
	if used+size+4 > math.MaxUint32 {
		return fault.New(fault.Limit, "", fault.NoOffset, "%d bytes: an MDS shard has less than 4 GiB", size)
	}
	for i, v := range values {
		if w.sizes[i] == nil {
			w.data = binary.LittleEndian.AppendUint32(w.data, uint32(len(v)))
		} else if int64(len(v)) != *w.sizes[i] {
			return fmt.Errorf("column %q: %d bytes of %s", w.columns[i].Name, len(v), w.columns[i].Encoding)
		}
	}
	for _, v := range values {
		w.data = append(w.data, v...)
	}
	w.ends = append(w.ends, int64(len(w.data)))
	return nil
}

// flush writes the shard.
func (w *MDS) flush() error {
	head := binary.LittleEndian.AppendUint32(nil, uint32(len(w.ends)))
	first := int64(4 + 4*(len(w.ends)+1) + len(w.config))
	head = binary.LittleEndian.AppendUint32(head, uint32(first))
	for _, end := range w.ends {
		head = binary.LittleEndian.AppendUint32(head, uint32(first+end))
	}
	head = append(head, w.config...)
	name := fmt.Sprintf("shard.%05d.mds", len(w.shards))
	raw, err := w.file(name, head, w.data)
	if err != nil {
		return err
	}
	zipped, pieces := "null", [][]byte{head, w.data}
	if w.out.Level > 0 {
		data, err := compressed(w.out.Level, pieces...)
		if err != nil {
			return err
		}
		name += ".zstd"
		pieces = [][]byte{data}
		if zipped, err = w.file(name, data); err != nil {
			return err
		}
	}
	if err := w.out.Put(name, pieces...); err != nil {
		return err
	}
	w.shards = append(w.shards, fmt.Sprintf(`{%s, "raw_data": %s, "samples": %d, %s, "zip_data": %s}`, w.before, raw,
		len(w.ends), w.after, zipped))
	w.ends, w.data = w.ends[:0], w.data[:0]
	return nil
}

// file returns the entry of a file in the index.
func (w *MDS) file(name string, pieces ...[]byte) (string, error) {
	size, sums := 0, make([]string, len(w.out.Hashes))
	for _, p := range pieces {
		size += len(p)
	}
	for i, algorithm := range w.out.Hashes {
		if hashes[algorithm] == nil {
			return "", fmt.Errorf("hash %q is not known", algorithm)
		}
		hash := hashes[algorithm]()
		for _, p := range pieces {
			_, _ = hash.Write(p) // a hash takes all
		}
		sums[i] = quoted(algorithm) + ": " + quoted(hex.EncodeToString(hash.Sum(nil)))
	}
	return fmt.Sprintf(`{"basename": %s, "bytes": %d, "hashes": {%s}}`, quoted(name), size, strings.Join(sums, ", ")),
		nil
}

// compressed returns one frame of zstd, which states the size of its content: MosaicML Streaming needs that. One
// goroutine makes the same bytes each time.
func compressed(level int, pieces ...[]byte) ([]byte, error) {
	size := int64(0)
	for _, p := range pieces {
		size += int64(len(p))
	}
	var b bytes.Buffer
	enc, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1),
		zstd.WithEncoderLevel(zstd.EncoderLevelFromZstd(level)))
	if err != nil {
		return nil, err
	}
	enc.ResetContentSize(&b, size)
	for _, p := range pieces {
		if _, err := enc.Write(p); err != nil {
			return nil, err
		}
	}
	if err := enc.Close(); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// Close writes the last shard and the index.
func (w *MDS) Close() error {
	if len(w.ends) > 0 {
		if err := w.flush(); err != nil {
			return err
		}
	}
	return w.out.Put(IndexName, []byte(`{"shards": `+pythonList(w.shards)+`, "version": 2}`))
}

// AppendArray appends what stands before the elements of an array in the encoding ndarray: its dtype and shape.
func AppendArray(dst []byte, d chunk.DType, shape []int) ([]byte, error) {
	code := arrayCode(d)
	if code == 0 {
		return nil, fault.New(fault.Unsupported, "array", fault.NoOffset, "MDS shards have no arrays of %s", d)
	}
	largest := 0
	for _, n := range shape {
		if largest = max(largest, n); n < 1 {
			return nil, fault.New(fault.Unsupported, "array", fault.NoOffset, "MDS shards have no arrays of shape %d",
				shape)
		}
	}
	each := 0 // each axis takes 1<<each bytes
	for each < 2 && largest >= 1<<(8<<each) {
		each++
	}
	dst = append(dst, code, byte(len(shape)<<2|each))
	for _, n := range shape {
		b := binary.LittleEndian.AppendUint64(nil, uint64(n))
		dst = append(dst, b[:1<<each]...)
	}
	return dst, nil
}
