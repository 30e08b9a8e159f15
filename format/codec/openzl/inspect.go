package openzl

import (
	"math"
	"strconv"

	"github.com/zeebo/xxh3"

	"github.com/chaski-eo/chaski/format/codec/openzl/internal/codecs"
	"github.com/chaski-eo/chaski/format/codec/openzl/internal/wire"
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

// Inspect reads the headers of a frame. It verifies the checksum of the header and leaves the rest encoded:
// the frame may still be corrupt or need unsupported codecs. It returns the same errors as Decode.
func Inspect(frame []byte) (Info, error) {
	var header frameHeader
	var k chunkMap
	cursor := wire.Cursor{B: frame}
	if err := header.parse(&cursor, math.MaxInt); err != nil {
		return Info{}, err
	}
	info := Info{FormatVersion: header.version, Outputs: header.types, Sizes: header.sizes}
	if len(header.comment) > 0 {
		info.Comment = append(info.Comment, header.comment...)
	}
	seen := map[string]bool{}
	for {
		start := cursor.Off
		end, err := header.isEnd(&cursor, info.Chunks)
		if err != nil {
			return Info{}, err
		}
		if end {
			break
		}
		if err := k.parse(&cursor, &header); err != nil {
			return Info{}, inChunk(err, info.Chunks, start)
		}
		info.Chunks++
		for _, node := range k.nodes {
			if name := codecName(node); !seen[name] {
				seen[name] = true
				info.Codecs = append(info.Codecs, name)
			}
		}
		if header.contentChecksum {
			cursor.Take(4)
		}
		if header.chunkChecksum {
			cursor.Take(4)
		}
	}
	info.ContentChecksum, info.ChunkChecksum = header.contentChecksum, header.chunkChecksum
	return info, nil
}

func codecName(nd codecNode) string {
	id := strconv.FormatUint(uint64(nd.id), 10)
	switch {
	case nd.custom:
		return "custom " + id
	case nd.id >= codecs.NumStandard || codecs.Standard[nd.id].Name == "":
		return "unknown " + id
	}
	return codecs.Standard[nd.id].Name
}

// Lone is a frame with one numeric output, whose only chunk has one codec that takes one stored stream, and no checksum
// of the content: what an Encoder makes of the graph "fast".
type Lone struct {
	ID     uint32 // of a custom codec
	Header []byte // of the codec
	Stored []byte
	Size   int // bytes of the output
}

// Lone returns the parts of a frame that is a Lone. ok is false for all others, and for damaged ones. The parts share
// the memory of frame.
func (d *Decoder) Lone(frame []byte) (lone Lone, ok bool) {
	d.reset()
	cursor, header, chunk := wire.Cursor{B: frame}, &d.header, &d.chunk
	if header.parse(&cursor, d.opt.MaxOutput) != nil || header.version < chunkVersion || len(header.types) != 1 ||
		header.types[0] != Numeric || header.contentChecksum {
		return lone, false
	}
	start := cursor.Off
	if end, err := header.isEnd(&cursor, 0); end || err != nil || chunk.parse(&cursor, header) != nil {
		return lone, false
	}
	if end := cursor.Off; header.chunkChecksum {
		if sum := cursor.U32(); !d.opt.SkipChecksums && sum != uint32(xxh3.Hash(frame[start:end])) {
			return lone, false
		}
	}
	if len(chunk.nodes) != 1 || len(chunk.stored) != 1 || len(chunk.distances) != 1 || chunk.distances[0] != 0 {
		return lone, false
	}
	node := &chunk.nodes[0]
	plain := node.custom && !node.dict && node.vars == 0
	if !plain || cursor.Left() != 1 || frame[cursor.Off] != 0 {
		return lone, false
	}
	return Lone{node.id, chunk.headers, chunk.bodies, header.sizes[0]}, true
}
