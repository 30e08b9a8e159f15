package openzl

import (
	"math"
	"strconv"

	"github.com/chaski-eo/chaski/codec/openzl/internal/codecs"
	"github.com/chaski-eo/chaski/codec/openzl/internal/wire"
)

// Info describes a frame without decoding it.
type Info struct {
	FormatVersion   int
	Outputs         []Type
	Sizes           []int    // bytes of each output, strings without their lengths
	Codecs          []string // names of the standard codecs, "custom ID" of the others, in order of appearance
	Chunks          int
	ContentChecksum bool // chunks have a checksum of their content
	ChunkChecksum   bool // chunks carry a checksum of their stored bytes
	Comment         []byte
}

// Inspect reads the headers of a frame. It verifies the checksum of the header but decodes nothing, so that
// the frame may still be corrupt or need codecs that are not supported. It returns the same errors as Decode.
func Inspect(frame []byte) (Info, error) {
	var h frameHeader
	var k chunk
	c := wire.Cursor{B: frame}
	if err := h.parse(&c, math.MaxInt); err != nil {
		return Info{}, err
	}
	info := Info{FormatVersion: h.version, Outputs: h.types, Sizes: h.sizes}
	if len(h.comment) > 0 {
		info.Comment = append(info.Comment, h.comment...)
	}
	seen := map[string]bool{}
	for {
		start := c.Off
		end, err := h.ended(&c, info.Chunks)
		if err != nil {
			return Info{}, err
		}
		if end {
			break
		}
		if err := k.parse(&c, &h); err != nil {
			return Info{}, inChunk(err, info.Chunks, start)
		}
		info.Chunks++
		for _, nd := range k.nodes {
			if name := codecName(nd); !seen[name] {
				seen[name] = true
				info.Codecs = append(info.Codecs, name)
			}
		}
		if h.contentChecksum {
			c.Take(4)
		}
		if h.chunkChecksum {
			c.Take(4)
		}
	}
	info.ContentChecksum, info.ChunkChecksum = h.contentChecksum, h.chunkChecksum
	return info, nil
}

func codecName(nd node) string {
	id := strconv.FormatUint(uint64(nd.id), 10)
	switch {
	case nd.custom:
		return "custom " + id
	case nd.id >= codecs.NumStandard || codecs.Standard[nd.id].Name == "":
		return "unknown " + id
	}
	return codecs.Standard[nd.id].Name
}
