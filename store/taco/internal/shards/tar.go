package shards

import (
	"archive/tar"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unique"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/source"
	"github.com/chaski-eo/chaski/store/taco/internal/model"
	"github.com/chaski-eo/chaski/tables"
)

// TarBlock is the size of the blocks of a tar file.
const TarBlock = 512

// IsTar reports whether the first block of a file is the header of a tar member: its checksum is right.
func IsTar(head []byte) bool {
	if len(head) < TarBlock || head[0] == 0 {
		return false
	}
	// The sum of all bytes, in octal digits; the bytes of the sum itself count as blanks.
	const at, end = 148, 156
	sum := int64(end-at) * ' '
	for i, b := range head[:TarBlock] {
		if i < at || i >= end {
			sum += int64(b)
		}
	}
	want, err := strconv.ParseInt(strings.Trim(string(head[at:end]), " \x00"), 8, 64)
	return err == nil && want == sum
}

// OpenTars opens tar files of WebDataset as one dataset. It reads the headers of all members, and the contents of
// numbers, strings and JSON.
func OpenTars(ctx context.Context, o source.Opener, name string, uris []string) (*model.Container, error) {
	return open(ctx, o, name, model.WebDataset, uris, func(ctx context.Context, _ int, p *part, r source.Reader) error {
		return readTar(ctx, p, r)
	})
}

// readTar reads the members of a tar file. Members of a sample follow each other, and their names are equal up to the
// first dot of the last element of the path.
func readTar(ctx context.Context, p *part, r source.Reader) error {
	window := newWindow(ctx, p.shard.uri, r)
	in := tar.NewReader(window)
	known := map[string]bool{}
	var s tarSample
	for n := 0; ; n++ {
		start := window.at
		header, err := in.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return tarFault(err, start)
		}
		key, ext, ok := tarName(header.Name)
		if err := refuse(header, window.at, r.Size()); err != nil {
			return fault.WithPart(err, fmt.Sprintf("member %.200q", header.Name), fault.NoOffset)
		}
		if !ok || header.Typeflag != tar.TypeReg {
			continue
		}
		if key != s.key || n == 0 {
			s.end(p)
			if known[key] {
				return fault.New(fault.Unsupported, fmt.Sprintf("member %.200q", header.Name), start,
					"the sample %.200q has members at two places: those of a sample follow each other", key)
			}
			known[key] = true
			s = tarSample{key: key, seen: map[string]bool{}}
		}
		if s.seen[ext] {
			return fault.New(fault.Corrupt, fmt.Sprintf("member %.200q", header.Name), start,
				"the sample %.200q has two members %.200q", key, ext)
		}
		s.seen[ext] = true
		if err := s.add(p, in, ext, window.at, header.Size); err != nil {
			return fault.WithPart(err, fmt.Sprintf("member %.200q", header.Name), fault.NoOffset)
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	s.end(p)
	return nil
}

// tarFault gives an error of the standard library a kind. Errors of reading have one, unless the network is to
// blame.
func tarFault(err error, off int64) error {
	if errors.Is(err, tar.ErrHeader) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, tar.ErrFieldTooLong) {
		return fault.Wrap(fault.Corrupt, "tar header", off, err)
	}
	return err
}

// refuse refuses members whose bytes are not a range of the file. off is where they begin.
func refuse(h *tar.Header, off, size int64) error {
	for key := range h.PAXRecords {
		if strings.HasPrefix(key, "GNU.sparse.") {
			return fault.New(fault.Unsupported, "", fault.NoOffset, "is sparse")
		}
	}
	switch h.Typeflag {
	case tar.TypeReg:
		if h.Size < 0 || off > size || h.Size > size-off {
			return fault.New(fault.Corrupt, "", off, "%d bytes in a file of %d", h.Size, size)
		}
	case tar.TypeDir, tar.TypeXGlobalHeader:
	case tar.TypeGNUSparse:
		return fault.New(fault.Unsupported, "", fault.NoOffset, "is sparse")
	case tar.TypeLink, tar.TypeSymlink:
		return fault.New(fault.Unsupported, "", fault.NoOffset, "is a link to %.200q: samples are files", h.Linkname)
	default:
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

// tarSample collects the members of a sample.
type tarSample struct {
	key   string
	seen  map[string]bool
	count int32
}

// end takes the sample.
func (s *tarSample) end(p *part) {
	if s.seen != nil {
		p.ids, p.counts = append(p.ids, s.key), append(p.counts, s.count)
	}
}

// Extensions of members that become columns, as decoders of WebDataset have them.
var (
	textExtensions = []string{"txt", "text", "transcript"}
	intExtensions  = []string{"cls", "cls2", "class", "count", "index", "inx", "id"}
	jsonExtensions = []string{"json", "jsn"}
)

// maxKeys limits the members of one JSON object that become columns.
const maxKeys = 256

// add adds a member of size bytes from off on, which in reads.
func (s *tarSample) add(p *part, in io.Reader, ext string, off, size int64) error {
	last := ext[strings.LastIndexByte(ext, '.')+1:] // "seg.cls" is a class, too
	isText, isInt := slices.Contains(textExtensions, last), slices.Contains(intExtensions, last)
	if isJSON := slices.Contains(jsonExtensions, last); size > maxValue || !isText && !isInt && !isJSON {
		p.files, s.count = append(p.files, file{name: unique.Make(ext), head: noHead, off: off, size: size}), s.count+1
		return nil
	}
	data := make([]byte, size)
	if _, err := io.ReadFull(in, data); err != nil {
		return tarFault(err, off)
	}
	row := len(p.ids)
	switch {
	case isText:
		v, err := text(data)
		p.columns.add(row, ext, tables.Type{}, v)
		return err
	case isInt:
		v, err := number(strings.TrimSpace(string(data)))
		p.columns.add(row, ext, tables.Type{}, v)
		return err
	}
	data = fromPython(data)
	var object map[string]json.RawMessage
	if json.Unmarshal(data, &object) != nil || object == nil || len(object) > maxKeys {
		v, err := parseJSON(data)
		p.columns.add(row, ext, tables.Type{}, v)
		return err
	}
	for _, key := range slices.Sorted(maps.Keys(object)) {
		v, err := parseJSON(object[key])
		if err != nil {
			return err
		}
		p.columns.add(row, ext+":"+key, tables.Type{}, v)
	}
	return nil
}
