package loader

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"math"
	"sync"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/shuffle"
	"github.com/chaski-eo/chaski/shuffle/steps"
	"github.com/chaski-eo/chaski/source"
)

// rowWeightsMagic begins a file of weights of rows: 8 bytes, their number as uint64, and the weights as float32, all
// little-endian. Python writes it.
const rowWeightsMagic = "CHSKROW1"

// maxOpenWeights is how many files of weights an engine keeps open: those before and after a change, for two clients.
const maxOpenWeights = 4

// weighed holds the open weights of rows, the last used one last.
type weighed struct {
	mu   sync.Mutex
	open []*openWeights
}

type openWeights struct {
	hash string
	file source.Reader
	*shuffle.RowWeights
}

// weigh draws the samples of a ticket that has weights. The first ticket with weights opens them.
func (e *Engine) weigh(ctx context.Context, t *steps.Ticket) error {
	if t.Weights == nil {
		return nil
	}
	w := &e.weighed
	w.mu.Lock()
	defer w.mu.Unlock()
	opened, err := w.get(ctx, e, t.Weights)
	if err == nil {
		t.Samples, err = e.plan.Weigh(*t, opened.RowWeights, t.Weights.Once)
	}
	if err != nil && fault.KindOf(err) == 0 {
		err = fault.New(fault.Unsupported, "weights", fault.NoOffset, "%v", err)
	}
	if err != nil {
		return fault.WithFile(err, t.Weights.Path)
	}
	return nil
}

// get returns open weights. It needs the lock.
func (w *weighed) get(ctx context.Context, e *Engine, asked *steps.Weights) (*openWeights, error) {
	for i, o := range w.open {
		if o.hash == asked.Hash {
			w.open = append(append(w.open[:i:i], w.open[i+1:]...), o)
			return o, nil
		}
	}
	if source.IsRemote(asked.Path) {
		return nil, fault.New(fault.Unsupported, "weights", fault.NoOffset, "they must be in a local file")
	}
	file, err := e.options.Opener.Open(ctx, asked.Path)
	if err != nil {
		return nil, err
	}
	opened := &openWeights{hash: asked.Hash, file: file}
	if err = opened.load(ctx); err != nil {
		_ = file.Close()
		return nil, err
	}
	if len(w.open) == maxOpenWeights {
		_ = w.open[0].file.Close()
		w.open = w.open[1:]
	}
	w.open = append(w.open, opened)
	return opened, nil
}

// load checks the file and sums its weights.
func (o *openWeights) load(ctx context.Context) error {
	var head [16]byte
	if o.file.Size() < int64(len(head)) {
		return fault.New(fault.Corrupt, "weights", 0, "%d bytes are no weights of rows", o.file.Size())
	}
	if err := o.file.ReadAt(ctx, head[:], 0); err != nil {
		return err
	}
	n := (o.file.Size() - int64(len(head))) / 4
	if string(head[:8]) != rowWeightsMagic || n < 1 || n > math.MaxUint32 ||
		binary.LittleEndian.Uint64(head[8:]) != uint64(n) || o.file.Size() != int64(len(head))+4*n {
		return fault.New(fault.Corrupt, "weights", 0, "not a file of Loader.reweight")
	}
	hasher, hashed := sha256.New(), int64(0)
	_, _ = hasher.Write(head[:])
	var buffer []byte
	var err error
	o.RowWeights, err = shuffle.NewRowWeights(n, func(first int64, to []float32) error {
		if cap(buffer) < 4*len(to) {
			buffer = make([]byte, 4*len(to))
		}
		buffer = buffer[:4*len(to)]
		// Tickets of other calls read later, so this context may have ended.
		if err := o.file.ReadAt(context.WithoutCancel(ctx), buffer, int64(len(head))+4*first); err != nil {
			return err
		}
		if first == hashed { // of the first walk
			_, _ = hasher.Write(buffer)
			hashed += int64(len(to))
		}
		for i := range to {
			to[i] = math.Float32frombits(binary.LittleEndian.Uint32(buffer[4*i:]))
		}
		return nil
	})
	if err != nil {
		return err
	}
	if want, err := hex.DecodeString(o.hash); err != nil || !bytes.Equal(hasher.Sum(nil), want) {
		return fault.New(fault.Corrupt, "weights", fault.NoOffset, "other weights than the run was given")
	}
	return nil
}

// close closes the files.
func (w *weighed) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, o := range w.open {
		_ = o.file.Close()
	}
	w.open = nil
}
