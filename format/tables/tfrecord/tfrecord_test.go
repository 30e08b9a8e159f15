package tfrecord_test

import (
	"encoding/binary"
	"hash/crc32"
	"slices"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/format/tables/tfrecord"
	"github.com/chaski-eo/chaski/source"
)

// record returns a record as TensorFlow writes it.
func record(data []byte) []byte {
	sum := func(b []byte) []byte {
		crc := crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli))
		return binary.LittleEndian.AppendUint32(nil, (crc>>15|crc<<17)+0xa282ead8)
	}
	head := binary.LittleEndian.AppendUint64(nil, uint64(len(data)))
	return slices.Concat(head, sum(head), data, sum(data))
}

func message(number protowire.Number, content []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(nil, number, protowire.BytesType), content)
}

// example returns an example of one feature with a list of values of a kind.
func example(name string, kind tfrecord.Kind, values []byte) []byte {
	feature := message(protowire.Number(kind), values)
	return message(1, message(1, append(message(1, []byte(name)), message(2, feature)...)))
}

// TestTooManyValues promises that a feature of any number of values takes little memory: packed integers, packed
// floats and empty strings.
func TestTooManyValues(t *testing.T) {
	many := make([]byte, 4<<20)
	for kind, list := range map[tfrecord.Kind][]byte{
		tfrecord.Ints:   message(1, many),
		tfrecord.Floats: message(1, many),
		tfrecord.Bytes:  slices.Repeat([]byte{0x0a, 0}, 1<<20),
	} {
		f, err := tfrecord.Parse(message(protowire.Number(kind), list))
		if fault.KindOf(err) != fault.Limit || f.Len() > tfrecord.MaxValues+1 {
			t.Errorf("kind %d: %d values, %v", kind, f.Len(), err)
		}
	}
}

// FuzzRecords reads any file: records lie one behind the other, each is read by its range as the scan had it, and
// errors have a kind. The seed is also the data of a record with right checksums.
func FuzzRecords(f *testing.F) {
	floats := message(1, binary.LittleEndian.AppendUint32(nil, 0x3f800000))
	for _, data := range [][]byte{
		{}, example("label", tfrecord.Ints, message(1, []byte{1, 0x80, 1})), example("w", tfrecord.Floats, floats),
		example("image", tfrecord.Bytes, message(1, []byte("\x89PNG"))),
		example("one", tfrecord.Ints, []byte{0x08, 5}), message(2, nil), {0x0a, 0xff, 0xff, 0xff, 0xff, 0x0f},
	} {
		f.Add(data)
		f.Add(record(data))
		f.Add(append(record(data), record(data)...))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, file := range [][]byte{data, append(record(data), record(data)...)} {
			r, end := source.Memory(file), int64(0)
			err := tfrecord.Scan(t.Context(), r, func(off int64, one []byte) error {
				if off != end+tfrecord.Head {
					t.Fatalf("a record at %d, the last ends at %d", off, end)
				}
				end = off + int64(len(one)) + tfrecord.Tail
				again, err := tfrecord.Read(t.Context(), r, off, int64(len(one)))
				if err != nil || string(again) != string(one) {
					t.Fatalf("%d bytes at %d: %v", len(one), off, err)
				}
				return tfrecord.Features(one, func(_, message []byte) error {
					values, err := tfrecord.Parse(message)
					if err == nil && values.Len() > tfrecord.MaxValues {
						t.Fatalf("%d values", values.Len())
					}
					return err
				})
			})
			if err != nil && fault.KindOf(err) == 0 || err == nil && end != int64(len(file)) {
				t.Fatalf("%d of %d bytes: %v", end, len(file), err)
			}
		}
	})
}
