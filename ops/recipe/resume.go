package recipe

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"strconv"

	"go.yaml.in/yaml/v3"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/durable"
	"github.com/chaski-eo/chaski/internal/pathname"
	"github.com/chaski-eo/chaski/store/taco/build"
)

// A run is made in shards of windows. After each shard but the last, the container is synced and a note is appended to
// a journal in the folder of the work. An interrupted run continues after the last note:
//
//	.OUT.chaski-work/container   what is written so far
//	.OUT.chaski-work/journal     JSON: the key, then a note for each shard
//	.OUT.chaski-work/stats-N     the statistics of all chips up to note N
//
// The pixels are written once, into a ZIP that becomes the container, or is copied if that has another form.

// Sizes of a shard.
const (
	// shardWindows is how many windows each worker makes in a shard, at most. At the end of a shard the workers
	// wait for the last one, on average for half a window: 1 part in 512.
	shardWindows = 256
	// shardBytes bounds the pixels of a shard for each worker, as scenes of a gigabyte must not wait for 255
	// others. 256 chips of 128 by 128 with 12 bands of 16 bits are 100 MB.
	shardBytes = 128 << 20
)

// note is the record of a shard in the journal.
type note struct {
	Next  int64     `json:"next"`            // windows that are done
	From  int64     `json:"from"`            // see build.StreamIn
	First []byte    `json:"first,omitempty"` // the first reason why a window was left out
	Chips []*record `json:"chips"`           // without the bytes of their files
}

// work is the state that a later run needs to continue an interrupted one.
type work struct {
	folder  *durable.Work
	key     string
	journal *durable.Journal
	notes   []note // of the run that goes on
	count   int    // notes that the journal has
	pending []*record
	flush   func() (from int64, err error) // of the sink
}

// openWork opens the work for path: the work of an interrupted run if the options want it to go on, else a new one.
func (m *maker) openWork(path string) (_ *work, err error) {
	w := &work{}
	if w.folder, err = durable.OpenWork(path); err != nil {
		if errors.Is(err, durable.ErrLocked) {
			err = fault.New(fault.Unsupported, "file", fault.NoOffset, "another run makes it")
		}
		return nil, fault.WithFile(err, path)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, w.folder.Close())
		}
	}()
	key, err := m.key()
	if err != nil {
		return nil, err
	}
	if !m.options.Resume {
		if err := w.folder.Clear(); err != nil {
			return nil, err
		}
	}
	w.key = key
	if err := w.open(); err != nil {
		return nil, fault.WithFile(err, path)
	}
	if w.count == 0 || !exists(pathname.Join(w.folder.Path, "container")) {
		// The journal is empty, or the last run ended after the rename and before the end of the work.
		if err := w.begin(); err != nil {
			return nil, errors.Join(err, w.folder.Remove())
		}
	}
	return w, m.restore(w)
}

// key is equal for runs that write the same bytes while the container grows: it is of the recipe, the data and the
// program.
func (m *maker) key() (string, error) {
	r, err := yaml.Marshal(m.recipe)
	if err != nil {
		return "", err
	}
	h := sha256.New()
	fmt.Fprintf(h, "4\n%s\n%s\n%s\n%s", m.engine.Hash(), m.engine.Fingerprint(), version(), r)
	return hex.EncodeToString(h.Sum(nil)), nil
}

// version returns the version of the program and the commit that it is of.
func version() string {
	buildInfo, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	v := buildInfo.Main.Version
	for _, s := range buildInfo.Settings {
		if s.Key == "vcs.revision" || s.Key == "vcs.modified" {
			v += " " + s.Value
		}
	}
	return v
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// open opens the journal and reads its notes.
func (w *work) open() error {
	first := true
	journal, err := durable.OpenJournal(pathname.Join(w.folder.Path, "journal"), func(record []byte) error {
		if first {
			first = false
			if string(record) != w.key {
				return fault.New(fault.Unsupported, "interrupted run", fault.NoOffset,
					"had another recipe, source or version of chaski: without --resume it begins again")
			}
			return nil
		}
		var n note
		if err := json.Unmarshal(record, &n); err != nil {
			return fault.Wrap(fault.Corrupt, "interrupted run", fault.NoOffset, err)
		}
		w.notes = append(w.notes, n)
		return nil
	})
	w.journal, w.count = journal, len(w.notes)
	return err
}

// begin empties the folder and begins a journal.
func (w *work) begin() error {
	if err := errors.Join(w.journal.Close(), w.folder.Clear()); err != nil {
		return err
	}
	w.notes, w.count = nil, 0
	return w.open()
}

// close ends the work. After a failure it keeps the folder if a later run can continue.
func (w *work) close(failed bool) error {
	err := w.journal.Close()
	if failed && w.count > 0 {
		return errors.Join(err, w.folder.Close())
	}
	return errors.Join(err, w.folder.Remove())
}

// from returns where the container goes on.
func (w *work) from() int64 {
	if len(w.notes) == 0 {
		return 0
	}
	return w.notes[len(w.notes)-1].From
}

// stats returns the name of the file with the statistics of the last note.
func (w *work) stats() string { return pathname.Join(w.folder.Path, "stats-"+strconv.Itoa(w.count)) }

// restore reads the statistics of an interrupted run.
func (m *maker) restore(w *work) error {
	if w.count == 0 || !*m.recipe.Statistics {
		return nil
	}
	data, err := os.ReadFile(w.stats())
	if err != nil {
		return err
	}
	var end partEnd
	if err := json.Unmarshal(data, &end); err != nil {
		return fault.Wrap(fault.Corrupt, "interrupted run", fault.NoOffset, err)
	}
	return m.addStates(end.Statistics)
}

// replay takes the chips of an interrupted run, and returns how many windows are done.
func (m *maker) replay(w *work, put func(*build.Sample) error, res *Result) (next int64, err error) {
	for _, note := range w.notes {
		for i := range note.Chips {
			chip, err := note.Chips[i].chip(m.recipe)
			if err != nil {
				return 0, err
			}
			if len(note.First) > 0 {
				chip.why = errors.New(string(note.First))
			}
			if err := m.take(chip, put, res); err != nil {
				return 0, err
			}
		}
		next = note.Next
	}
	w.notes = nil
	return next, nil
}

// shard returns how many windows a shard has.
func (m *maker) shard() int64 {
	if n := m.options.Shard; n > 0 {
		return n
	}
	each := min(shardWindows, shardBytes/max(1, m.engine.BatchBytes()))
	return max(1, each) * int64(m.workers)
}

// note appends a note to the journal that all windows up to next are done. No worker runs meanwhile.
func (m *maker) note(w *work, next int64, res *Result) error {
	start, err := w.flush()
	if err != nil {
		return err
	}
	before := w.stats()
	if w.count == 0 {
		if err := w.journal.Append([]byte(w.key)); err != nil {
			return err
		}
	}
	w.count++
	if *m.recipe.Statistics {
		if err := m.save(w.stats()); err != nil {
			return err
		}
	}
	n := note{Next: next, From: start, Chips: w.pending}
	if res.First != nil {
		n.First = []byte(fault.Line(res.First))
	}
	data, err := json.Marshal(&n)
	if err == nil {
		err = w.journal.Append(data)
	}
	if err != nil {
		return err
	}
	w.pending = w.pending[:0]
	if err := os.Remove(before); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// save writes the statistics of all chips so far.
func (m *maker) save(path string) error {
	end, err := m.end()
	if err != nil {
		return err
	}
	return durable.WriteFile(path, func(f *os.File) error { return json.NewEncoder(f).Encode(end) })
}

// samples makes the chips and hands them to put. Without work, the run cannot go on later.
func (m *maker) samples(ctx context.Context, w *work, put func(*build.Sample) error) (_ *Result, err error) {
	n := m.engine.Len()
	res := &Result{Windows: n}
	next := int64(0)
	if w != nil {
		next, err = m.replay(w, put, res)
	}
	for step := m.shard(); err == nil && next < n; {
		end := min(next+step, n)
		err = m.windows(ctx, next, end, func(i int64, c *chip) error {
			if w != nil {
				w.pending = append(w.pending, c.record())
			}
			if err := m.take(c, put, res); err != nil {
				return err
			}
			if m.options.Progress != nil {
				m.options.Progress(i+1, n)
			}
			return nil
		})
		if err == nil && end < n && w != nil {
			err = m.note(w, end, res)
		}
		next = end
	}
	if err == nil {
		err = m.finish(res)
	}
	return res, err
}
