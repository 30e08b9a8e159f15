package payload

import (
	"encoding/binary"
	"fmt"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/cast"
	"github.com/chaski-eo/chaski/loader/batch"
)

// of returns the bytes of s, which lies in p.
func (s span) of(p []byte) []byte { return p[s.offset : s.offset+s.length : s.offset+s.length] }

// DecodeShared is what Receiver is compared with: it reads a payload that goes on from head in memory, as EncodeShared
// makes it; nil is no memory. No range may lie in both. The tensors of the batch alias head and memory, which the
// caller must leave alone as long as it uses them; their Data is as aligned as these are. Errors are *fault.Error of
// kind corrupt or unsupported (another version), with an offset from the start of head.
func DecodeShared(head, memory []byte) (*batch.Batch, error) {
	p := head
	if len(p) < sizePrefix {
		return nil, fault.At(fault.Corrupt, "payload", 0, "%d bytes", len(p))
	}
	n := binary.LittleEndian.Uint32(p)
	if uint64(n) > uint64(len(p)-sizePrefix) {
		return nil, fault.At(fault.Corrupt, "payload", 0, "header of %d bytes in a payload of %d", n, len(p))
	}
	h := p[sizePrefix : sizePrefix+int(n)]
	decoder := newDecoder(h, len(p), len(memory))
	batch := decoder.batch()
	decoder.load(batch, func(s span) []byte {
		if len(memory) > 0 && s.offset >= uint64(len(p)) {
			s.offset -= uint64(len(p))
			return s.of(memory)
		}
		return s.of(p)
	})
	if decoder.err != nil {
		return nil, decoder.err
	}
	return batch, nil
}

// Apply is what Receiver is compared with: it does the arithmetic that t.Convert leaves to the receiver, and replaces
// t.DType, t.Data and t.Convert: y = f32(f32(f32(x)*scale) + offset), clipped, rounded to the nearest even of the
// result's dtype (package einops, type Convert), and the fill value wherever the mask is 0. A tensor without Convert is
// left alone. The error names what contradicts the tensor.
func Apply(t *batch.Tensor) error {
	convert := t.Convert
	if convert == nil {
		return nil
	}
	if msg := checkSizes(t, convert, uint64(len(convert.Mask)), convert.Mask != nil); msg != "" {
		return fmt.Errorf("tensor %q: %s", t.Name, msg)
	}
	elems, _ := elements(t.Shape)
	out := cast.Aligned(int(elems) * convert.To.Size())
	converter, err := newConverter(t, out)
	if err != nil {
		return err
	}
	if len(out) > 0 {
		converter.write(t.Data)
	}
	return converted(t, out)
}
