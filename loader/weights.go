package loader

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"math"
	"slices"
	"sync"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/keylock"
	"github.com/chaski-eo/chaski/shuffle"
	"github.com/chaski-eo/chaski/shuffle/steps"
	"github.com/chaski-eo/chaski/source"
)

// rowWeightsMagic begins a file of weights of rows: 8 bytes, their number as uint64, and the weights as float32, all
// little-endian. Python writes it. Its hash is SHA-256 of these 16 bytes and the SHA-256 of each shuffle.WeightPiece
// weights, which several processors compute.
const rowWeightsMagic = "CHSKROW1"

// maxOpenWeights is how many files of weights an engine keeps open: those before and after a change, for two clients.
const maxOpenWeights = 4

// weighed holds the open weights of rows. Tickets with weights wait in the queue while goroutines draw their samples:
// files may be slow, and Start never blocks.
type weighed struct {
	opening keylock.Locks[string] // by hash: one ticket opens a file, the others find it open
	running sync.WaitGroup        // calls of use

	// mu guards the fields below, and is not held while a file is opened, read or closed.
	mu      sync.Mutex
	open    []*openWeights // the last used one last
	maxOpen int            // how many may stay open: none at rest, when cancelled tickets may still draw
	closed  bool
}

// openWeights is an open file of weights.
type openWeights struct {
	hash  string
	file  source.Reader
	users int // tickets that draw, and one for weighed.open; the last one closes the file
	*shuffle.RowWeights
}

// use calls do, which draws by weights, and lets close wait for it. It fails with ErrClosed once the engine is closed.
func (w *weighed) use(do func() error) error {
	w.mu.Lock()
	closed := w.closed
	if !closed {
		w.running.Add(1)
	}
	w.mu.Unlock()
	if closed {
		return ErrClosed
	}
	defer w.running.Done()
	return do()
}

// weigh draws the samples of a ticket that has weights. The first ticket with weights opens them.
func (e *Engine) weigh(ctx context.Context, t steps.Ticket) (samples []int64, err error) {
	err = e.withWeights(ctx, t, func(w *shuffle.RowWeights) error {
		samples, err = e.plan.Weigh(ctx, t, w, t.Weights.Once)
		return err
	})
	return samples, err
}

// chances draws the samples of a ticket that has weights, and returns the chance of each in a draw, too.
func (e *Engine) chances(ctx context.Context, t steps.Ticket) (samples []int64, chances []float64, err error) {
	err = e.withWeights(ctx, t, func(w *shuffle.RowWeights) error {
		if samples, err = e.plan.Weigh(ctx, t, w, t.Weights.Once); err != nil {
			return err
		}
		chances = make([]float64, len(samples))
		for k, sample := range samples {
			if sample < 0 {
				continue
			}
			if chances[k], err = e.plan.Chance(ctx, sample, w); err != nil {
				return err
			}
		}
		return nil
	})
	return samples, chances, err
}

// Substitute returns the draw that replaces one of a ticket whose sample is bad: by the ticket's weights, if it has any
// (shuffle.Plan.Substitute, shuffle.Plan.SubstituteByWeight).
func (e *Engine) Substitute(ctx context.Context, t steps.Ticket, d shuffle.Draw, attempt int) (shuffle.Draw, error) {
	if t.Weights == nil {
		return e.plan.Substitute(d, attempt), nil
	}
	err := e.weighed.use(func() error {
		return e.withWeights(ctx, t, func(w *shuffle.RowWeights) (err error) {
			d, err = e.plan.SubstituteByWeight(ctx, d, attempt, w)
			return err
		})
	})
	return d, err
}

// withWeights calls do with the open weights of a ticket.
func (e *Engine) withWeights(ctx context.Context, t steps.Ticket, do func(*shuffle.RowWeights) error) error {
	opened, err := e.weighed.get(ctx, e, t.Weights)
	if err == nil {
		err = do(opened.RowWeights)
		e.weighed.release(opened)
	}
	if err != nil && fault.KindOf(err) == 0 && ctx.Err() == nil {
		err = fault.New(fault.Unsupported, "weights", "%v", err)
	}
	return fault.WithFile(err, t.Weights.Path)
}

// get returns open weights, which the caller releases.
func (w *weighed) get(ctx context.Context, e *Engine, asked *steps.Weights) (*openWeights, error) {
	if found := w.find(asked.Hash); found != nil {
		return found, nil
	}
	unlock, err := w.opening.Lock(ctx, asked.Hash)
	if err != nil {
		return nil, err
	}
	defer unlock()
	if found := w.find(asked.Hash); found != nil { // another ticket has opened it meanwhile
		return found, nil
	}
	if source.IsRemote(asked.Path) {
		return nil, fault.New(fault.Unsupported, "weights", "they must be in a local file")
	}
	file, err := e.options.Opener.Open(ctx, asked.Path)
	if err != nil {
		return nil, err
	}
	opened := &openWeights{hash: asked.Hash, file: file, users: 2}
	if err = opened.load(ctx, e.options.Workers); err != nil {
		_ = source.Drop(file)
		return nil, err
	}
	w.mu.Lock()
	w.open = append(w.open, opened)
	var oldest *openWeights
	if len(w.open) > w.maxOpen {
		oldest = w.open[0]
		w.open = slices.Delete(w.open, 0, 1)
	}
	w.mu.Unlock()
	if oldest != nil {
		w.release(oldest)
	}
	return opened, nil
}

// find returns open weights, which the caller releases, or nil.
func (w *weighed) find(hash string) *openWeights {
	w.mu.Lock()
	defer w.mu.Unlock()
	i := slices.IndexFunc(w.open, func(o *openWeights) bool { return o.hash == hash })
	if i < 0 {
		return nil
	}
	found := w.open[i]
	found.users++
	w.open = append(slices.Delete(w.open, i, i+1), found)
	return found
}

// release ends a use of open weights.
func (w *weighed) release(o *openWeights) {
	w.mu.Lock()
	o.users--
	last := o.users == 0
	w.mu.Unlock()
	if last {
		_ = source.Drop(o.file)
	}
}

// load checks the file and sums its weights.
func (o *openWeights) load(ctx context.Context, workers int) error {
	var head [16]byte
	if o.file.Size() < int64(len(head)) {
		return fault.At(fault.Corrupt, "weights", 0, "%d bytes are no weights of rows", o.file.Size())
	}
	if err := o.file.ReadAt(ctx, head[:], 0); err != nil {
		return err
	}
	n := (o.file.Size() - int64(len(head))) / 4
	if string(head[:8]) != rowWeightsMagic || n < 1 || n > math.MaxUint32 ||
		binary.LittleEndian.Uint64(head[8:]) != uint64(n) || o.file.Size() != int64(len(head))+4*n {
		return fault.At(fault.Corrupt, "weights", 0, "not a file of Loader.reweight")
	}
	read := func(ctx context.Context, to []byte, first int64) error {
		return o.file.ReadAt(ctx, to, int64(len(head))+4*first)
	}
	hashes := make([][sha256.Size]byte, (n-1)/shuffle.WeightPiece+1)
	var err error
	o.RowWeights, err = shuffle.NewRowWeights(ctx, n, workers, read, func(piece int64, weights []byte) {
		hashes[piece] = sha256.Sum256(weights)
	})
	if err != nil {
		return err
	}
	hasher := sha256.New()
	_, _ = hasher.Write(head[:])
	for i := range hashes {
		_, _ = hasher.Write(hashes[i][:])
	}
	if want, err := hex.DecodeString(o.hash); err != nil || !bytes.Equal(hasher.Sum(nil), want) {
		return fault.New(fault.Corrupt, "weights", "other weights than the run was given")
	}
	return nil
}

// close waits for the calls of use, and closes the files.
func (w *weighed) close() {
	w.mu.Lock()
	w.closed = true
	w.mu.Unlock()
	w.running.Wait()
	w.rest()
}

// wake lets the files of tickets that come stay open.
func (w *weighed) wake() {
	w.mu.Lock()
	w.maxOpen = maxOpenWeights
	w.mu.Unlock()
}

// rest closes the files that no ticket draws by.
func (w *weighed) rest() {
	w.mu.Lock()
	open := w.open
	w.open, w.maxOpen = nil, 0
	w.mu.Unlock()
	for _, o := range open {
		w.release(o)
	}
}
