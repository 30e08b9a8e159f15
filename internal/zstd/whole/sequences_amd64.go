//go:build amd64 && !purego && !twins

package whole

import "golang.org/x/sys/cpu"

// hasLoop says whether the loops in assembly can run here.
var hasLoop = cpu.X86.HasBMI1 && cpu.X86.HasBMI2 && cpu.X86.HasAVX2

// pattern is how a match of a short offset goes on: which bytes of the last ones come next, and how far from one such
// row of 16 to the next the same row fits.
type pattern struct {
	shuffle [16]uint8
	step    uint64
	_       uint64
}

// patterns has the pattern of each offset below 16.
var patterns = func() (p [16]pattern) {
	for offset := range p {
		for i := range p[offset].shuffle {
			if offset > 0 {
				p[offset].shuffle[i] = uint8(i % offset)
				p[offset].step = uint64(16 - 16%offset)
			}
		}
	}
	return p
}()

// sequences decodes sequences while r.left is over 1, at least one, and executes the one before each. It returns why it
// ended. p are the patterns.
//
//go:noescape
func sequences(r *run, p *[16]pattern) int

// loop decodes and executes sequences by the loop in assembly, if there is one. It returns why it ended.
// r.left is over 1.
func (r *run) loop() int {
	if !hasLoop || len(r.literals) == 0 {
		return notDecoded
	}
	return sequences(r, &patterns)
}
