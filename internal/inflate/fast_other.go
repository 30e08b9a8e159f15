//go:build !amd64 || purego || twins

package inflate

// fast is block while both slices have room for a turn of its loop.
func (d *Decoder) fast(dst []byte, at int) (int, error) { return d.turns(dst, at) }
