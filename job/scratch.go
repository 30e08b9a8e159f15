package job

import (
	"crypto/sha256"
	"encoding/hex"
	"hash"
	"io"
	"os"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/durable"
)

// scratchMemory is the largest size in bytes that a scratch has in memory. Most results are smaller, and a pool of 16
// takes 1 GiB at most.
const scratchMemory = 64 << 20

// scratch is a growing sequence of bytes, in memory until it exceeds most, then in a file without a name.
type scratch struct {
	most   int64 // in memory
	memory []byte
	file   *os.File
	size   int64
	sum    hash.Hash // of all bytes
}

func newScratch() *scratch { return &scratch{most: scratchMemory, sum: sha256.New()} }

// Write implements io.Writer.
func (s *scratch) Write(p []byte) (int, error) {
	if s.file == nil && s.size+int64(len(p)) > s.most {
		file, err := durable.Scratch()
		if err != nil {
			return 0, err
		}
		s.file = file
		if _, err := file.Write(s.memory); err != nil {
			return 0, err
		}
		s.memory = nil
	}
	if s.file == nil {
		s.memory = append(s.memory, p...)
	} else if _, err := s.file.Write(p); err != nil {
		return 0, err
	}
	s.size += int64(len(p))
	s.sum.Write(p)
	return len(p), nil
}

// ReadAt implements io.ReaderAt.
func (s *scratch) ReadAt(p []byte, off int64) (int, error) {
	if s.file != nil {
		return s.file.ReadAt(p, off)
	}
	if off < 0 || off >= s.size {
		return 0, io.EOF
	}
	n := copy(p, s.memory[off:])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// copyTo writes all bytes to w.
func (s *scratch) copyTo(w io.Writer) error {
	_, err := io.Copy(w, io.NewSectionReader(s, 0, s.size))
	return err
}

// hash returns the first digits of the hash of all bytes.
func (s *scratch) hash() string { return digits(s.sum) }

func (s *scratch) Close() error {
	s.memory = nil
	if s.file == nil {
		return nil
	}
	err := s.file.Close()
	s.file = nil
	return err
}

// hashDigits is how many hexadecimal digits of a hash a name has: 32 are 128 bits, which no two contents share by
// chance.
const hashDigits = 32

func digits(h hash.Hash) string { return hex.EncodeToString(h.Sum(nil))[:hashDigits] }

// isHash reports whether s is what digits returns.
func isHash(s string) bool {
	b, err := hex.DecodeString(s)
	return err == nil && len(b) == hashDigits/2 && hex.EncodeToString(b) == s
}

// limited is a writer that refuses more than left bytes.
type limited struct {
	w    io.Writer
	left int64
}

// Write implements io.Writer.
func (l *limited) Write(p []byte) (int, error) {
	if int64(len(p)) > l.left {
		return 0, fault.New(fault.Limit, "result", fault.NoOffset, "over %d bytes: use more shards", int64(maxResult))
	}
	l.left -= int64(len(p))
	return l.w.Write(p)
}
