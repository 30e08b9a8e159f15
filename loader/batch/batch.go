// Package batch has what a step of a run gives: the tensors of its rows, the rows that are bad, and the memory of both.
// An engine makes batches (package loader), and a client receives them from one (package client).
package batch

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"iter"
	"sync/atomic"

	"github.com/chaski-eo/chaski/format/dtype"
	"github.com/chaski-eo/chaski/internal/cast"
)

// TensorKind is the type of a tensor's bytes.
type TensorKind uint8

// Tensor kinds, with the numbers of the payload (proto/chaski/v1/batch.fbs).
const (
	Dense  TensorKind = iota // elements of one length each
	Ragged                   // rows of values of several lengths: see Tensor.Offsets and Tensor.Row
	Text                     // UTF-8: see Tensor.Texts
)

// ViewAxis is the name of the axis of the windows of a sample.
const ViewAxis = "v"

// Tensor is one member of a batch. Its memory belongs to the batch and is valid until Release.
type Tensor struct {
	Name  string
	Kind  TensorKind
	DType dtype.Type // Invalid for text
	Axes  []string   // "n", "b", "(h w)", ...
	Shape []int64
	Data  []byte // little-endian elements in C order, 64-byte aligned; or the values of ragged and text
	// Offsets are little-endian uint64 offsets into the values, in elements. A ragged tensor has
	// one more than rows; a text tensor has one more than elements of its shape: (n), or (n, t) for
	// sequences. The shape of a ragged tensor is (n), or (n, k) if its values belong together by k,
	// such as the four sides of a box: offsets are multiples of k then. With several windows of a
	// sample ViewAxis stands behind n, and there is one offset more than windows, by row and then view.
	Offsets []byte
	// Convert is the arithmetic left to the receiver. It is nil if the data are final.
	Convert *Convert
}

// Row returns which values of a Ragged tensor belong to row i: from to to-1, in elements.
func (t *Tensor) Row(i int) (from, to int) {
	return int(binary.LittleEndian.Uint64(t.Offsets[8*i:])), int(binary.LittleEndian.Uint64(t.Offsets[8*i+8:]))
}

// Texts returns the strings of a Text tensor in C order, one for each element of its shape. A
// missing string is empty: a null, padding, or a skipped sample.
func (t *Tensor) Texts() []string {
	out := make([]string, max(len(t.Offsets)/8-1, 0))
	for i := range out {
		start, end := binary.LittleEndian.Uint64(t.Offsets[8*i:]), binary.LittleEndian.Uint64(t.Offsets[8*i+8:])
		out[i] = string(t.Data[start:end])
	}
	return out
}

// Convert is the arithmetic left to the receiver of a tensor in its native dtype.
type Convert struct {
	To            dtype.Type // of the result
	Scale, Offset []float32  // one a band, one for all, or none
	BandAxis      int        // axis of the tensor that is the bands, or -1
	Clip          bool
	Lo, Hi        float32 // with Clip, in units of the result
	Fill          float64 // in units of the result
	Mask          []byte  // uint8 in the tensor's layout, 0 where Fill goes; nil if there is no such sample
}

// Bad is a row that the bad-sample policy changed. If single steps of a sequence are filled, it is
// one of those steps, and a row may have several.
type Bad struct {
	Row      int
	Position int64
	Err      error
	Source   string     // the name of the sample's source in a mixture
	Sample   *SampleRef // the bad sample; nil if an older server does not say
	Instead  *SampleRef // the substitute, or nil
}

// SampleRef names a sample.
type SampleRef struct {
	Index int64  `json:"sample"` // in its dataset
	Row   int64  `json:"row"`    // of the table; of a sequence its first, or the row of the step that was filled
	ID    string `json:"id"`     // see Table.ID; empty if it cannot be read
}

// Batch is the rows of one ticket. The caller owns it until Release.
type Batch struct {
	Epoch     uint64
	First     int64    // first position of the ticket
	Rows      int      // of every tensor, padding included: steps.Ticket.Rows
	Valid     []bool   // one a row; false for padding and skipped samples
	Positions []int64  // one a row; -1 for padding
	Samples   []int64  // index of the sample in the dataset; -1 for padding
	Bad       []Bad    // rows that the bad-sample policy touched
	Tensors   []Tensor // in the order of Engine.Fields

	memory   Buffer
	release  func(keep bool)
	keep     func() // nil: it is in no window
	released atomic.Bool
}

// Tensor returns the tensor with a name, or nil.
func (b *Batch) Tensor(name string) *Tensor {
	for i := range b.Tensors {
		if b.Tensors[i].Name == name {
			return &b.Tensors[i]
		}
	}
	return nil
}

// Release returns the batch's memory. The batch and all slices of it are invalid afterwards.
// Further calls do nothing.
func (b *Batch) Release() { b.end(true) }

// Discard is Release for memory that another process may still use: it is freed here, not used for another batch.
func (b *Batch) Discard() { b.end(false) }

// Keep says that the caller holds the batch for as long as it likes. It no longer counts in the window of its stream
// (resources.WithCaller), so the engine makes further batches while there is memory.
func (b *Batch) Keep() {
	if b.keep != nil {
		b.keep()
	}
}

func (b *Batch) end(keep bool) {
	if b.release != nil && !b.released.Swap(true) {
		b.release(keep)
	}
}

// Memory returns the allocator's buffer with the tensors (the metadata columns lie outside of it),
// or nil without an allocator.
func (b *Batch) Memory() Buffer { return b.memory }

// OnKeep sets what Keep does. Call it before the batch is handed out.
func (b *Batch) OnKeep(f func()) { b.keep = f }

// OnRelease sets what Release does, for packages that make batches in their own memory, such as the
// client. Call it before the batch is handed out.
func (b *Batch) OnRelease(f func()) { b.release = func(bool) { f() } }

// SetMemory sets the buffer that holds the tensors, and what Release (with keep) and Discard do
// with it. Call it before the batch is handed out.
func (b *Batch) SetMemory(m Buffer, release func(keep bool)) { b.memory, b.release = m, release }

// The methods below return the elements of a tensor as Go numbers, in C order; for a Ragged tensor,
// its values. The slices share memory with Data if it is aligned, as in the batches of an engine, and are valid until
// Release. With the build tag purego, or if Data is not aligned, they are copies.
//
// The methods panic if the tensor has another DType. Types that Go lacks (float16, bfloat16,
// complex) are in Data only.

// Float32 returns the elements of a tensor of dtype.Float32.
func (t *Tensor) Float32() []float32 { return values[float32](t, dtype.Float32) }

// Float64 returns the elements of a tensor of dtype.Float64.
func (t *Tensor) Float64() []float64 { return values[float64](t, dtype.Float64) }

// Uint8 returns the elements of a tensor of dtype.Uint8.
func (t *Tensor) Uint8() []uint8 { return values[uint8](t, dtype.Uint8) }

// Uint16 returns the elements of a tensor of dtype.Uint16.
func (t *Tensor) Uint16() []uint16 { return values[uint16](t, dtype.Uint16) }

// Uint32 returns the elements of a tensor of dtype.Uint32.
func (t *Tensor) Uint32() []uint32 { return values[uint32](t, dtype.Uint32) }

// Uint64 returns the elements of a tensor of dtype.Uint64.
func (t *Tensor) Uint64() []uint64 { return values[uint64](t, dtype.Uint64) }

// Int8 returns the elements of a tensor of dtype.Int8.
func (t *Tensor) Int8() []int8 { return values[int8](t, dtype.Int8) }

// Int16 returns the elements of a tensor of dtype.Int16.
func (t *Tensor) Int16() []int16 { return values[int16](t, dtype.Int16) }

// Int32 returns the elements of a tensor of dtype.Int32.
func (t *Tensor) Int32() []int32 { return values[int32](t, dtype.Int32) }

// Int64 returns the elements of a tensor of dtype.Int64.
func (t *Tensor) Int64() []int64 { return values[int64](t, dtype.Int64) }

func values[T cast.Number](t *Tensor, d dtype.Type) []T {
	if t.DType != d {
		panic(fmt.Sprintf("batch: tensor %q holds %s, not %s", t.Name, t.DType, d))
	}
	return cast.Values[T](t.Data)
}

// DefaultPrefetch is how many batches a loader prepares ahead.
const DefaultPrefetch = 3

// MaxAutoPrefetch bounds how many batches are prepared ahead where nobody says how many: 32 batches of 32 samples of
// 8 KB are half a second of a link of 16 MB/s, so longer than a request is waited for until it is sent once more.
const MaxAutoPrefetch = 32

// All iterates over the batches of next until io.EOF, as Loader.All does. It serves other sources
// of batches.
func All(ctx context.Context, next func(context.Context) (*Batch, error)) iter.Seq2[*Batch, error] {
	return func(yield func(*Batch, error) bool) {
		for {
			batch, err := next(ctx)
			if errors.Is(err, io.EOF) {
				return
			}
			goOn := yield(batch, err)
			if err != nil {
				return
			}
			batch.Release()
			if !goOn {
				return
			}
		}
	}
}
