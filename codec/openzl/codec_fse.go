package openzl

import (
	"encoding/binary"

	"github.com/chaski-eo/chaski/codec/openzl/internal/kernel"
)

// decodeFSE decodes byte symbols with finite state entropy. The first input are the symbols'
// counts.
func decodeFSE(c *call) error {
	counts, src := c.in[0], c.in[1].data
	states, n, err := c.entropyHeader()
	if err != nil {
		return err
	}
	if counts.width != 2 || counts.count > 256 || states != 2 && states != 4 {
		return c.fault("%d counts of %d bytes, %d states", counts.count, counts.width, states)
	}
	var norm [256]int16
	for i := range counts.count {
		norm[i] = int16(binary.LittleEndian.Uint16(counts.data[2*i:]))
	}
	if !c.d.fse.Build(norm[:counts.count]) {
		return c.fault("%d counts are no table", counts.count)
	}
	// The likeliest symbol has all states but one, so even it costs a bit each 2^log times.
	if n>>c.d.fse.Log() > 8*len(src)+int(states) {
		return c.fault("%d symbols in %d bytes", n, len(src))
	}
	dst, err := c.make(0, 1, n)
	if err != nil {
		return err
	}
	if got, ok := c.d.fse.Decode(dst, src, int(states)); !ok || got != n {
		return c.fault("stream does not hold exactly %d symbols", n)
	}
	return nil
}

// decodeFSECounts decodes the counts that FSE tables are made from.
func decodeFSECounts(c *call) error {
	var norm [256]int16
	n, size, ok := kernel.FSECounts(norm[:], c.in[0].data)
	if !ok || size != c.in[0].count {
		return c.fault("%d bytes are no list of counts", c.in[0].count)
	}
	dst, err := c.make(0, 2, n)
	if err != nil {
		return err
	}
	for i, v := range norm[:n] {
		binary.LittleEndian.PutUint16(dst[2*i:], uint16(v))
	}
	return nil
}
