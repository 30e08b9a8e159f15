//go:build !datadog

package zstd

import (
	"io"
	"slices"

	"github.com/chaski-eo/chaski/internal/zstd/whole"
)

// prefix fills dst[:n] with the start of the content, block by block, or reports false.
func (d *Decoder) prefix(dst, src []byte, n int) bool {
	if whole.Fast() && d.own.DecodePrefix(slices.Clip(dst), len(dst), n, src) {
		return true
	}
	if d.stream == nil {
		d.stream = newStream(streamWindow)
	}
	d.in.b = src
	defer func() { d.in.b = nil }()
	if d.stream.Reset(&d.in) != nil {
		return false
	}
	_, err := io.ReadFull(d.stream, dst[:n])
	return err == nil
}
