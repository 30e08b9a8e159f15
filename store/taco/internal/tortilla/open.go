package tortilla

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"unicode/utf8"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store/taco/internal/model"
)

// maxCollection limits the COLLECTION, in bytes.
const maxCollection = 64 << 20

// file is an open container of either kind.
type file struct {
	model.Common
	r        source.Reader
	object   source.Known // size and entity tag of r
	header   Header
	limits   model.Limits
	requests source.Reader // r, with bytes read ahead served from memory
}

// Close implements model.Container.
func (f *file) Close() error { return f.r.Close() }

// Partitions returns the number of files that the container is split into. This is one of them.
func (f *file) Partitions() int { return int(min(f.header.Partitions, maxRows)) }

// Open opens a container whose first bytes (the whole header, if there are as many) are in head. It
// reads the footer, the collection of a TACO, and the first nested sample of each level. These are
// mostly one request, because they are at the end of the file. It closes r if it fails.
func Open(ctx context.Context, uri string, r source.Reader, head []byte, l model.Limits) (model.Container, error) {
	f := &file{Common: model.Common{Source: uri, Key: colID}, r: r,
		object: source.Known{Size: r.Size(), ETag: source.ETag(r)}, limits: l}
	container, err := f.open(ctx, head)
	if err != nil {
		return nil, errors.Join(fault.WithFile(err, uri), r.Close())
	}
	return container, nil
}

func (f *file) open(ctx context.Context, head []byte) (model.Container, error) {
	var err error
	if f.header, err = ParseHeader(head, f.r.Size()); err != nil {
		return nil, err
	}
	if f.requests, err = readTail(ctx, f.r, f.header.Footer.off); err != nil {
		return nil, err
	}
	if f.header.TACO {
		if f.Document, err = readCollection(ctx, f.requests, f.header.Collection); err != nil {
			return nil, err
		}
	}
	top, err := readRows(ctx, f.requests, f.header.Footer, f.limits, "footer")
	if err != nil {
		return nil, err
	}
	if pointer, ok := top.tbl.Meta(pointerKey); ok {
		return openStream(ctx, f, top, pointer)
	}
	return openPlain(ctx, f, top)
}

// readCollection reads the JSON document about the dataset.
func readCollection(ctx context.Context, r source.Reader, at span) (json.RawMessage, error) {
	if at.size > maxCollection {
		return nil, fault.New(fault.Limit, "COLLECTION", at.off, "%d bytes, at most %d", at.size, maxCollection)
	}
	data := make([]byte, at.size)
	if err := r.ReadAt(ctx, data, at.off); err != nil {
		return nil, fault.WithPart(err, "COLLECTION", 0)
	}
	if !utf8.Valid(data) {
		return nil, fault.New(fault.Corrupt, "COLLECTION", at.off, "is not UTF-8")
	}
	if t := bytes.TrimLeft(data, " \t\r\n"); len(t) == 0 || t[0] != '{' {
		return nil, fault.New(fault.Corrupt, "COLLECTION", at.off, "is not a JSON object")
	}
	var doc map[string]json.RawMessage
	if err := json.Unmarshal(data, &doc); err != nil {
		return nil, fault.Wrap(fault.Corrupt, "COLLECTION", at.off, err)
	}
	return data, nil
}

// maxTail limits the bytes that are read ahead at the end of a file.
const maxTail = 4 << 20

// readTail reads a file from an offset to its end, unless that is too much.
func readTail(ctx context.Context, r source.Reader, off int64) (source.Reader, error) {
	n := r.Size() - off
	// A longer tail is read piece by piece, because a hostile footer offset could otherwise make
	// one read fetch the whole file.
	if n > maxTail {
		return r, nil
	}
	data := make([]byte, n)
	if err := r.ReadAt(ctx, data, off); err != nil {
		return nil, fault.WithPart(err, "footer", 0)
	}
	return &model.Tail{Reader: r, Off: off, Bytes: data}, nil
}
