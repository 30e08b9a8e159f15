package payload

import (
	"fmt"

	"github.com/chaski-eo/chaski/loader"
)

// Memory makes the memory of batches and takes it back.
type Memory interface {
	// Take returns memory of n bytes with any content.
	Take(n int) loader.Buffer
	// Give takes memory back; with keep it may be used for another batch.
	Give(m loader.Buffer, keep bool)
}

// Finish does what Apply does for all tensors of a batch that was received. With memory, its elements are copied
// there and the received buffers are released, so that a server can pass the batch on in shared memory. On an error
// it releases b.
func Finish(b *loader.Batch, memory Memory) (*loader.Batch, error) {
	if memory == nil {
		for i := range b.Tensors {
			if err := Apply(&b.Tensors[i]); err != nil {
				b.Release()
				return nil, err
			}
		}
		return b, nil
	}
	defer b.Release()
	size := 0
	for i := range b.Tensors {
		t := &b.Tensors[i]
		n, err := finalBytes(t)
		if err != nil {
			return nil, err
		}
		size += roundUp(n)
	}
	m := memory.Take(size)
	out := &loader.Batch{
		Epoch: b.Epoch, First: b.First, Rows: b.Rows,
		Valid: b.Valid, Positions: b.Positions, Samples: b.Samples, Bad: b.Bad, Tensors: b.Tensors,
	}
	out.SetMemory(m, func(keep bool) { memory.Give(m, keep) })
	rest := m.Bytes()
	for i := range out.Tensors {
		t := &out.Tensors[i]
		n, _ := finalBytes(t)
		dst := rest[:n:n]
		rest = rest[roundUp(n):]
		if t.Kind != loader.Dense {
			// Offsets and strings are few, and clients take them from the header's part of the payload.
			t.Data, t.Offsets = append([]byte(nil), t.Data...), append([]byte(nil), t.Offsets...)
			continue
		}
		if t.Convert == nil {
			copy(dst, t.Data)
			t.Data = dst
			continue
		}
		if err := applyTo(t, dst); err != nil {
			out.Release()
			return nil, err
		}
	}
	return out, nil
}

// finalBytes returns the bytes that a tensor takes in Finish's memory.
func finalBytes(t *loader.Tensor) (int, error) {
	switch {
	case t.Kind != loader.Dense:
		return 0, nil
	case t.Convert == nil:
		return len(t.Data), nil
	}
	if msg := checkConvert(t, t.Convert); msg != "" {
		return 0, fmt.Errorf("tensor %q: %s", t.Name, msg)
	}
	n, _ := elements(t.Shape) // checkConvert has multiplied it out
	return int(n) * t.Convert.To.Size(), nil
}
