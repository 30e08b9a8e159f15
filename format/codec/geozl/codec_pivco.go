package geozl

import (
	"encoding/binary"

	"github.com/chaski-eo/chaski/format/codec/geozl/internal/kernel"
	"github.com/chaski-eo/chaski/format/codec/openzl"
	"github.com/chaski-eo/chaski/internal/cast"
	"github.com/chaski-eo/chaski/internal/planes"
)

// Sizes of the header of planar_zigzag_pivco, and the modes of a lane.
const (
	pivcoFixed = 21 // count (8), width (1), samples per row (4), planes (4), bytes per block (4)
	pivcoLane  = 7  // mode (1), bytes of weights (2), bytes of payload (4)
	maxPivco   = 1 << 28
	modePivco  = 0
	modePfor   = 1
)

// decodePlanarZigzagPivco joins the lanes of the numbers, that is all their lowest bytes, then all their
// next ones. Each lane is PivCo Huffman or pfor. It then undoes planar_zigzag.
func decodePlanarZigzagPivco(c *openzl.Call) error {
	header := c.Header
	if len(header) < pivcoFixed || len(header) != pivcoFixed+pivcoLane*int(header[8]) {
		return c.Corrupt("header of %d bytes", len(header))
	}
	count, width := binary.LittleEndian.Uint64(header), int(header[8])
	block := binary.LittleEndian.Uint32(header[17:])
	if !cast.IsWidth(width) || c.In[0].Width != 1 {
		return c.Corrupt("numbers of %d bytes, weights of %d", width, c.In[0].Width)
	}
	lanes := header[pivcoFixed:]
	if count == 0 {
		return noLanes(c, lanes, width)
	}
	if block == 0 || block > maxPivco || count > 1<<40 {
		return c.Corrupt("%d numbers in blocks of %d", count, block)
	}
	numbers := int(count)
	// Before any memory is made, because so far only the header says how many numbers there are.
	if err := checkLanes(c, lanes, numbers); err != nil {
		return err
	}
	shape, err := gridOf(c, binary.LittleEndian.Uint32(header[9:]), header[13:17], numbers)
	if err != nil {
		return err
	}
	dst, err := c.Make(0, width, numbers)
	if err != nil {
		return err
	}
	out := dst
	if width > 1 {
		if out, err = c.Scratch(len(dst)); err != nil {
			return err
		}
	}
	if err := unlane(c, out, lanes, numbers, int(block)); err != nil {
		return err
	}
	if width > 1 {
		planes.Join(dst, out, width)
	}
	planarZigzag.run(dst, dst, width, shape)
	return nil
}

// noLanes makes an empty stream, which has neither weights nor payload.
func noLanes(c *openzl.Call, lanes []byte, width int) error {
	for i, value := range lanes {
		if value != 0 && i%pivcoLane > 0 || value > modePfor {
			return c.Corrupt("lanes of no numbers")
		}
	}
	if c.In[0].Count > 0 || c.In[1].Count > 0 {
		return c.Corrupt("%d weights and %d bytes of no numbers", c.In[0].Count, c.In[1].Count)
	}
	_, err := c.Make(0, width, 0)
	return err
}

// checkLanes checks that the lanes take all weights and all bytes, and that their bytes hold n numbers. A lane
// of a single symbol takes no bytes: what bounds n then is the memory that a frame may take.
func checkLanes(c *openzl.Call, lanes []byte, n int) error {
	weights, payload := c.In[0].Data, c.In[1].Data
	for ; len(lanes) > 0; lanes = lanes[pivcoLane:] {
		count, size := laneSizes(lanes)
		weighted := lanes[0] != modePfor
		fits := count <= len(weights) && size <= len(payload)
		if lanes[0] > modePfor || !fits || !weighted && count > 0 {
			return c.Corrupt("lane of mode %d with %d weights and %d bytes", lanes[0], count, size)
		}
		limit := 8 * size
		if lanes[0] == modePfor {
			limit = kernel.PforBlock / 2 * size
		} else if symbols(weights[:count]) == 1 {
			limit = n
		}
		if n > limit {
			return c.Corrupt("%d numbers in a lane of %d bytes", n, size)
		}
		weights, payload = weights[count:], payload[size:]
	}
	if len(weights) > 0 || len(payload) > 0 {
		return c.Corrupt("%d weights and %d bytes after the last lane", len(weights), len(payload))
	}
	return nil
}

// laneSizes returns the bytes of the weights and of the payload of the first lane.
func laneSizes(lanes []byte) (weights, payload int) {
	return int(binary.LittleEndian.Uint16(lanes[1:])), int(binary.LittleEndian.Uint32(lanes[3:]))
}

// symbols counts the weights of symbols that occur.
func symbols(weights []byte) int {
	count := 0
	for _, weight := range weights {
		if weight > 0 {
			count++
		}
	}
	return count
}

// unlane fills dst with the lanes, n bytes each.
func unlane(c *openzl.Call, dst, lanes []byte, n, block int) error {
	weights, payload := c.In[0].Data, c.In[1].Data
	for ; len(lanes) > 0; lanes = lanes[pivcoLane:] {
		count, size := laneSizes(lanes)
		if lanes[0] == modePivco {
			if err := c.Pivco(dst[:n], weights[:count], payload[:size], block); err != nil {
				return err
			}
		} else if !kernel.Pfor(dst[:n], payload[:size], 1) {
			return c.Corrupt("blocks are not those of %d bytes", n)
		}
		dst, weights, payload = dst[n:], weights[count:], payload[size:]
	}
	return nil
}
