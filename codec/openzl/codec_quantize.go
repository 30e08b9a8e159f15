package openzl

import "github.com/chaski-eo/chaski/codec/openzl/internal/kernel"

// decodeQuantizeOffsets makes numbers of codes and extra bits: code k stands for 2^k plus k bits.
func decodeQuantizeOffsets(c *call) error { return decodeQuantize(c, &kernel.OffsetCodes) }

// decodeQuantizeLengths makes numbers of codes and extra bits: codes below 16 stand for themselves,
// code k from there on for 2^(k-12) plus k-12 bits.
func decodeQuantizeLengths(c *call) error { return decodeQuantize(c, &kernel.LengthCodes) }

func decodeQuantize(c *call, q *kernel.Quantizer) error {
	codes, extra := c.in[0], c.in[1]
	if codes.width != 1 {
		return c.fault("codes of %d bytes", codes.width)
	}
	dst, err := c.make(0, 4, codes.count)
	if err != nil {
		return err
	}
	if !q.Decode(dst, codes.data, extra.data) {
		return c.fault("code out of range or extra bits end early")
	}
	return nil
}
