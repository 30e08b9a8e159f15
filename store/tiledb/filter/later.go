package filter

import (
	"bytes"
	"crypto/md5"
	"crypto/sha256"
	"encoding/binary"
	"math"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/cast"
)

// check verifies the checksums of a chunk. Its metadata is two counts, for each part of the metadata and then of the
// data its length as uint64 and its checksum, and after these the metadata of the filters before it, unchanged.
func (d *Decoder) check(f step, dst, meta, data []byte, final int) (m, out []byte, err error) {
	size := md5.Size
	if f.ID == SHA256 {
		size = sha256.Size
	}
	nmeta, _ := u32(&meta)
	ndata, ok := u32(&meta)
	count := uint64(nmeta) + uint64(ndata)
	entry := 8 + size
	if !ok || count > uint64(len(meta)/entry) {
		return nil, nil, corrupt("metadata", "%d and %d checksums in %d bytes", nmeta, ndata, len(meta))
	}
	sums, m := meta[:int(count)*entry], meta[int(count)*entry:]
	restMeta, restData := m, data
	for i := range int(count) {
		rest := &restData
		if i < int(nmeta) {
			rest = &restMeta
		}
		length := cast.Uint(sums[i*entry:], 8)
		if length > uint64(len(*rest)) {
			return nil, nil, corrupt("metadata", "checksum %d is of %d bytes, %d are left", i, length, len(*rest))
		}
		part := (*rest)[:length]
		*rest = (*rest)[length:]
		if !bytes.Equal(digest(f.ID, part), sums[i*entry+8:(i+1)*entry]) {
			return nil, nil, corrupt("", "the checksum of part %d of %d does not match", i, count)
		}
	}
	if len(restData) > 0 {
		return nil, nil, corrupt("metadata", "%d bytes have no checksum", len(restData))
	}
	if dst == nil {
		return m, data, nil
	}
	if out, err = d.room(dst, int64(len(data)), final); err == nil {
		copy(out, data)
	}
	return m, out, err
}

func digest(id ID, b []byte) []byte {
	if id == MD5 {
		s := md5.Sum(b)
		return s[:]
	}
	s := sha256.Sum256(b)
	return s[:]
}

// partSizes reads the count of parts and their lengths from the front of the metadata, and checks
// that they add up to the data.
func partSizes(meta *[]byte, data []byte) (sizes []byte, err error) {
	count, ok := u32(meta)
	if !ok || uint64(count) > uint64(len(*meta)/4) {
		return nil, corrupt("metadata", "%d parts in %d bytes", count, len(*meta))
	}
	sizes, _ = take(meta, 4*count)
	var sum uint64
	for i := 0; i < len(sizes); i += 4 {
		sum += uint64(binary.LittleEndian.Uint32(sizes[i:]))
	}
	if sum != uint64(len(data)) {
		return nil, corrupt("metadata", "parts of %d bytes, the data has %d", sum, len(data))
	}
	return sizes, nil
}

func (d *Decoder) unxor(f step, dst, meta, data []byte, final int) (m, out []byte, err error) {
	size := f.e.Size
	sizes, err := partSizes(&meta, data)
	if err != nil {
		return nil, nil, err
	}
	if out, err = d.room(dst, int64(len(data)), final); err != nil {
		return nil, nil, err
	}
	copy(out, data)
	target := out
	for ; len(sizes) > 0; sizes = sizes[4:] {
		part, _ := take(&target, binary.LittleEndian.Uint32(sizes))
		if len(part)%size != 0 {
			return nil, nil, corrupt("metadata", "a part of %d bytes in values of %d", len(part), size)
		}
		for i := size; i < len(part); i++ {
			part[i] ^= part[i-size]
		}
	}
	return meta, out, nil
}

// unscale makes floating-point numbers of integers: v·scale + offset, computed as float64 for
// float64, and for float32 from v rounded to float32, as TileDB does.
func (d *Decoder) unscale(f step, dst, meta, data []byte, final int) (m, out []byte, err error) {
	sizes, err := partSizes(&meta, data)
	if err != nil {
		return nil, nil, err
	}
	count := len(data) / f.Width
	for s := sizes; len(s) > 0; s = s[4:] {
		if binary.LittleEndian.Uint32(s)%uint32(f.Width) != 0 {
			return nil, nil, corrupt("metadata", "a part that is not whole integers of %d bytes", f.Width)
		}
	}
	size := f.e.Size
	if size != 4 && size != 8 {
		return nil, nil, fault.New(fault.Unsupported, "", "of values of %d bytes", size)
	}
	if out, err = d.room(dst, int64(count)*int64(size), final); err != nil {
		return nil, nil, err
	}
	for i := range count {
		number := extend(data[i*f.Width:], f.Width, true)
		if size == 4 {
			x := float32(float64(f.Scale*float64(float32(number))) + f.Offset)
			binary.LittleEndian.PutUint32(out[4*i:], math.Float32bits(x))
		} else {
			x := float64(f.Scale*float64(number)) + f.Offset
			binary.LittleEndian.PutUint64(out[8*i:], math.Float64bits(x))
		}
	}
	return meta, out, nil
}
