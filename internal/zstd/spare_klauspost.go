//go:build !datadog

package zstd

func (d *Decoder) intoSpare(dst, src []byte) (int, error) {
	out, err := d.d.DecodeAll(src, dst[:0:len(dst)+Spare])
	return len(out), err
}
