//go:build !purego && !twins

package xz

// number decodes bits: see numberPlain.
func (r *coder) number(probs []uint16, limit, other, compared uint32) uint32 {
	_ = probs[limit+2*compared-1]
	return numberFast(r, &probs[0], limit, other, compared)
}

//go:noescape
func numberFast(r *coder, probs *uint16, limit, other, compared uint32) uint32
