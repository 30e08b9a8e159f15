package kernel

import "encoding/binary"

// The JoinFloat functions build numbers from exponents, one byte each, and the rest: the fraction shifted up
// by one, with the sign in the lowest bit.

// JoinFloat32 takes three bytes per number from rest.
func JoinFloat32(dst, exponents, rest []byte) {
	dst, rest = dst[:4*len(exponents)], rest[:3*len(exponents)]
	for i, exponent := range exponents {
		bytes := rest[3*i : 3*i+3]
		shifted := uint32(bytes[0]) | uint32(bytes[1])<<8 | uint32(bytes[2])<<16
		binary.LittleEndian.PutUint32(dst[4*i:4*i+4], shifted<<31|uint32(exponent)<<23|shifted>>1)
	}
}

// JoinBFloat16 takes one byte per number from rest.
func JoinBFloat16(dst, exponents, rest []byte) {
	dst, rest = dst[:2*len(exponents)], rest[:len(exponents)]
	for i, exponent := range exponents {
		shifted := uint16(rest[i])
		binary.LittleEndian.PutUint16(dst[2*i:2*i+2], shifted<<15|uint16(exponent)<<7|shifted>>1)
	}
}

// JoinFloat16 takes two bytes per number from rest.
func JoinFloat16(dst, exponents, rest []byte) {
	dst, rest = dst[:2*len(exponents)], rest[:2*len(exponents)]
	for i, exponent := range exponents {
		shifted := binary.LittleEndian.Uint16(rest[2*i : 2*i+2])
		binary.LittleEndian.PutUint16(dst[2*i:2*i+2], shifted<<15|uint16(exponent)<<10|shifted>>1)
	}
}
