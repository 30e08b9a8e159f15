package shards

import (
	"archive/zip"
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"iter"
	"os"

	"github.com/chaski-eo/chaski/fault"
)

// A part is a ZIP of three members without compression, whose checksums tell damage: the body, the marks of the inputs,
// and what the part is.
const (
	bodyName  = "body"
	marksName = "marks"
	labelName = "part.json"
	// maxLabel bounds a label, in bytes: with 100,000 lines of 640 bytes in its tally.
	maxLabel = 64 << 20
)

// label says what a part is.
type label struct {
	Shard    int             `json:"shard"`
	Count    int             `json:"of"`
	Items    int64           `json:"items"`   // of all shards
	Version  string          `json:"version"` // of the command
	Settings string          `json:"settings"`
	Inputs   string          `json:"inputs"`
	Tally    json.RawMessage `json:"tally"`
}

// write writes the part of a share.
func (d *dividedWork) write(ctx context.Context, file io.Writer, s Share,
	write func(Share, io.Writer) (any, error)) error {
	archive := zip.NewWriter(bufio.NewWriterSize(file, 1<<20))
	body, err := archive.CreateHeader(&zip.FileHeader{Name: bodyName})
	if err != nil {
		return err
	}
	var tally any
	marks, err := d.marker.share(ctx, s) // before files are read
	if err != nil {
		return err
	}
	if s.Count > 0 {
		if tally, err = write(s, body); err != nil {
			return err
		}
	}
	told, err := json.Marshal(tally)
	if err != nil {
		return err
	}
	text, err := json.Marshal(label{Shard: s.Number, Count: d.count, Items: d.Items, Version: d.version,
		Settings: d.settings, Inputs: d.Inputs,
		Tally: json.RawMessage(fault.WithoutSecrets(string(told)))}) // which leaves JSON valid
	if err != nil {
		return err
	}
	if len(text) > maxLabel {
		return fault.New(fault.Limit, "part", "a tally of %d bytes, at most %d: use more shards", len(text), maxLabel)
	}
	for _, member := range []struct {
		name string
		data []byte
	}{{marksName, marks}, {labelName, text}} {
		file, err := archive.CreateHeader(&zip.FileHeader{Name: member.name})
		if err == nil {
			_, err = file.Write(member.data)
		}
		if err != nil {
			return err
		}
	}
	return archive.Close()
}

// open opens the part of a share. A part that is missing or damaged is a fault of kind not found; one of other
// settings is unsupported, and one of other inputs corrupt.
func (d *dividedWork) open(ctx context.Context, s Share) (part *Part, closed func(), err error) {
	name := d.name(s.Number)
	file, closed, err := d.Env.Copy(ctx, name)
	if err != nil {
		return nil, nil, err
	}
	l, part, err := parse(file)
	if err == nil {
		part.Share = s
		err = d.fits(s, l)
	}
	if err != nil {
		closed()
		return nil, nil, fault.WithFile(err, name)
	}
	return part, closed, nil
}

// check reads the part of a share as a whole, and looks for what it tells of.
func (d *dividedWork) check(ctx context.Context, s Share) error {
	name := d.name(s.Number)
	part, closed, err := d.open(ctx, s)
	if err != nil {
		return err
	}
	defer closed()
	// An interruption ends reading, since bodies may have gigabytes.
	defer context.AfterFunc(ctx, closed)()
	body, err := part.member.Open()
	if err == nil {
		_, err = io.Copy(io.Discard, body)
	}
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		return fault.WithFile(damaged("its body: %v", err), name)
	case d.Check != nil && s.Count > 0:
		err = d.Check(ctx, part)
	}
	if err == nil {
		err = d.unchanged(ctx, part)
	}
	return fault.WithFile(err, name)
}

// unchanged returns an error if an input of a part is no longer what it was.
func (d *dividedWork) unchanged(ctx context.Context, p *Part) error {
	if p.marks.UncompressedSize64 > uint64(markBytes*p.Count) {
		return damaged("it has the marks of more inputs than its share has")
	}
	member, err := p.marks.Open()
	if err != nil {
		return damaged("its marks: %v", err)
	}
	defer member.Close() //nolint:errcheck // it was only read
	marks, err := io.ReadAll(member)
	if err != nil {
		return damaged("its marks: %v", err)
	}
	return d.marker.changed(ctx, p.Share, marks)
}

// fits refuses the part of other work than d does.
func (d *dividedWork) fits(s Share, l *label) error {
	switch {
	case l.Shard != s.Number || l.Count != d.count:
		return damaged("it is the part of shard %d of %d", l.Shard, l.Count)
	case l.Version != d.version:
		return fault.New(fault.Unsupported, "part", "it was made by chaski %.80q, and this is %q: do the shard again "+
			"with this one", l.Version, d.version)
	case l.Settings != d.settings:
		return fault.New(fault.Unsupported, "part", "it was made with other flags: do the shard again with these")
	case l.Inputs != d.Inputs || l.Items != d.Items:
		return fault.New(fault.Corrupt, "part", "the inputs have changed since it was made: do the shard again")
	}
	return nil
}

// damaged is the error about a file that no shard has written. It counts as absent.
func damaged(format string, args ...any) error {
	return fault.New(fault.NotFound, "part", format, args...)
}

// parse parses a part but for its body.
func parse(file *os.File) (*label, *Part, error) {
	info, err := file.Stat()
	if err != nil {
		return nil, nil, err
	}
	archive, err := zip.NewReader(file, info.Size())
	if err != nil {
		return nil, nil, damaged("it is cut short, or no part: %v", err)
	}
	members := archive.File
	if len(members) != 3 || members[0].Name != bodyName || members[0].Method != zip.Store ||
		members[1].Name != marksName || members[2].Name != labelName || members[2].UncompressedSize64 > maxLabel {
		return nil, nil, damaged("it is no part")
	}
	off, err := members[0].DataOffset()
	if err != nil || off > info.Size() || members[0].UncompressedSize64 > uint64(info.Size()-off) {
		return nil, nil, damaged("its body does not lie in it")
	}
	l, err := readLabel(members[2])
	if err != nil {
		return nil, nil, damaged("its label: %v", err)
	}
	size := int64(members[0].UncompressedSize64)
	body := io.NewSectionReader(file, off, size)
	return l, &Part{Tally: l.Tally, Body: body, member: members[0], marks: members[1]}, nil
}

func readLabel(member *zip.File) (*label, error) {
	file, err := member.Open()
	if err != nil {
		return nil, err
	}
	defer file.Close() //nolint:errcheck // it was only read
	text, err := io.ReadAll(file)
	if err != nil {
		return nil, err
	}
	l := &label{}
	return l, json.Unmarshal(text, l)
}

// As returns parts in another form, up to the first error.
func As[T any](parts iter.Seq2[*Part, error], form func(*Part) (T, error)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for p, err := range parts {
			var part T
			if err == nil {
				part, err = form(p)
			}
			if !yield(part, err) || err != nil {
				return
			}
		}
	}
}

// ParseTally parses what a shard has returned.
func ParseTally[T any](p *Part) (tally T, err error) {
	if err := json.Unmarshal(p.Tally, &tally); err != nil {
		return tally, fault.New(fault.Corrupt, "part", "tally of shard %d: %v", p.Number, err)
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
