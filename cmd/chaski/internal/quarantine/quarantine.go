// Package quarantine keeps lists of samples that could not be read, as lines of JSON: what a server or a trainer
// meets while it runs, and what a check of a whole dataset finds.
//
// A list is appended to, one line a write, so several processes may share it. A line is about one thing that is
// wrong (Record.key), and says how often it was met since the writer's line before. Written are the first time and
// then every doubling, so a list grows with what is wrong, and not with how often that is met.
package quarantine

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/loader"
)

// Record is one thing that is wrong with a sample.
type Record struct {
	Dataset string `json:"dataset"`          // fingerprint
	Source  string `json:"source,omitempty"` // of a mixture
	ID      string `json:"id,omitempty"`     // of the sample; see catalog.Table.ID
	Row     *int64 `json:"row,omitempty"`    // of the source's table
	Sample  *int64 `json:"sample,omitempty"` // of an epoch, in the dataset's order
	// Instead is what stood in its place when it was met first, where bad samples are replaced.
	Instead *loader.SampleRef `json:"instead,omitempty"`
	URI     string            `json:"uri,omitempty"`
	Part    string            `json:"part,omitempty"`
	Offset  *int64            `json:"offset,omitempty"`
	Kind    string            `json:"kind"`
	Message string            `json:"message"` // the whole line
	// FirstSeen is when it was met first; Count how often.
	FirstSeen time.Time `json:"first_seen"`
	Count     int64     `json:"count"`
}

// New returns a record of a fault that was met once, now.
func New(dataset string, err error) Record {
	r := Record{Dataset: dataset, Kind: fault.KindOf(err).Error(), Message: fault.Line(err), FirstSeen: time.Now().UTC().Truncate(time.Second), Count: 1}
	var f *fault.Error
	if errors.As(err, &f) {
		r.URI, r.Part = f.File, f.Part
		if f.Off >= 0 {
			r.Offset = &f.Off
		}
	}
	return r
}

// key says what two records must share to be about the same: the message names the file and the place in it. One
// that names no file is about its sample.
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

// Bounds of a list.
const (
	MaxKnown = 10_000   // things that one writer tells apart
	MaxBytes = 64 << 20 // of a file that is appended to
	maxLine  = 1 << 20
	maxRead  = 1_000_000 // things in lists that are read
)

// Writer appends to a list. It is safe for concurrent use.
type Writer struct {
	mu    sync.Mutex
	file  *os.File
	known map[string]*tally
	lost  int64
}

// tally is what a writer knows of a record, and how often it was met since it was written.
type tally struct {
	record    Record
	met, kept int64
}

// Open opens a list, or begins one.
func Open(path string) (*Writer, error) {
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o666)
	if err != nil {
		return nil, err
	}
	return &Writer{file: f, known: map[string]*tally{}}, nil
}

// Add notes that a sample was met. What is over the bounds is lost, but counted.
func (w *Writer) Add(r Record) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	k := r.key()
	t := w.known[k]
	if t == nil {
		if len(w.known) >= MaxKnown {
			w.lost++
			return nil
		}
		t = &tally{record: r}
		w.known[k] = t
	}
	if t.met++; t.met&(t.met-1) != 0 {
		return nil
	}
	return w.write(t)
}

// write appends what was met of a record since the last time. It needs the lock.
func (w *Writer) write(t *tally) error {
	if st, err := w.file.Stat(); err != nil {
		return err
	} else if st.Size() > MaxBytes {
		w.lost += t.met - t.kept
		t.kept = t.met
		return nil
	}
	r := t.record
	r.Count, t.kept = t.met-t.kept, t.met
	b, err := json.Marshal(r)
	if err != nil {
		return err
	}
	_, err = w.file.Write(append(b, '\n'))
	return err
}

// Lost returns how often something was met that has no place in the list.
func (w *Writer) Lost() int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.lost
}

// Close writes the counts and closes the list.
func (w *Writer) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	var errs []error
	for _, t := range w.known {
		if t.met > t.kept {
			errs = append(errs, w.write(t))
		}
	}
	return errors.Join(append(errs, w.file.Close())...)
}

// List is what one or several lists say, every thing once. The zero value is empty.
type List struct {
	by map[string]*Record
	// Skipped counts lines that are no records: a writer was killed, or the file is none of a list.
	Skipped int64
}

// Read adds the lines of a list. An error is the reader's, or of kind fault.Limit.
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

// readLine returns a line, or as much as maxLine of one that is longer, which then is no record.
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
	k := r.key()
	old := l.by[k]
	switch {
	case old != nil:
		old.merge(&r)
		return nil
	case len(l.by) >= maxRead:
		return fault.New(fault.Limit, "list", fault.NoOffset, "more than %d bad samples", maxRead)
	case l.by == nil:
		l.by = map[string]*Record{}
	}
	l.by[k] = &r
	return nil
}

// merge adds what another record of the same says. Counts stop at the greatest number there is.
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

// Records returns all records by dataset, source, row, id and message.
func (l *List) Records() []Record {
	out := make([]Record, 0, len(l.by))
	for _, r := range l.by {
		out = append(out, *r)
	}
	n := func(p *int64) int64 {
		if p == nil {
			return -1
		}
		return *p
	}
	slices.SortFunc(out, func(a, b Record) int {
		return cmp.Or(cmp.Compare(a.Dataset, b.Dataset), cmp.Compare(a.Source, b.Source), cmp.Compare(n(a.Row), n(b.Row)),
			cmp.Compare(a.ID, b.ID), cmp.Compare(a.Message, b.Message))
	})
	return out
}

// Write writes records as a list.
func Write(w io.Writer, records []Record) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	for i := range records {
		if err := e.Encode(&records[i]); err != nil {
			return err
		}
	}
	return nil
}
