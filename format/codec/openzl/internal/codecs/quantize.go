package codecs

import "github.com/chaski-eo/chaski/format/codec/openzl/internal/kernel"

// decodeQuantizeOffsets builds numbers from codes and extra bits: code k means 2^k plus k bits.
func decodeQuantizeOffsets(c *Call) error { return decodeQuantize(c, &kernel.OffsetCodes) }

// decodeQuantizeLengths builds numbers from codes and extra bits: codes below 16 mean themselves, and code k
// from 16 on means 2^(k-12) plus k-12 bits.
func decodeQuantizeLengths(c *Call) error { return decodeQuantize(c, &kernel.LengthCodes) }

func decodeQuantize(c *Call, q *kernel.Quantizer) error {
	codes, extra := c.In[0], c.In[1]
	if codes.Width != 1 {
		return c.Corrupt("codes of %d bytes", codes.Width)
	}
	dst, err := c.Make(0, 4, codes.Count)
	if err != nil {
		return err
	}
	if !q.Decode(dst, codes.Data, extra.Data) {
		return c.Corrupt("code out of range or extra bits end early")
	}
	return nil
}
