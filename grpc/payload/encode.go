package payload

import (
	"math"
	"slices"

	flatbuffers "github.com/google/flatbuffers/go"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/grpc/internal/wire"
	"github.com/chaski-eo/chaski/internal/cast"
	"github.com/chaski-eo/chaski/loader/batch"
	chaskiv1 "github.com/chaski-eo/chaski/proto/chaski/v1"
	"github.com/chaski-eo/chaski/proto/chaski/v1/fbs"
)

// zeros pads segments to Align. It is never written.
var zeros [Align]byte

// span is a range of the payload, in bytes.
type span struct{ offset, length uint64 }

// spans are the ranges of one tensor.
type spans struct{ data, offsets, mask span }

// Encode returns the payload of b as segments to be sent one after the other, and their length in
// bytes. The first segment is the header; the others alias the tensors of b, with zeros between
// them, and are valid until b is released.
func Encode(b *batch.Batch) (segments [][]byte, total int) { return layOut(b, nil) }

// EncodeShared returns the head of b's payload whose rest is memory, for which InMemory holds: all
// of the payload that does not lie in memory. Offsets from the length of head on count into memory.
func EncodeShared(b *batch.Batch, memory []byte) (head []byte) {
	segments, _ := layOut(b, memory)
	return slices.Concat(segments...)
}

// layOut returns the payload of b but for memory, in which some of its tensors may lie, and which comes last.
func layOut(b *batch.Batch, memory []byte) (segments [][]byte, total int) {
	// The length of the header does not depend on the ranges in it: fixed-size structs, and no
	// field that is left out for its value. So it is built once to learn where the tensors begin.
	places := make([]spans, len(b.Tensors))
	size := len(header(b, places, math.MaxUint64, 1024+18*b.Rows))

	// The size is rounded up, so the first tensor is aligned, too.
	head := make([]byte, roundUp(size))
	segments, total = [][]byte{head}, len(head)
	place := func(p []byte) span {
		placed := span{uint64(total), uint64(len(p))}
		if _, in := cast.Offset(memory, p); !in && len(p) > 0 {
			segments = append(segments, p)
			if pad := roundUp(len(p)) - len(p); pad > 0 {
				segments = append(segments, zeros[:pad])
			}
			total += roundUp(len(p))
		}
		return placed
	}
	for i := range b.Tensors {
		tensor := &b.Tensors[i]
		places[i].data = place(tensor.Data)
		places[i].offsets = place(tensor.Offsets)
		if tensor.Convert != nil {
			places[i].mask = place(tensor.Convert.Mask)
		}
	}
	for i := range b.Tensors {
		tensor := &b.Tensors[i]
		if offset, in := cast.Offset(memory, tensor.Data); in {
			places[i].data.offset = uint64(total + offset)
		}
		if tensor.Convert == nil {
			continue
		}
		if offset, in := cast.Offset(memory, tensor.Convert.Mask); in {
			places[i].mask.offset = uint64(total + offset)
		}
	}
	copy(head, header(b, places, uint64(total+len(memory)), size))
	return segments, total
}

// header returns the size-prefixed header of b.
func header(b *batch.Batch, places []spans, length uint64, sizeHint int) []byte {
	builder := flatbuffers.NewBuilder(sizeHint)
	valid := vectorOf(builder, flatbuffers.SizeBool, b.Valid, builder.PrependBool)
	positions := int64s(builder, b.Positions)
	samples := int64s(builder, b.Samples)

	bads := make([]flatbuffers.UOffsetT, len(b.Bad))
	for i, bad := range b.Bad {
		bads[i] = badRow(builder, bad)
	}
	tensors := make([]flatbuffers.UOffsetT, len(b.Tensors))
	for i := range b.Tensors {
		tensors[i] = tensor(builder, &b.Tensors[i], places[i])
	}
	bad := offsets(builder, bads)
	vector := offsets(builder, tensors)

	fbs.BatchStart(builder)
	fbs.BatchAddVersion(builder, Version)
	fbs.BatchAddEpoch(builder, b.Epoch)
	fbs.BatchAddFirst(builder, b.First)
	fbs.BatchAddRows(builder, int32(b.Rows))
	fbs.BatchAddValid(builder, valid)
	fbs.BatchAddPositions(builder, positions)
	fbs.BatchAddSamples(builder, samples)
	fbs.BatchAddBad(builder, bad)
	fbs.BatchAddTensors(builder, vector)
	fbs.BatchAddLength(builder, length)
	fbs.FinishSizePrefixedBatchBuffer(builder, fbs.BatchEnd(builder))
	return builder.FinishedBytes()
}

func badRow(f *flatbuffers.Builder, b batch.Bad) flatbuffers.UOffsetT {
	// The fields of the error travel as fields of a Fault, so no receiver has to read its text.
	reason := &chaskiv1.Fault{Offset: fault.NoOffset}
	if b.Err != nil {
		reason = wire.NewFault(0, b.Err)
	}
	if reason.Kind == wire.Internal {
		reason.Kind = "" // an error without a kind, which NewFault calls internal
	}
	message := f.CreateString(reason.Message)
	// Offset 0 leaves a string out.
	var parts [4]flatbuffers.UOffsetT
	for i, s := range []string{fault.Fit(b.Source), reason.Kind, reason.File, reason.Part} {
		if s != "" {
			parts[i] = f.CreateString(s)
		}
	}
	sample, instead := sampleRef(f, b.Sample), sampleRef(f, b.Instead)
	fbs.BadStart(f)
	fbs.BadAddRow(f, int32(b.Row))
	fbs.BadAddPosition(f, b.Position)
	fbs.BadAddMessage(f, message)
	fbs.BadAddSource(f, parts[0])
	fbs.BadAddSample(f, sample)
	fbs.BadAddInstead(f, instead)
	fbs.BadAddKind(f, parts[1])
	fbs.BadAddFile(f, parts[2])
	fbs.BadAddPart(f, parts[3])
	fbs.BadAddOffset(f, reason.Offset)
	return fbs.BadEnd(f)
}

// sampleRef returns 0, which is left out, for nil.
func sampleRef(f *flatbuffers.Builder, s *batch.SampleRef) flatbuffers.UOffsetT {
	if s == nil {
		return 0
	}
	id := f.CreateString(fault.Fit(s.ID))
	fbs.SampleRefStart(f)
	fbs.SampleRefAddIndex(f, s.Index)
	fbs.SampleRefAddRow(f, s.Row)
	fbs.SampleRefAddId(f, id)
	return fbs.SampleRefEnd(f)
}

func tensor(f *flatbuffers.Builder, t *batch.Tensor, at spans) flatbuffers.UOffsetT {
	names := make([]flatbuffers.UOffsetT, len(t.Axes))
	for i, a := range t.Axes {
		names[i] = f.CreateString(a)
	}
	axes := offsets(f, names)
	shape := int64s(f, t.Shape)
	name := f.CreateString(t.Name)
	var convert flatbuffers.UOffsetT
	if t.Convert != nil {
		convert = conversion(f, t.Convert, at.mask)
	}
	fbs.TensorStart(f)
	fbs.TensorAddName(f, name)
	fbs.TensorAddKind(f, fbs.Kind(t.Kind))
	fbs.TensorAddDtype(f, byte(t.DType))
	fbs.TensorAddAxes(f, axes)
	fbs.TensorAddShape(f, shape)
	fbs.TensorAddData(f, fbs.CreateSpan(f, at.data.offset, at.data.length))
	if t.Kind != batch.Dense {
		fbs.TensorAddOffsets(f, fbs.CreateSpan(f, at.offsets.offset, at.offsets.length))
	}
	if t.Convert != nil {
		fbs.TensorAddConvert(f, convert)
	}
	return fbs.TensorEnd(f)
}

func conversion(f *flatbuffers.Builder, c *batch.Convert, mask span) flatbuffers.UOffsetT {
	scale := float32s(f, c.Scale)
	offset := float32s(f, c.Offset)
	fbs.ConvertStart(f)
	fbs.ConvertAddTo(f, byte(c.To))
	fbs.ConvertAddScale(f, scale)
	fbs.ConvertAddOffset(f, offset)
	fbs.ConvertAddBandAxis(f, int32(c.BandAxis))
	fbs.ConvertAddClip(f, c.Clip)
	fbs.ConvertAddLo(f, c.Lo)
	fbs.ConvertAddHi(f, c.Hi)
	fbs.ConvertAddFill(f, c.Fill)
	if c.Mask != nil {
		fbs.ConvertAddMask(f, fbs.CreateSpan(f, mask.offset, mask.length))
	}
	return fbs.ConvertEnd(f)
}

// vectorOf writes a vector, whose elements have size bytes, by a method of f that prepends one.
func vectorOf[T any](f *flatbuffers.Builder, size int, v []T, prepend func(x T)) flatbuffers.UOffsetT {
	f.StartVector(size, len(v), size)
	for _, x := range slices.Backward(v) { // builders fill vectors from the back
		prepend(x)
	}
	return f.EndVector(len(v))
}

func int64s(f *flatbuffers.Builder, v []int64) flatbuffers.UOffsetT {
	return vectorOf(f, flatbuffers.SizeInt64, v, f.PrependInt64)
}

func float32s(f *flatbuffers.Builder, v []float32) flatbuffers.UOffsetT {
	return vectorOf(f, flatbuffers.SizeFloat32, v, f.PrependFloat32)
}

func offsets(f *flatbuffers.Builder, v []flatbuffers.UOffsetT) flatbuffers.UOffsetT {
	return vectorOf(f, flatbuffers.SizeUOffsetT, v, f.PrependUOffsetT)
}

// InMemory reports whether tensors of b lie in memory, all aligned, as their masks.
func InMemory(b *batch.Batch, memory []byte) bool {
	some := false
	for i := range b.Tensors {
		tensor := &b.Tensors[i]
		if tensor.Convert != nil {
			if offset, in := cast.Offset(memory, tensor.Convert.Mask); in && offset%Align != 0 {
				return false
			}
		}
		if offset, in := cast.Offset(memory, tensor.Data); in {
			if offset%Align != 0 {
				return false
			}
			some = true
		}
	}
	return some
}
