package codecs

import "github.com/chaski-eo/chaski/format/codec/openzl/internal/kernel"

// decodeFloatDeconstruct joins exponents, one byte each, with signs and fractions. The header is the type of
// the result: 0 float32, 1 bfloat16, 2 float16.
func decodeFloatDeconstruct(c *Call) error {
	rest, exponents := c.In[0], c.In[1]
	if len(c.Header) != 1 || c.Header[0] > 2 {
		return c.Corrupt("header % x is not a type of numbers", c.Header)
	}
	if rest.Count != exponents.Count {
		return c.Corrupt("%d exponents for %d fractions", exponents.Count, rest.Count)
	}
	kind := c.Header[0]
	if want := [3]int{3, 1, 2}[kind]; rest.Width != want {
		return c.Corrupt("fractions of %d bytes, type %d has %d", rest.Width, kind, want)
	}
	dst, err := c.Make(0, [3]int{4, 2, 2}[kind], rest.Count)
	if err != nil {
		return err
	}
	switch kind {
	case 0:
		kernel.JoinFloat32(dst, exponents.Data, rest.Data)
	case 1:
		kernel.JoinBFloat16(dst, exponents.Data, rest.Data)
	case 2:
		kernel.JoinFloat16(dst, exponents.Data, rest.Data)
	}
	return nil
}
