package store

import (
	"context"

	"github.com/chaski-eo/chaski/source"
)

// Whole is the offset and the size of an Entry that is a whole file.
const Whole = -1

// Entry is one sample of a container: its name, and where its bytes are.
type Entry struct {
	// ID is unique among siblings. Path has the ids from level 0 down, joined by "/".
	ID, Path string
	// Folder says that the sample has children in place of bytes.
	Folder bool
	// Padding marks a placeholder without content that fills up its folder.
	Padding bool
	// URI is the object with the bytes: Size bytes from Offset on, or the whole object if both are
	// Whole. For a folder it may be its own table of children, or empty.
	URI          string
	Offset, Size int64
	// Object has the size and tag of the object if the container's tables were read from it, so opening it
	// needs no request. It is zero for other files.
	Object source.Known
	// Level and Row are the place of the sample's row in the tables of the container or dataset.
	Level, Row int
	// Of is the sample that a chunk belongs to, nil if this is not a chunk, and Number the number
	// of the chunk in the sample's chunk index.
	Of     *Entry
	Number int
}

// Type returns "FILE" or "FOLDER".
func (e *Entry) Type() string { return EntryType(e.Folder) }

// EntryType returns the type of samples that are folders, or files: "FOLDER" or "FILE".
func EntryType(folder bool) string {
	if folder {
		return "FOLDER"
	}
	return "FILE"
}

// Open opens the bytes of a sample: offset 0 of the reader is their first. If the size of the container's object is
// known, opening it costs no request if the opener supports that, and each read is one request for exactly its range.
func (e *Entry) Open(ctx context.Context, o source.Opener) (source.Reader, error) {
	if e.Offset == Whole {
		return source.OpenKnown(ctx, o, e.URI, e.Object)
	}
	return source.OpenSection(ctx, o, e.URI, e.Object, "sample "+e.Path, e.Offset, e.Size)
}

// Alone returns an opener that ignores the name and opens the sample as a file of its own.
func (e *Entry) Alone(o source.Opener) source.Opener {
	return source.OpenOne(func(ctx context.Context) (source.Reader, error) { return e.Open(ctx, o) })
}

// VSI returns the path under which GDAL opens the bytes of a sample: /vsisubfile/ for a range, with GDAL's file systems
// for the schemes of URIs.
func (e *Entry) VSI() string {
	if e.Folder && e.URI == "" { // a folder of shards is nowhere
		return ""
	}
	return e.Subfile(source.VSI(e.URI))
}

// Subfile is VSI with the path under which GDAL opens the object.
func (e *Entry) Subfile(object string) string {
	if e.Offset == Whole {
		return object
	}
	return source.SubfileName(object, e.Offset, e.Size)
}

// Selection has the selected rows of each level of a container, in order. Of levels deeper than it has, all rows below
// selected ones are selected.
type Selection [][]int

// Sequence says where the files of a sequence lie. Each sample has some, which are numbered from 0.
type Sequence struct {
	// Most is how many files a sample may have.
	Most int
	// Level is the level of the files.
	Level int
	// Rows are the rows of that level for each sample, in the order of their numbers. The rows of a sample are nil if
	// it has more files than Most, or other numbers than 0, 1, 2 and so on.
	Rows [][]int
}
