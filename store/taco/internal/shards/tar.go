package shards

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store/taco/internal/model"
	"github.com/chaski-eo/chaski/tables"
)

// TarBlock is the size of the blocks of a tar file.
const TarBlock = 512

// IsTar reports whether the first block of a file is the header of a tar member: its checksum is right.
func IsTar(head []byte) bool {
	if len(head) < TarBlock {
		return false
	}
	_, err := tar.NewReader(bytes.NewReader(head[:TarBlock])).Next()
	// The header of a long name goes on in further blocks, so that it may end early here.
	return err == nil || errors.Is(err, io.ErrUnexpectedEOF)
}

// OpenTars opens tar files of WebDataset as one dataset: a file, or those that a name stands for. It reads the headers
// of all members, and the contents of numbers, strings and JSON.
func OpenTars(ctx context.Context, from model.Source) (*model.Container, error) {
	uris := []string{from.URI}
	var err error
	if from.File != nil {
		err = from.File.Close()
	} else {
		uris, err = tarsOf(ctx, from.Opener, from.URI)
	}
	if err != nil {
		return nil, fault.WithFile(err, from.URI)
	}
	return openTars(ctx, from.Opener, from.URI, uris)
}

func openTars(ctx context.Context, o source.Opener, name string, uris []string) (*model.Container, error) {
	return open(ctx, o, name, model.WebDataset, uris, func(p *part, _ int, w *window) error { return readTar(p, w) })
}

// readTar reads the members of a tar file. Members of a sample follow each other, and their names are equal up to the
// first dot of the last element of the path.
func readTar(p *part, w *window) error {
	section := io.NewSectionReader(w, 0, w.r.Size())
	at := func() int64 {
		off, _ := section.Seek(0, io.SeekCurrent) // a seek to where it is does not fail
		return off
	}
	in := tar.NewReader(section)
	known, members := map[string]bool{}, map[string]bool{} // keys of samples, and extensions of the last one
	last := ""
	for {
		start := at()
		header, err := in.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if errors.Is(err, tar.ErrHeader) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, tar.ErrFieldTooLong) {
			return fault.Wrap(fault.Corrupt, "tar header", start, err)
		}
		if err != nil {
			return err // of reading, or of the network
		}
		key, ext, ok := tarName(header.Name)
		err = refuse(header, at(), w.r.Size())
		switch {
		case err != nil:
		case !ok || header.Typeflag != tar.TypeReg:
			continue
		case key == last && members[ext]:
			err = fault.New(fault.Corrupt, "", start, "the sample %.200q has two members %.200q", key, ext)
		case key != last && known[key]:
			err = fault.New(fault.Unsupported, "", start,
				"the sample %.200q has members at two places: those of a sample follow each other", key)
		default:
			if key != last && last != "" {
				p.ids = append(p.ids, last)
			}
			if key != last {
				clear(members)
			}
			known[key], members[ext], last = true, true, key
			err = addMember(p, w, ext, at(), header.Size)
		}
		if err != nil {
			return fault.WithPart(err, fmt.Sprintf("member %.200q", header.Name), fault.NoOffset)
		}
		if err := w.ctx.Err(); err != nil {
			return err
		}
	}
	if last != "" {
		p.ids = append(p.ids, last)
	}
	return nil
}

// refuse refuses members whose bytes are not a range of the file. off is where they begin.
func refuse(h *tar.Header, off, size int64) error {
	sparse := func(key string) bool { return strings.HasPrefix(key, "GNU.sparse.") }
	switch {
	case h.Typeflag == tar.TypeGNUSparse, slices.ContainsFunc(slices.Collect(maps.Keys(h.PAXRecords)), sparse):
		return fault.New(fault.Unsupported, "", fault.NoOffset, "is sparse")
	case h.Typeflag == tar.TypeReg && (h.Size < 0 || off > size || h.Size > size-off):
		return fault.New(fault.Corrupt, "", off, "%d bytes in a file of %d", h.Size, size)
	case h.Typeflag == tar.TypeLink || h.Typeflag == tar.TypeSymlink:
		return fault.New(fault.Unsupported, "", fault.NoOffset, "is a link to %.200q: samples are files", h.Linkname)
	case h.Typeflag != tar.TypeReg && h.Typeflag != tar.TypeDir && h.Typeflag != tar.TypeXGlobalHeader:
		return fault.New(fault.Unsupported, "", fault.NoOffset, "is of type %q: samples are files", h.Typeflag)
	}
	return nil
}

// meta matches members that describe a tar: "__name__", and paths below it.
var meta = regexp.MustCompile(`^__[^/]*__(/|$)`)

// tarName divides the name of a member into the key of its sample and its extension, in lower case. ok is false for
// members that belong to no sample: those without an extension, and "__name__".
func tarName(name string) (key, ext string, ok bool) {
	name = strings.TrimPrefix(path.Clean(name), "./")
	dir, base := path.Split(name)
	stem, ext, ok := strings.Cut(base, ".")
	if !ok || stem == "" || strings.Trim(ext, ".") == "" || meta.MatchString(name) {
		return "", "", false
	}
	return dir + stem, strings.ToLower(ext), true
}

// columnExtensions are extensions of members that become columns, as decoders of WebDataset have them. JSON has
// nil: its objects are a column for each member.
var columnExtensions = map[string]func(b []byte) (string, error){"txt": text, "text": text, "transcript": text,
	"cls": number, "cls2": number, "class": number, "count": number, "index": number, "inx": number, "id": number,
	"json": nil, "jsn": nil}

// maxKeys limits the members of one JSON object that become columns.
const maxKeys = 256

// addMember adds the member of size bytes at an offset to the last sample.
func addMember(p *part, w *window, ext string, off, size int64) error {
	parse, isColumn := columnExtensions[ext[strings.LastIndexByte(ext, '.')+1:]] // "seg.cls" is a class, too
	if !isColumn || size > maxValue {
		p.file(ext, "", off, size)
		return nil
	}
	add := func(name, value string) { p.column(name, tables.Type{}).add(len(p.ids), value) }
	var object map[string]json.RawMessage
	value, err := w.value(off, size, func(b []byte) (string, error) {
		if parse != nil {
			return parse(b)
		}
		b = fromPython(b)
		if json.Unmarshal(b, &object) == nil && object != nil && len(object) <= maxKeys {
			return "", nil
		}
		object = nil
		return parseJSON(b)
	})
	if err == nil && object == nil {
		add(ext, value)
	}
	for _, key := range slices.Sorted(maps.Keys(object)) {
		value, err := parseJSON(object[key])
		if err != nil {
			return err
		}
		add(ext+":"+key, value)
	}
	return err
}
