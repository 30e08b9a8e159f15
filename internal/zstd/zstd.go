// Package zstd is the one place that compresses and decompresses zstd frames (RFC 8878). The decoder behind it is
// klauspost/compress, or DataDog/zstd (libzstd through cgo) with the build tag datadog.
package zstd

import "github.com/chaski-eo/chaski/fault"

// Decompress fills dst with the content of the frames in src, which must be exactly len(dst) bytes.
// However much src claims or would produce, no more than len(dst) bytes are written or allocated.
// A frame's content checksum is verified where there is one.
func (d *Decoder) Decompress(dst, src []byte) error {
	n, err := d.into(dst, src)
	return result(n, len(dst), err)
}

// Spare is how many bytes of capacity past its length DecompressSpare needs of dst.
const Spare = 16

// DecompressSpare is Decompress for a dst whose capacity is at least Spare bytes more than its
// length. All of the capacity may be written to, however much it is: copies that need not be exact are
// faster, and libzstd keeps literals there.
func (d *Decoder) DecompressSpare(dst, src []byte) error {
	n, err := d.intoSpare(dst, src)
	return result(n, len(dst), err)
}

// DecompressPrefix fills dst[:n] with the first n bytes of the content of the frames in src. len(dst)
// is the size of the whole content; the rest of dst, and its capacity where that is at least Spare bytes
// more, may be overwritten with anything. What Decompress accepts is accepted; what is wrong
// behind the first n bytes, a checksum among it, may go unseen.
func (d *Decoder) DecompressPrefix(dst, src []byte, n int) error {
	if n+blockMax <= len(dst) && d.prefix(dst, src, n) {
		return nil
	}
	if cap(dst)-len(dst) >= Spare {
		return d.DecompressSpare(dst, src)
	}
	return d.Decompress(dst, src)
}

// blockMax is the most that a block holds: with as much behind a prefix, a block at least is saved.
const blockMax = 128 << 10

func result(n, want int, err error) error {
	switch {
	case err != nil:
		return &fault.Error{Kind: fault.Corrupt, Part: "zstd", Off: fault.NoOffset, Msg: err.Error(), Err: err}
	case n != want:
		return fault.New(fault.Corrupt, "zstd", fault.NoOffset, "content of %d bytes, %d needed", n, want)
	}
	return nil
}
