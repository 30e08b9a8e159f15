package taco2

import (
	"bytes"
	"context"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/source/zipdir"
	"github.com/chaski-eo/chaski/store/taco/internal/model"
)

// readCollectionAhead reads the COLLECTION.json of a ZIP and, in the same request, the bytes after
// it if they are few: the directory, which is needed if the offsets in the tables may be wrong. It
// returns a reader with that in memory, or r if it fails.
func readCollectionAhead(ctx context.Context, r source.Reader, at span) (*Collection, source.Reader, error) {
	const part = "COLLECTION.json"
	behind := r.Size() - at.end()
	if behind > zipdir.MaxTail || at.size > maxCollection {
		c, err := readCollection(ctx, r, at, part)
		return c, r, err
	}
	data := make([]byte, at.size+behind) // the file's size limits it
	if err := r.ReadAt(ctx, data, at.off); err != nil {
		return nil, r, fault.WithPart(err, part, 0)
	}
	// A copy, because the collection keeps it.
	collection, err := parseCollection(bytes.Clone(data[:at.size]), part, at.off)
	if err != nil {
		return nil, r, err
	}
	return collection, &model.Tail{Reader: r, Off: at.end(), Bytes: bytes.Clone(data[at.size:])}, nil
}
