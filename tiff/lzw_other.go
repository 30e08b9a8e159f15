//go:build !amd64 || purego || twins

package tiff

// some decodes some codes, at least one. It reports whether the stream goes on.
func (d *lzwDecoder) some(dst, src []byte, need int) bool { return d.steps(dst, src, need, len(dst)) }
