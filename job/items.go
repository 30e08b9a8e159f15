package job

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"hash"
	"io"
	"strings"

	"github.com/klauspost/compress/zstd"

	"github.com/chaski-eo/chaski/fault"
)

// The list is one file: for each shard a zstd frame of its items, one line of JSON each. A shard reads its frame only.

const (
	listPrefix = "items."
	// maxBlock bounds the frame of a shard, in bytes: 10 million paths that compress to 25 bytes.
	maxBlock = 256 << 20
	// window is the zstd window of the frames, in bytes. Paths repeat parts of their neighbours, and it holds some
	// 10,000 of 100 bytes.
	window = 1 << 20
	// maxBody bounds the line of an item, in bytes: two paths of 4 KiB, the longest of Linux, with every byte escaped.
	maxBody = 64 << 10
	// maxBodies bounds the lines of a shard, in bytes of memory, which a run holds: 9 million of 200.
	maxBodies = 2 << 30
	// lineBytes is the memory of a line beside its bytes: a slice header of 24 bytes, in a list that grows by a
	// quarter.
	lineBytes = 32
)

// notText reports whether b, which encoding/json wrote, holds a string that was not UTF-8. The package replaces bytes
// that are not UTF-8 by \ufffd, so the string would become another name, maybe another file's. It writes that
// escape for no other character.
func notText(b []byte) bool {
	for i := 0; i < len(b); i++ {
		if b[i] != '\\' {
			continue
		}
		i++
		if bytes.HasPrefix(b[i:], []byte("ufffd")) {
			return true
		}
	}
	return false
}

// isList reports whether a list may have this name.
func isList(name string) bool {
	hash, ok := strings.CutPrefix(name, listPrefix)
	return ok && isHash(hash)
}

// listWriter writes a list into a scratch.
type listWriter struct {
	*scratch
	frame *zstd.Encoder
	block hash.Hash // of the frame of the current shard
	begin int64
	lines int64 // bytes of the current shard
}

func newListWriter() (*listWriter, error) {
	l := &listWriter{scratch: newScratch(), block: sha256.New()}
	var err error
	l.frame, err = zstd.NewWriter(io.MultiWriter(l.scratch, l.block), zstd.WithEncoderConcurrency(1),
		zstd.WithWindowSize(window))
	return l, err
}

// add adds an item to the current shard.
func (l *listWriter) add(body json.RawMessage) error {
	if len(body) > maxBody || bytes.IndexByte(body, '\n') >= 0 {
		return fault.New(fault.Limit, "job", fault.NoOffset, "an item of %d bytes, at most %d in one line", len(body),
			maxBody)
	}
	if notText(body) {
		return fault.New(fault.Unsupported, "job", fault.NoOffset, "a name that is not UTF-8: %s", body)
	}
	if l.lines += int64(len(body)) + lineBytes; l.lines > maxBodies {
		return fault.New(fault.Limit, "job", fault.NoOffset,
			"a shard has a list of over %d bytes: use more shards", int64(maxBodies))
	}
	if _, err := l.frame.Write(body); err != nil {
		return err
	}
	_, err := l.frame.Write([]byte{'\n'})
	return err
}

// cut ends the frame of the current shard and says where it is.
func (l *listWriter) cut() (offset, length int64, sum string, err error) {
	if err := l.frame.Close(); err != nil {
		return 0, 0, "", err
	}
	offset, length, sum = l.begin, l.size-l.begin, digits(l.block)
	l.begin, l.lines = l.size, 0
	l.block.Reset()
	l.frame.Reset(io.MultiWriter(l.scratch, l.block))
	return offset, length, sum, nil
}

// name returns the name of the finished list.
func (l *listWriter) name() string { return listPrefix + l.hash() }

func (l *listWriter) close() error {
	return errors.Join(l.frame.Close(), l.Close())
}

// bodies reads the items of a shard. It returns nil if they have no bodies.
func (j *Job) bodies(ctx context.Context, s Shard) (out []json.RawMessage, err error) {
	if j.List == "" {
		return nil, nil
	}
	b, err := j.folder.section(ctx, j.List, s.Offset, s.Length)
	if err == nil {
		out, err = parseBodies(b, s, maxBodies)
	}
	if err != nil {
		return nil, fault.WithFile(err, j.folder.name(j.List))
	}
	return out, nil
}

// parseBodies parses the frame of a shard, whose items take at most most bytes of memory.
func parseBodies(b []byte, s Shard, most int64) (out []json.RawMessage, err error) {
	bad := func(format string, args ...any) error {
		return fault.New(fault.Corrupt, "items", s.Offset, format, args...)
	}
	sum := sha256.New()
	sum.Write(b)
	if digits(sum) != s.Sum {
		return nil, bad("the content is not that which the job says")
	}
	decoder, err := zstd.NewReader(bytes.NewReader(b), zstd.WithDecoderConcurrency(1),
		zstd.WithDecoderMaxWindow(window))
	if err != nil {
		return nil, err
	}
	defer decoder.Close()
	lines := bufio.NewScanner(io.LimitReader(decoder, maxBodies))
	lines.Buffer(nil, maxBody+1)
	held := int64(0)
	for lines.Scan() {
		// A frame of 100 KB has a billion lines of one byte, and each takes more than that in memory.
		if held += int64(len(lines.Bytes())) + lineBytes; held > most {
			return nil, fault.New(fault.Limit, "items", s.Offset, "a list of over %d bytes", most)
		}
		if int64(len(out)) == s.Count || !json.Valid(lines.Bytes()) {
			return nil, bad("item %d is more than the shard has, or no JSON", len(out))
		}
		out = append(out, bytes.Clone(lines.Bytes()))
	}
	if err := lines.Err(); err != nil {
		return nil, bad("%v", err)
	}
	if int64(len(out)) != s.Count {
		return nil, bad("%d items, not %d", len(out), s.Count)
	}
	return out, nil
}
