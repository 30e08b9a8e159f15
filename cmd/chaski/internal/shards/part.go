package shards

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"hash"
	"io"
	"iter"
	"os"

	"github.com/chaski-eo/chaski/cmd/chaski/internal/console"
	"github.com/chaski-eo/chaski/fault"
)

// A part is a body, a trailer of JSON, the length of the trailer as 8 bytes (little endian), and magic.

const (
	magic   = "chaskip1"
	endSize = 8 + int64(len(magic))
	// maxTrailer bounds a trailer, in bytes: with 100,000 lines of 640 bytes in its tally.
	maxTrailer = 64 << 20
)

// trailer says what a part is.
type trailer struct {
	Shard    int             `json:"shard"`
	Count    int             `json:"of"`
	Items    int64           `json:"items"` // of all shards
	Settings string          `json:"settings"`
	Inputs   string          `json:"inputs"`
	SHA256   string          `json:"sha256"` // of the body
	Tally    json.RawMessage `json:"tally"`
}

// trailer returns the trailer of a share, without what depends on its body.
func (d *divided) trailer(s Share) trailer {
	return trailer{Shard: s.Number, Count: d.count, Items: d.Items, Settings: d.settings, Inputs: d.Inputs}
}

// bodyWriter writes a part.
type bodyWriter struct {
	file *bufio.Writer
	sum  hash.Hash
}

func newBodyWriter(file io.Writer) *bodyWriter {
	return &bodyWriter{bufio.NewWriterSize(file, 1<<20), sha256.New()}
}

// Write implements io.Writer: it writes bytes of the body.
func (b *bodyWriter) Write(p []byte) (int, error) {
	b.sum.Write(p)
	return b.file.Write(p)
}

// end writes what follows the body.
func (b *bodyWriter) end(t trailer, tally any) (err error) {
	t.SHA256 = hex.EncodeToString(b.sum.Sum(nil))
	said, err := json.Marshal(tally)
	if err != nil {
		return err
	}
	t.Tally = json.RawMessage(fault.WithoutSecrets(string(said))) // which leaves JSON valid
	text, err := json.Marshal(t)
	if err != nil {
		return err
	}
	if len(text) > maxTrailer {
		return fault.New(fault.Limit, "part", fault.NoOffset, "a tally of %d bytes, at most %d: use more shards",
			len(text), maxTrailer)
	}
	text = binary.LittleEndian.AppendUint64(text, uint64(len(text)))
	if _, err := b.file.Write(append(text, magic...)); err != nil {
		return err
	}
	return b.file.Flush()
}

// open opens the part of a share. A part that is not there, or is damaged, is a fault of kind not found; one of other
// settings is unsupported, and one of other inputs corrupt.
func (d *divided) open(s Share) (*os.File, *Part, error) {
	name := d.name(s.Number)
	file, err := os.Open(name)
	if err != nil {
		return nil, nil, console.FileError(name, err)
	}
	t, part, err := parse(file)
	if err == nil {
		part.Share = s
		err = d.fits(s, t)
	}
	if err != nil {
		return nil, nil, errors.Join(fault.WithFile(err, name), file.Close())
	}
	return file, part, nil
}

// check reads the part of a share as a whole, and looks for what it tells of.
func (d *divided) check(ctx context.Context, s Share) error {
	file, part, err := d.open(s)
	if err != nil {
		return err
	}
	defer file.Close() //nolint:errcheck // it was only read
	sum := sha256.New()
	if _, err := io.Copy(sum, &interrupted{ctx, part.Body}); err != nil {
		return console.FileError(file.Name(), err)
	}
	if hex.EncodeToString(sum.Sum(nil)) != part.sum {
		return fault.WithFile(damaged("its body is not that which it names"), file.Name())
	}
	if d.Check != nil && s.Count > 0 {
		return fault.WithFile(d.Check(ctx, part), file.Name())
	}
	return nil
}

// fits refuses the part of other work than d does.
func (d *divided) fits(s Share, t *trailer) error {
	switch {
	case t.Shard != s.Number || t.Count != d.count:
		return damaged("it is the part of shard %d of %d", t.Shard, t.Count)
	case t.Settings != d.settings:
		return fault.New(fault.Unsupported, "part", fault.NoOffset,
			"it was made with other flags: do the shard again with these")
	case t.Inputs != d.Inputs || t.Items != d.Items:
		return fault.New(fault.Corrupt, "part", fault.NoOffset,
			"the inputs have changed since it was made: do the shard again")
	}
	return nil
}

// damaged is the error about a file that no shard has written. It counts as absent.
func damaged(format string, args ...any) error {
	return fault.New(fault.NotFound, "part", fault.NoOffset, format, args...)
}

// parse parses the trailer of a part.
func parse(file *os.File) (*trailer, *Part, error) {
	st, err := file.Stat()
	if err != nil {
		return nil, nil, err
	}
	size := st.Size() - endSize
	if !st.Mode().IsRegular() || size < 0 {
		return nil, nil, damaged("it is cut short")
	}
	end := make([]byte, endSize)
	if _, err := file.ReadAt(end, size); err != nil {
		return nil, nil, err
	}
	length := binary.LittleEndian.Uint64(end)
	if !bytes.HasSuffix(end, []byte(magic)) || length > maxTrailer || length > uint64(size) {
		return nil, nil, damaged("it is cut short, or no part")
	}
	text := make([]byte, length)
	if _, err := file.ReadAt(text, size-int64(length)); err != nil {
		return nil, nil, err
	}
	var t trailer
	if err := json.Unmarshal(text, &t); err != nil {
		return nil, nil, damaged("its trailer: %v", err)
	}
	return &t, &Part{Tally: t.Tally, Body: io.NewSectionReader(file, 0, size-int64(length)), sum: t.SHA256}, nil
}

// interrupted is a reader that ends with a context.
type interrupted struct {
	ctx context.Context
	r   io.Reader
}

// Read implements io.Reader.
func (r *interrupted) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.r.Read(p)
}

// ParseTally parses what a shard has returned.
func ParseTally[T any](p *Part) (tally T, err error) {
	if err := json.Unmarshal(p.Tally, &tally); err != nil {
		return tally, fault.New(fault.Corrupt, "part", fault.NoOffset, "tally of shard %d: %v", p.Number, err)
	}
	return tally, nil
}

// Hash returns a hash of a list of inputs, each as JSON.
func Hash[T any](list iter.Seq[T]) (string, error) {
	sum := sha256.New()
	lines := json.NewEncoder(sum)
	for input := range list {
		if err := lines.Encode(input); err != nil {
			return "", err
		}
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}
