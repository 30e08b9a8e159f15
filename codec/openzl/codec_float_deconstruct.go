package openzl

import "github.com/chaski-eo/chaski/codec/openzl/internal/kernel"

// decodeFloatDeconstruct joins exponents, one byte each, with sign and fraction. The header says
// what they make: 0 float32, 1 bfloat16, 2 float16.
func decodeFloatDeconstruct(c *call) error {
	rest, exponents := c.in[0], c.in[1]
	if len(c.header) != 1 || c.header[0] > 2 {
		return c.fault("header % x is not a type of numbers", c.header)
	}
	if rest.count != exponents.count {
		return c.fault("%d exponents for %d fractions", exponents.count, rest.count)
	}
	kind := c.header[0]
	if want := [3]int{3, 1, 2}[kind]; rest.width != want {
		return c.fault("fractions of %d bytes, type %d has %d", rest.width, kind, want)
	}
	dst, err := c.make(0, [3]int{4, 2, 2}[kind], rest.count)
	if err != nil {
		return err
	}
	switch kind {
	case 0:
		kernel.JoinFloat32(dst, exponents.data, rest.data)
	case 1:
		kernel.JoinBFloat16(dst, exponents.data, rest.data)
	case 2:
		kernel.JoinFloat16(dst, exponents.data, rest.data)
	}
	return nil
}
