//go:build !amd64 || purego || twins

package inflate

import "hash/adler32"

// fast is block while both slices have room for a turn of its loop.
func (d *Decoder) fast(dst []byte, at int) (int, error) { return d.turns(dst, at) }

// Adler32 returns the checksum of a zlib stream (RFC 1950, section 9).
func Adler32(p []byte) uint32 { return adler32.Checksum(p) }
