//go:build !amd64 || purego || twins

package xz

// number decodes bits: see numberPlain.
func (r *coder) number(probs []uint16, limit, other, compared uint32) uint32 {
	return r.numberPlain(probs, limit, other, compared)
}
