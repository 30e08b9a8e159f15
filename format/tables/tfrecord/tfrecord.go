// Package tfrecord reads TFRecord files of tf.Example, without TensorFlow: records with checksums, each a message of
// Protocol Buffers with named features, which are lists of bytes, floats or integers.
package tfrecord

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"math"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/source"
)

const (
	// Head is how many bytes come before the data of a record: their length, u64, and its checksum; Tail is how many
	// follow: the checksum of the data.
	Head = 12
	Tail = 4
	// MaxRecord bounds the data of a record in bytes, because a sample has all of it in memory.
	MaxRecord = 256 << 20

	// MaxValues bounds the values of a feature.
	MaxValues = 1 << 16

	part      = "TFRecord"
	buffer    = 256 << 10 // bytes that Scan reads at a time
	maskDelta = 0xa282ead8
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// masked returns the checksum of bytes as records have it: CRC-32C, rotated, plus a constant.
func masked(b []byte) uint32 {
	sum := crc32.Checksum(b, castagnoli)
	return (sum>>15 | sum<<17) + maskDelta
}

// check compares the checksum behind b with b, which lie at an offset of the file.
func check(b []byte, stored []byte, what string, off int64) error {
	if sum, want := masked(b), binary.LittleEndian.Uint32(stored); sum != want {
		return fault.At(fault.Corrupt, part, off,
			"the checksum of the %s of a record is %08x, the file says %08x", what, sum, want)
	}
	return nil
}

// Scan visits the records of a file in order, and checks their checksums: data is valid during the call, and lies at
// off.
func Scan(ctx context.Context, r source.Reader, visit func(off int64, data []byte) error) error {
	in, size := bufio.NewReaderSize(source.Sequential(ctx, r), buffer), r.Size()
	var head [Head]byte
	var data []byte
	for off := int64(0); off < size; {
		if size-off < Head+Tail {
			return fault.At(fault.Corrupt, part, off, "the file ends within a record")
		}
		if _, err := io.ReadFull(in, head[:]); err != nil {
			return failed(err, off)
		}
		if off == 0 && head[0] == 0x1f && head[1] == 0x8b {
			return fault.At(fault.Unsupported, part, off, "its records are compressed by gzip: unpack it")
		}
		if err := check(head[:8], head[8:], "length", off); err != nil {
			return err
		}
		length := binary.LittleEndian.Uint64(head[:])
		off += Head
		switch {
		case length > uint64(size-off-Tail):
			return fault.At(fault.Corrupt, part, off, "a record of %d bytes in a file of %d", length, size)
		case length > MaxRecord:
			return fault.At(fault.Limit, part, off, "a record of %d bytes, at most %d", length, MaxRecord)
		}
		var err error
		if data, err = fill(in, data[:0], int(length)+Tail); err != nil {
			return failed(err, off)
		}
		if err := check(data[:length], data[length:], "data", off); err != nil {
			return err
		}
		if err := visit(off, data[:length]); err != nil {
			return err
		}
		off += int64(length) + Tail
	}
	return nil
}

// fill appends n bytes to b, which grows as they come: the length is only claimed.
func fill(in io.Reader, b []byte, n int) ([]byte, error) {
	for begin := 0; begin < n; begin = len(b) {
		b = append(b, make([]byte, min(n-begin, max(buffer, begin)))...)
		if _, err := io.ReadFull(in, b[begin:]); err != nil {
			return b, err
		}
	}
	return b, nil
}

// failed returns the error of a read, which is one of the source unless the file became shorter.
func failed(err error, off int64) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fault.At(fault.Corrupt, part, off, "the file ends within a record")
	}
	return err
}

// Read returns the data of the record at an offset that Scan gave, of n bytes, and checks them.
func Read(ctx context.Context, r source.Reader, off, n int64) ([]byte, error) {
	b, err := source.Read(ctx, r, off, n+Tail)
	if err != nil {
		return nil, err
	}
	return b[:n:n], check(b[:n], b[n:], "data", off)
}

// Kind is the kind of the values of a feature.
type Kind uint8

// Kinds, by the numbers of their fields in the message Feature.
const (
	Bytes  Kind = 1
	Floats Kind = 2
	Ints   Kind = 3
)

// Feature is the values of a feature: Bytes, Floats or Ints, as Kind says. Kind 0 has none.
type Feature struct {
	Kind   Kind
	Bytes  [][]byte // parts of the record
	Floats []float32
	Ints   []int64
}

// Len returns the number of values.
func (f *Feature) Len() int { return len(f.Bytes) + len(f.Floats) + len(f.Ints) }

// Features calls visit with the name and the message of each feature of an example. Both are parts of data.
func Features(data []byte, visit func(name, feature []byte) error) error {
	return fields(data, func(number uint64, features []byte, _ uint64) error {
		if number != 1 {
			return fault.New(fault.Unsupported, part, "a record is no tf.Example, which has features alone: a "+
				"tf.SequenceExample has lists of them")
		}
		return fields(features, func(_ uint64, entry []byte, _ uint64) error {
			var name, feature []byte
			err := fields(entry, func(number uint64, value []byte, _ uint64) error {
				if number == 1 {
					name = value
				} else {
					feature = value
				}
				return nil
			})
			if err != nil {
				return err
			}
			return visit(name, feature)
		})
	})
}

// Parse returns the values of a feature from its message.
func Parse(message []byte) (f Feature, err error) {
	err = fields(message, func(number uint64, list []byte, _ uint64) error {
		if f = (Feature{Kind: Kind(number)}); number == 0 || number > uint64(Ints) {
			return fault.New(fault.Unsupported, part, "a feature with values of field %d", number)
		}
		return fields(list, func(_ uint64, packed []byte, one uint64) error {
			switch {
			case f.Kind == Bytes:
				f.Bytes = append(f.Bytes, packed)
			case packed == nil && f.Kind == Ints:
				f.Ints = append(f.Ints, int64(one))
			case packed == nil:
				f.Floats = append(f.Floats, math.Float32frombits(uint32(one)))
			case f.Kind == Floats && len(packed)%4 != 0:
				return fault.New(fault.Corrupt, part, "floats in %d bytes", len(packed))
			}
			for ; f.Kind == Floats && len(packed) > 0 && len(f.Floats) <= MaxValues; packed = packed[4:] {
				f.Floats = append(f.Floats, math.Float32frombits(binary.LittleEndian.Uint32(packed)))
			}
			for f.Kind == Ints && len(packed) > 0 {
				v, n := binary.Uvarint(packed)
				if n <= 0 {
					return errCut()
				}
				f.Ints, packed = append(f.Ints, int64(v)), packed[n:]
				if len(f.Ints) > MaxValues {
					break
				}
			}
			if f.Len() > MaxValues {
				return fault.New(fault.Limit, part, "a feature of over %d values", MaxValues)
			}
			return nil
		})
	})
	return f, err
}

// Wire types of fields of messages.
const (
	wireVarint  = 0
	wireBytes   = 2
	wireFixed32 = 5
)

// fields calls visit with the fields of a message: their bytes, or nil and their number.
func fields(message []byte, visit func(number uint64, value []byte, one uint64) error) error {
	for len(message) > 0 {
		tag, n := binary.Uvarint(message)
		var value []byte
		var one uint64
		if n > 0 {
			message = message[n:]
			switch tag & 7 {
			case wireVarint:
				one, n = binary.Uvarint(message)
			case wireFixed32:
				if n = -1; len(message) >= 4 {
					one, n = uint64(binary.LittleEndian.Uint32(message)), 4
				}
			case wireBytes:
				if one, n = binary.Uvarint(message); n > 0 {
					if message = message[n:]; one > uint64(len(message)) {
						return errCut()
					}
					n = int(one)
					value = message[:n:n]
				} else {
					n = -1
				}
			default:
				return fault.New(fault.Unsupported, part, "a record is no tf.Example")
			}
		}
		if n < 0 || n == 0 && value == nil {
			return errCut()
		}
		message = message[n:]
		if err := visit(tag>>3, value, one); err != nil {
			return err
		}
	}
	return nil
}

func errCut() error { return fault.New(fault.Corrupt, part, "a message is cut off") }
