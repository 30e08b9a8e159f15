// Package zstd compresses and decompresses zstd frames (RFC 8878). It decodes with package whole where that is fast and
// with klauspost/compress otherwise, or with the build tag datadog with DataDog/zstd (libzstd through cgo).
// Dictionaries are not supported.
package zstd

import "github.com/chaski-eo/chaski/fault"

const (
	// Spare is how many bytes of capacity past its length dst needs for the fastest decoding. klauspost's fast
	// loop copies 16 bytes at a time, and needs to write past the end in order to copy the last ones.
	Spare = 16
	// blockMax is the largest content of a block (RFC 8878, 3.1.1.2.4). Stopping early saves at least one
	// block only if that much follows the prefix.
	blockMax = 128 << 10
)

// Decompress fills dst with the content of the frames in src, which must have exactly len(dst) bytes, even if src
// claims more. It verifies the checksum of a frame that has one. If the capacity of dst is Spare bytes more than its
// length, or more, all of it may be written to: inexact copies are faster, and libzstd keeps literals there.
func (d *Decoder) Decompress(dst, src []byte) error {
	if cap(dst)-len(dst) < Spare {
		dst = dst[:len(dst):len(dst)]
	}
	switch n, err := d.into(dst, src); {
	case err != nil:
		return &fault.Error{Kind: fault.Corrupt, Part: "zstd", Off: fault.NoOffset, Msg: err.Error(), Err: err}
	case n != len(dst):
		return fault.New(fault.Corrupt, "zstd", "content of %d bytes, %d needed", n, len(dst))
	}
	return nil
}

// DecompressPrefix fills dst[:n] with the first n bytes of the content of the frames in src. len(dst) is
// the size of the whole content. The rest of dst, and its capacity if that is at least Spare bytes more,
// have arbitrary content afterwards. It accepts all that Decompress accepts, and may miss faults after
// the first n bytes, among them a wrong checksum.
func (d *Decoder) DecompressPrefix(dst, src []byte, n int) error {
	if n+blockMax <= len(dst) && d.prefix(dst, src, n) {
		return nil
	}
	return d.Decompress(dst, src)
}
