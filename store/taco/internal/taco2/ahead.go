package taco2

import (
	"bytes"
	"context"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/source/zipdir"
	"github.com/chaski-eo/chaski/store/taco/internal/model"
)

// maxAhead limits a COLLECTION.json that is read together with what follows it.
const maxAhead = 4 << 20

// readCollectionAhead reads the COLLECTION.json of a ZIP and, in the same request, the bytes after
// it if they are few: the directory, which is needed if the offsets in the tables may be wrong. It
// returns a reader with that in memory, or r if it fails.
func readCollectionAhead(ctx context.Context, r source.Reader, at span) (*Collection, source.Reader, error) {
	const part = "COLLECTION.json"
	behind := r.Size() - at.End()
	if behind > zipdir.MaxTail || at.Size > maxAhead {
		c, err := readCollection(ctx, r, at, part)
		return c, r, err
	}
	data := make([]byte, at.Size+behind) // the file's size limits it
	if err := r.ReadAt(ctx, data, at.Off); err != nil {
		return nil, r, fault.WithPart(err, part, 0)
	}
	// A copy, because the collection keeps it.
	collection, err := parseCollection(bytes.Clone(data[:at.Size]), part, at.Off)
	if err != nil {
		return nil, r, err
	}
	return collection, &model.Tail{Reader: r, Off: at.End(), Bytes: bytes.Clone(data[at.Size:])}, nil
}
