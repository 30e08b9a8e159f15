// Package quarantine keeps lists of bad samples as lines of JSON: those that a server or a trainer meets
// while it runs, and those that a check of a whole dataset finds.
//
// A writer appends one line with each write, so that several processes may share a list. A line is about
// one bad sample (Record.key) and counts how often the writer met it since its last line about it. The
// writer writes a line the first time and whenever the count has doubled, so that a list grows with the
// number of bad samples and not with the number of epochs.
package quarantine

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/bits"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/durable"
	"github.com/chaski-eo/chaski/internal/pathname"
	"github.com/chaski-eo/chaski/loader"
)

// Record describes one bad sample.
type Record struct {
	Dataset string `json:"dataset"`          // fingerprint
	Source  string `json:"source,omitempty"` // of a mixture
	ID      string `json:"id,omitempty"`     // of the sample; see catalog.Table.ID
	Row     *int64 `json:"row,omitempty"`    // of the source's table
	Sample  *int64 `json:"sample,omitempty"` // of an epoch, in the dataset's order
	// Instead is the substitute when the sample was first met, if the policy is to replace bad samples.
	Instead *loader.SampleRef `json:"instead,omitempty"`
	URI     string            `json:"uri,omitempty"`
	Part    string            `json:"part,omitempty"`
	Offset  *int64            `json:"offset,omitempty"`
	Kind    string            `json:"kind"`
	Message string            `json:"message"` // the whole error
	// FirstSeen is when the sample was first met, and Count how often it was met.
	FirstSeen time.Time `json:"first_seen"`
	Count     int64     `json:"count"`
}

// New returns a record of an error that was met once, now.
func New(dataset string, err error) Record {
	record := Record{Dataset: dataset, Kind: fault.KindOf(err).Error(), Message: fault.Line(err),
		FirstSeen: time.Now().UTC().Truncate(time.Second), Count: 1}
	if f, ok := errors.AsType[*fault.Error](err); ok {
		record.URI, record.Part = f.File, f.Part
		if f.Off >= 0 {
			record.Offset = &f.Off
		}
	}
	return record
}

// key returns a string that records about the same fault share. The message names the file and the offset
// in it; if it names no file, the key needs the sample to tell faults apart.
func (r *Record) key() string {
	if r.URI != "" {
		return r.Dataset + "\n" + r.Message
	}
	n := int64(-1)
	if r.Sample != nil {
		n = *r.Sample
	}
	return fmt.Sprintf("%s\n%s\n%s\n%s\n%d", r.Dataset, r.Message, r.Source, r.ID, n)
}

// Limits of a list. A dataset in which every sample is bad must not fill the memory of a server, or its
// disk.
const (
	MaxKnown = 10_000    // records that a writer counts; some 10 MB at 1 kB each
	MaxBytes = 64 << 20  // size from which on a writer appends no more
	maxLine  = 1 << 20   // a longer line is not a record
	maxRead  = 1_000_000 // records in all lists that are read together
)

// Writer appends to a list. It is safe for concurrent use.
type Writer struct {
	mu     sync.Mutex // of all fields: a count and the line that it is written in must agree
	file   *os.File
	folder string
	known  map[string]*Record // with how often each was met
	lost   int64
}

// Open opens a list to append to, and creates it if it does not exist.
func Open(path string) (*Writer, error) {
	file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o666)
	if err != nil {
		return nil, err
	}
	return &Writer{file: file, folder: pathname.Dir(path), known: map[string]*Record{}}, nil
}

// Add records that a bad sample was met. Beyond the limits it only counts: see Lost.
func (w *Writer) Add(r Record) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	key := r.key()
	known := w.known[key]
	if known == nil {
		if len(w.known) >= MaxKnown {
			w.lost++
			return nil
		}
		known = &r
		known.Count = 0
		w.known[key] = known
	}
	// Only powers of two are written, so that a sample met n times takes log2(n) lines.
	if known.Count++; known.Count&(known.Count-1) != 0 {
		return nil
	}
	return w.write(*known, known.Count-known.Count/2)
}

// write appends a line with a count, the part of r's that is in no line. Its caller holds the lock.
func (w *Writer) write(r Record, count int64) error {
	if st, err := w.file.Stat(); err != nil {
		return err
	} else if st.Size() > MaxBytes {
		w.lost += count
		return nil
	}
	r.Count = count
	buf, err := json.Marshal(r)
	if err != nil {
		return err
	}
	// One write, because O_APPEND keeps only single writes of several processes apart.
	_, err = w.file.Write(append(buf, '\n'))
	return err
}

// Lost returns how often a bad sample was met that the limits keep out of the list.
func (w *Writer) Lost() int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.lost
}

// Close writes the remaining counts and closes the list.
func (w *Writer) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	var errs []error
	for _, r := range w.known {
		written := int64(1) << (bits.Len64(uint64(r.Count)) - 1) // the last power of two
		if r.Count > written {
			errs = append(errs, w.write(*r, r.Count-written))
		}
	}
	// It is synced because a list is read after a run has failed, maybe with its machine. A pipe or device has nothing
	// to sync.
	if st, err := w.file.Stat(); err == nil && st.Mode().IsRegular() {
		errs = append(errs, w.file.Sync(), durable.SyncNames(w.folder))
	}
	return errors.Join(append(errs, w.file.Close())...)
}

// List has the records of one or several lists, each once. The zero value is empty.
type List struct {
	by map[string]*Record
	// Skipped counts lines that are not records, because a writer was killed or the file is not a list.
	Skipped int64
}

// Read adds the records of a list. Its errors come from r, or have the kind fault.Limit.
func (l *List) Read(r io.Reader) error {
	b := bufio.NewReaderSize(r, 64<<10)
	for {
		line, err := readLine(b)
		if len(bytes.TrimSpace(line)) > 0 {
			var rec Record
			if json.Unmarshal(line, &rec) != nil || rec.Message == "" || rec.Count < 1 {
				l.Skipped++
			} else if err := l.Add(rec); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// readLine returns a line, cut after about maxLine bytes. A cut line is not a record, and is skipped: the file
// is not trusted, so that a line without end must not fill the memory.
func readLine(b *bufio.Reader) (line []byte, err error) {
	for {
		part, err := b.ReadSlice('\n')
		if len(line) <= maxLine {
			line = append(line, part...)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, err
		}
	}
}

// Add adds a record.
func (l *List) Add(r Record) error {
	key := r.key()
	old := l.by[key]
	switch {
	case old != nil:
		old.merge(&r)
		return nil
	case len(l.by) >= maxRead:
		return fault.New(fault.Limit, "list", fault.NoOffset, "more than %d bad samples", maxRead)
	case l.by == nil:
		l.by = map[string]*Record{}
	}
	l.by[key] = &r
	return nil
}

// merge adds a record with the same key. The count stops at the largest int64, since counts of a file may
// be anything.
func (r *Record) merge(o *Record) {
	if r.Count += o.Count; r.Count < o.Count {
		r.Count = 1<<63 - 1
	}
	if o.FirstSeen.Before(r.FirstSeen) {
		r.FirstSeen = o.FirstSeen
	}
	r.Source, r.ID = cmp.Or(r.Source, o.Source), cmp.Or(r.ID, o.ID)
	r.Part = cmp.Or(r.Part, o.Part)
	r.Instead = cmp.Or(r.Instead, o.Instead)
	r.Row, r.Sample, r.Offset = cmp.Or(r.Row, o.Row), cmp.Or(r.Sample, o.Sample), cmp.Or(r.Offset, o.Offset)
}

// Records returns all records, sorted by dataset, source, row, id and message.
func (l *List) Records() []Record {
	out := make([]Record, 0, len(l.by))
	for _, r := range l.by {
		out = append(out, *r)
	}
	count := func(p *int64) int64 {
		if p == nil {
			return -1
		}
		return *p
	}
	slices.SortFunc(out, func(a, b Record) int {
		return cmp.Or(cmp.Compare(a.Dataset, b.Dataset), cmp.Compare(a.Source, b.Source),
			cmp.Compare(count(a.Row), count(b.Row)),
			cmp.Compare(a.ID, b.ID), cmp.Compare(a.Message, b.Message))
	})
	return out
}

// Write writes records as a list.
func Write(w io.Writer, records []Record) error {
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	for i := range records {
		if err := encoder.Encode(&records[i]); err != nil {
			return err
		}
	}
	return nil
}
