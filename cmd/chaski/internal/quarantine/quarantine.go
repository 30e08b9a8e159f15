// Package quarantine keeps lists of bad samples as lines of JSON: those that a server or a trainer meets
// while it runs, and those that a check of a whole dataset finds.
//
// A writer appends one line with each write, so that several processes may share a list. A line is about
// one bad sample (Record.key) and counts how often the writer met it since its last line about it. The
// writer writes a line the first time and whenever the count has doubled, so that a list grows with the
// number of bad samples and not with the number of epochs.
package quarantine

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/bits"
	"os"
	"sync"
	"time"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/durable"
	"github.com/chaski-eo/chaski/internal/pathname"
	"github.com/chaski-eo/chaski/loader/batch"
)

// Record describes one bad sample.
type Record struct {
	Dataset string `json:"dataset"`          // fingerprint
	Source  string `json:"source,omitempty"` // of a mixture
	ID      string `json:"id,omitempty"`     // of the sample; see catalog.Table.ID
	Row     *int64 `json:"row,omitempty"`    // of the source's table
	Sample  *int64 `json:"sample,omitempty"` // of an epoch, in the dataset's order
	// Instead is the substitute when the sample was first met, if the policy is to replace bad samples.
	Instead *batch.SampleRef `json:"instead,omitempty"`
	URI     string           `json:"uri,omitempty"`
	Part    string           `json:"part,omitempty"`
	Offset  *int64           `json:"offset,omitempty"`
	Kind    string           `json:"kind"`
	Message string           `json:"message"` // the whole error
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
	MaxKnown = 10_000   // records that a writer counts; some 10 MB at 1 kB each
	MaxBytes = 64 << 20 // size from which on a writer appends no more
)

// Writer appends to a list. It is safe for concurrent use.
type Writer struct {
	mu      sync.Mutex // of all fields: a count and the line that it is written in must agree
	file    *os.File
	folder  string
	records map[string]*Record // with how often each was met
	lost    int64
}

// Open opens a list to append to, and creates it if it does not exist.
func Open(path string) (*Writer, error) {
	file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o666)
	if err != nil {
		return nil, err
	}
	return &Writer{file: file, folder: pathname.Dir(path), records: map[string]*Record{}}, nil
}

// Add records that a bad sample was met. Beyond the limits it only counts: see Lost.
func (w *Writer) Add(r Record) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	key := r.key()
	record := w.records[key]
	if record == nil {
		if len(w.records) >= MaxKnown {
			w.lost++
			return nil
		}
		record = &r
		record.Count = 0
		w.records[key] = record
	}
	// Only powers of two are written, so that a sample met n times takes log2(n) lines.
	if record.Count++; record.Count&(record.Count-1) != 0 {
		return nil
	}
	return w.write(*record, record.Count-record.Count/2)
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
	for _, r := range w.records {
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
