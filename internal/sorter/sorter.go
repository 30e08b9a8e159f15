// Package sorter sorts more records than memory holds: it sorts pieces, which it spills to a file, and merges them.
package sorter

import (
	"bufio"
	"cmp"
	"container/heap"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/klauspost/compress/zstd"

	"github.com/chaski-eo/chaski/internal/durable"
)

// Record is a key with what belongs to it.
type Record struct {
	Key   string
	Value []byte
}

// DefaultBytes is how much a sorter holds in memory: 500,000 records of 128 bytes, which sort in half a second.
const DefaultBytes = 64 << 20

// recordBytes is the memory of a record beside its bytes: the headers of a string and a slice.
const recordBytes = 40

// Sorter sorts records by the bytes of their keys. Of records with the same key it keeps the first. It is not safe for
// concurrent use.
type Sorter struct {
	most    int
	records []Record
	bytes   int // of records
	spill   *os.File
	end     int64 // of the spill
	runs    []run
	writer  *zstd.Encoder // of the last run
	count   int64
	sum     int64
	weigh   func(Record) int64
}

// run is a sorted part of the spill, one zstd frame.
type run struct {
	off, end int64
	last     string // key
}

// New returns a sorter that holds about most bytes in memory, or DefaultBytes for 0. weigh returns what Total adds up.
func New(most int, weigh func(Record) int64) *Sorter {
	return &Sorter{most: cmp.Or(most, DefaultBytes), weigh: weigh}
}

// Add adds a record, whose value the sorter keeps.
func (s *Sorter) Add(r Record) error {
	s.records = append(s.records, r)
	if s.bytes += len(r.Key) + len(r.Value) + recordBytes; s.bytes < s.most {
		return nil
	}
	return s.flush()
}

// sort sorts the records in memory.
func (s *Sorter) sort() {
	byKey := func(a, b Record) int { return strings.Compare(a.Key, b.Key) }
	if !slices.IsSortedFunc(s.records, byKey) {
		slices.SortStableFunc(s.records, byKey)
	}
	s.records = slices.CompactFunc(s.records, func(a, b Record) bool { return a.Key == b.Key })
}

// flush spills the records in memory. Records that sort after the last run extend it, as with sorted listings of
// stores: merging one run is a pass over a file.
func (s *Sorter) flush() (err error) {
	s.sort()
	if len(s.records) == 0 {
		return nil
	}
	if s.spill == nil {
		if s.spill, err = durable.Scratch(); err != nil {
			return err
		}
	}
	if n := len(s.runs); n == 0 || s.records[0].Key <= s.runs[n-1].last {
		if err := s.endRun(); err != nil {
			return err
		}
		s.runs = append(s.runs, run{off: s.end})
		s.writer, err = zstd.NewWriter(&counted{s.spill, &s.end}, zstd.WithEncoderLevel(zstd.SpeedFastest),
			zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(window))
		if err != nil {
			return err
		}
	}
	var b []byte
	for _, record := range s.records {
		b = binary.AppendUvarint(b[:0], uint64(len(record.Key)))
		b = binary.AppendUvarint(append(b, record.Key...), uint64(len(record.Value)))
		b = append(b, record.Value...)
		if _, err := s.writer.Write(b); err != nil {
			return err
		}
		s.count++
		s.sum += s.weigh(record)
	}
	s.runs[len(s.runs)-1].last = s.records[len(s.records)-1].Key
	clear(s.records)
	s.records, s.bytes = s.records[:0], 0
	return nil
}

// window is the window of the frames, in bytes: each run that is merged holds one.
const window = 256 << 10

// counted is a writer that counts its bytes.
type counted struct {
	w io.Writer
	n *int64
}

// Write implements io.Writer.
func (c *counted) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	*c.n += int64(n)
	return n, err
}

// endRun ends the frame of the last run.
func (s *Sorter) endRun() error {
	if s.writer == nil {
		return nil
	}
	err := s.writer.Close()
	s.writer = nil
	s.runs[len(s.runs)-1].end = s.end
	return err
}

// Total ends the adding, and returns the number of records with keys of their own, and the sum of their weights.
func (s *Sorter) Total() (count, sum int64, err error) {
	if s.spill == nil {
		s.sort()
		for _, r := range s.records {
			sum += s.weigh(r)
		}
		return int64(len(s.records)), sum, nil
	}
	if err := errors.Join(s.flush(), s.endRun()); err != nil {
		return 0, 0, err
	}
	if len(s.runs) == 1 {
		return s.count, s.sum, nil
	}
	err = s.Each(func(r Record) error {
		count++
		sum += s.weigh(r)
		return nil
	})
	return count, sum, err
}

// Each calls visit for each record in the order of the keys. Total comes before it.
func (s *Sorter) Each(visit func(Record) error) error {
	if s.spill == nil {
		for _, r := range s.records {
			if err := visit(r); err != nil {
				return err
			}
		}
		return nil
	}
	var h merging
	defer func() {
		for _, r := range h {
			r.frame.Close()
		}
	}()
	for i, r := range s.runs {
		decoder, err := zstd.NewReader(io.NewSectionReader(s.spill, r.off, r.end-r.off), zstd.WithDecoderConcurrency(1))
		if err != nil {
			return err
		}
		in := &reading{number: i, frame: decoder, r: bufio.NewReaderSize(decoder, 1<<16)}
		h = append(h, in)
		if err := in.next(); err != nil {
			return err
		}
	}
	heap.Init(&h)
	last, first := "", true
	for len(h) > 0 {
		in := h[0]
		if in.now.Key != last || first {
			last, first = in.now.Key, false
			if err := visit(in.now); err != nil {
				return err
			}
		}
		switch err := in.next(); {
		case errors.Is(err, io.EOF):
			in.frame.Close()
			heap.Pop(&h)
		case err != nil:
			return err
		default:
			heap.Fix(&h, 0)
		}
	}
	return nil
}

// Close removes the spill.
func (s *Sorter) Close() error {
	if s.spill == nil {
		return nil
	}
	err := s.endRun()
	return errors.Join(err, s.spill.Close())
}

// reading is a run that is read.
type reading struct {
	number int
	frame  *zstd.Decoder
	r      *bufio.Reader
	now    Record
}

// next reads the next record; io.EOF is the end of the run.
func (in *reading) next() error {
	key, err := in.bytes()
	if err != nil {
		return err
	}
	value, err := in.bytes()
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	in.now = Record{string(key), value}
	return err
}

func (in *reading) bytes() ([]byte, error) {
	n, err := binary.ReadUvarint(in.r)
	if err != nil {
		return nil, err
	}
	b := make([]byte, n) // this process wrote the length
	_, err = io.ReadFull(in.r, b)
	return b, err
}

// merging is a heap of runs by their next keys. Of equal ones the earlier run comes first.
type merging []*reading

func (m merging) Len() int { return len(m) }
func (m merging) Less(i, j int) bool {
	return cmp.Or(strings.Compare(m[i].now.Key, m[j].now.Key), cmp.Compare(m[i].number, m[j].number)) < 0
}
func (m merging) Swap(i, j int) { m[i], m[j] = m[j], m[i] }

// Push implements heap.Interface.
func (m *merging) Push(x any) { *m = append(*m, x.(*reading)) }

// Pop implements heap.Interface.
func (m *merging) Pop() any {
	last := (*m)[len(*m)-1]
	*m = (*m)[:len(*m)-1]
	return last
}
