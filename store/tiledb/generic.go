package tiledb

import (
	"context"
	"crypto/cipher"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store/tiledb/filter"
)

// Encryption types of generic tiles.
const (
	plain     = 0
	aes256gcm = 1
)

// genericHeader is the size of a generic tile's header in front of its filter pipeline: 4 bytes of version, 8 each of
// persisted and decoded size, 1 of datatype, 8 of cell size, 1 of encryption, and 4 of pipeline size.
const genericHeader = 34

// genericTile is a generic tile, as the format calls it: a header that describes the tile, and its chunks.
type genericTile struct {
	size      uint64 // bytes when decoded
	encrypted bool
	pipeline  filter.Pipeline
	stored    []byte
	off       int64 // offset of stored in the file
}

// readGeneric reads the generic tile at an offset of a file. It must end at end or before. limit bounds its decoded
// size, and 2*limit its stored one, because a filter may add a little to data that does not compress.
func readGeneric(ctx context.Context, r source.Reader, part string, off uint64,
	end, limit int64) (*genericTile, error) {
	end = min(end, r.Size())
	if off > uint64(end) || end-int64(off) < genericHeader {
		return nil, fault.At(fault.Corrupt, part, int64(min(off, uint64(r.Size()))),
			"a tile of at least %d bytes at %d reaches past %d", genericHeader, off, end)
	}
	pos := int64(off)
	// One read fetches header and pipeline: 1 KiB holds more filters than any writer uses.
	head, err := source.Read(ctx, r, pos, min(genericHeader+1024, end-pos))
	if err != nil {
		return nil, err
	}
	header := &byteCursor{b: head, part: part, base: pos}
	version := header.u32("version")
	persisted, size := header.u64("persisted size"), header.u64("tile size")
	typ, cell := header.u8("datatype"), header.u64("cell size")
	enc, pipe := header.u8("encryption type"), header.u32("pipeline size")
	_, known := formatOf(version)
	switch {
	case !known:
		return nil, errVersion(part, pos, uint64(version))
	case !Datatype(typ).Valid():
		return nil, header.fault(fault.Corrupt, 20, "datatype %d", typ)
	case cell == 0 || size%cell != 0:
		return nil, header.fault(fault.Corrupt, 21, "%d bytes in cells of %d", size, cell)
	case enc != plain && enc != aes256gcm:
		return nil, header.fault(fault.Unsupported, 29, "encryption type %d", enc)
	case int64(pipe) > end-pos-genericHeader:
		return nil, header.fault(fault.Corrupt, 30, "a pipeline of %d bytes, %d are left", pipe, end-pos-genericHeader)
	case int(pipe) > header.rest():
		return nil, header.fault(fault.Limit, 30, "a pipeline of %d bytes, at most %d", pipe, header.rest())
	case size > uint64(limit):
		return nil, header.fault(fault.Limit, 12, "a tile of %d bytes, at most %d", size, limit)
	}
	pipeline, length, err := filter.ParseVersion(head[genericHeader:genericHeader+int(pipe)], version, filterElem)
	if err == nil && length != int(pipe) {
		err = fault.At(fault.Corrupt, "filter pipeline", int64(length), "%d bytes follow its end", int(pipe)-length)
	}
	if err == nil && pipeline.Has(filter.AES256GCM) != (enc == aes256gcm) {
		err = fault.At(fault.Corrupt, "filter pipeline", 0, "its encryption differs from that of the tile")
	}
	if err != nil {
		return nil, fault.WithPart(err, part, pos+genericHeader)
	}
	data := pos + genericHeader + int64(pipe)
	if persisted > uint64(end-data) {
		return nil, header.fault(fault.Corrupt, 4, "a persisted size of %d bytes, %d are left", persisted, end-data)
	}
	// Encryption and metadata of filters may make the stored form larger than the decoded one, but
	// unless the file is hostile not twice as large.
	if int64(persisted) > 2*limit {
		return nil, header.fault(fault.Limit, 4, "a persisted size of %d bytes, at most %d", persisted, 2*limit)
	}
	tile := &genericTile{size: size, encrypted: enc == aes256gcm, pipeline: pipeline, off: data}
	tile.stored, err = source.Read(ctx, r, data, int64(persisted))
	return tile, err
}

// decode returns the content of the tile.
func (g *genericTile) decode(d *filter.Decoder, part string) ([]byte, error) {
	size, _, err := filter.Size(g.stored)
	if err == nil && uint64(size) != g.size {
		err = fault.At(fault.Corrupt, "", 0, "its chunks hold %d bytes, the header says %d", size, g.size)
	}
	if err != nil {
		return nil, fault.WithPart(err, part, g.off)
	}
	data := make([]byte, g.size, g.size+filter.Spare)
	if err := d.Tile(data, g.stored, g.pipeline, Char.elem(1), 0, len(data)); err != nil {
		return nil, fault.WithPart(err, part, g.off)
	}
	return data, nil
}

// openGeneric reads and decodes a generic tile.
func openGeneric(ctx context.Context, r source.Reader, key cipher.AEAD, part string, off uint64,
	end, limit int64) ([]byte, error) {
	tile, err := readGeneric(ctx, r, part, off, end, limit)
	if err != nil {
		return nil, err
	}
	if tile.encrypted && key == nil {
		return nil, errNoKey(part)
	}
	return tile.decode(filter.NewDecoder(key), part)
}
