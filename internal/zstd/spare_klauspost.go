//go:build !datadog

package zstd

import "github.com/chaski-eo/chaski/internal/zstd/whole"

func (d *Decoder) intoSpare(dst, src []byte) (int, error) {
	if whole.Fast() && d.own.Decode(dst[:len(dst)+Spare], len(dst), src) {
		return len(dst), nil
	}
	out, err := d.d.DecodeAll(src, dst[:0:len(dst)+Spare])
	return len(out), err
}
