package codecs

import (
	"encoding/binary"

	"github.com/chaski-eo/chaski/internal/fse"
)

// decodeFSE decodes byte symbols with finite state entropy. The first input holds the counts of the symbols.
func decodeFSE(c *Call) error {
	counts, src := c.In[0], c.In[1].Data
	states, symbols, err := c.entropyHeader()
	if err != nil {
		return err
	}
	if counts.Width != 2 || counts.Count > 256 || states != 2 && states != 4 {
		return c.Corrupt("%d counts of %d bytes, %d states", counts.Count, counts.Width, states)
	}
	var norm [256]int16
	for i := range counts.Count {
		norm[i] = int16(binary.LittleEndian.Uint16(counts.Data[2*i:]))
	}
	if !c.w.fse.Build(norm[:counts.Count]) {
		return c.Corrupt("%d counts are not a table", counts.Count)
	}
	// The likeliest symbol has all states but one, so even it costs a bit every 2^log times. This
	// bounds the number of symbols by the bytes present.
	if symbols>>c.w.fse.Log() > 8*len(src)+int(states) {
		return c.Corrupt("%d symbols in %d bytes", symbols, len(src))
	}
	dst, err := c.Make(0, 1, symbols)
	if err != nil {
		return err
	}
	if got, ok := c.w.fse.Decode(dst, src, int(states)); !ok || got != symbols {
		return c.Corrupt("stream does not hold exactly %d symbols", symbols)
	}
	return nil
}

// decodeFSECounts decodes the counts from which FSE tables are built.
func decodeFSECounts(c *Call) error {
	var norm [256]int16
	symbols, size, ok := fse.Counts(norm[:], c.In[0].Data)
	if !ok || size != c.In[0].Count {
		return c.Corrupt("%d bytes are not a list of counts", c.In[0].Count)
	}
	dst, err := c.Make(0, 2, symbols)
	if err != nil {
		return err
	}
	for i, count := range norm[:symbols] {
		binary.LittleEndian.PutUint16(dst[2*i:], uint16(count))
	}
	return nil
}
