//go:build datadog

package zstd

func (d *Decoder) intoSpare(dst, src []byte) (int, error) { return d.into(dst, src) }
