package zarr

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"net/url"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/magic"
	"github.com/chaski-eo/chaski/source"
)

// references opens the objects of a store that a file of references describes, as kerchunk and VirtualiZarr write them.
// The URI of an object is the file's, "/", and its name in the store, so that all else reads it like any store.
// It implements source.Namer.
type references struct {
	base source.Opener
	uri  string // of the file, or of the folder of files in Parquet
	list refTable
}

// refTable has the objects of a store by name.
type refTable interface {
	// find returns the object with a name, or false.
	find(ctx context.Context, name string) (ref, bool, error)
	// names returns the names of the entries of a directory. Names of directories end in "/".
	names(ctx context.Context, dir string) ([]string, error)
}

// referred is a file that references lead to. Its size and tag are kept to save a request for each further chunk.
type referred struct {
	uri string
	err error // why it is not opened

	mu    sync.Mutex
	known source.Known
	fit   bool // its first bytes were looked at
}

// referenceFile returns the beginning of a URI that names a JSON file, if there is one. It makes no request for a
// remote file.
func referenceFile(o source.Opener, uri string) (file string, ok bool) {
	for pos := 0; pos < len(uri); pos++ {
		if n := strings.IndexByte(uri[pos:], '/'); n >= 0 {
			pos += n
		} else {
			pos = len(uri)
		}
		if pos == 0 || !namedReferences(path.Base(uri[:pos])) {
			continue
		}
		if source.IsRemote(uri) {
			return uri[:pos], !strings.ContainsAny(uri, "?#")
		}
		st, err := source.RootsOf(o).Stat(source.LocalPath(uri[:pos]))
		if err == nil && st.Mode().IsRegular() {
			return uri[:pos], true
		}
	}
	return "", false
}

// refsHead is how much of a JSON file says whether it has references: the version, and one key more.
const refsHead = 4 << 10

// isReferences reports whether a file begins as one of references does.
func isReferences(ctx context.Context, o source.Opener, file string) bool {
	reader, err := o.Open(ctx, file)
	if err != nil {
		return false
	}
	defer reader.Close()
	head := make([]byte, min(reader.Size(), refsHead))
	if reader.ReadAt(ctx, head, 0) != nil {
		return false
	}
	decoder := json.NewDecoder(bytes.NewReader(head))
	if t, err := decoder.Token(); err != nil || t != json.Delim('{') {
		return false
	}
	token, err := decoder.Token()
	if key, _ := token.(string); err == nil && key == "version" {
		if _, err = decoder.Token(); err == nil { // a number; of anything else the next token is not a key
			token, err = decoder.Token()
		}
	}
	key, _ := token.(string)
	return err == nil && (slices.Contains([]string{"refs", "templates", "gen"}, key) || isMeta(path.Base(key)) ||
		path.Base(key) == group2 || key == consolidated)
}

// refer makes the node's opener one of references if its URI leads into a file or a folder of them.
func (n *Node) refer(ctx context.Context) error {
	if _, ok := n.open.(*references); ok {
		return nil
	}
	if folder, ok := recordsFolder(n.URI); ok {
		uri := source.Join(folder, consolidated)
		all, err := n.optional(ctx, uri)
		if err != nil || all != nil {
			return cmp.Or(err, fault.WithFile(n.referRecords(ctx, folder, all), uri))
		}
	}
	file, ok := referenceFile(n.open, n.URI)
	if !ok || !isReferences(ctx, n.open, file) {
		return nil
	}
	var list *refList
	const copies = 2 // the text and, if it is all one string, a value of it
	err := n.readText(ctx, file, maxRefsFile, copies, func(b []byte) (err error) {
		list, err = parseReferences(ctx, b, func(refs int, bytes int64) error {
			// Each reference is charged twice, since the list grows.
			return n.charge(ctx, 2*int64(refs)*refBytes+bytes)
		})
		return err
	})
	if err != nil {
		return err
	}
	for _, f := range list.files {
		f.uri, f.err = resolve(file, f.uri)
	}
	n.open = &references{base: n.open, uri: file, list: list}
	return nil
}

// name returns the name in the store of the object with a URI.
func (s *references) name(uri string) (string, bool) {
	rest, ok := strings.CutPrefix(uri, s.uri)
	if !ok || rest != "" && rest[0] != '/' {
		return "", false
	}
	rest = strings.TrimPrefix(rest, "/")
	// source.Join escaped the name, so that it needs to be unescaped.
	if source.IsWeb(s.uri) {
		plain, err := url.PathUnescape(rest)
		return plain, err == nil
	}
	return rest, true
}

// Open implements source.Opener. A URI without a reference is fault.NotFound.
func (s *references) Open(ctx context.Context, uri string) (source.Reader, error) {
	name, ok := s.name(uri)
	var found ref
	var err error
	if ok {
		found, ok, err = s.list.find(ctx, name)
	}
	if err != nil {
		return nil, fault.WithFile(err, s.uri)
	}
	if !ok {
		return nil, fault.WithFile(fault.New(fault.NotFound, refsPart, fault.NoOffset, "no object %.80q", name), s.uri)
	}
	target := found.to
	if target == nil {
		return source.Memory(found.inline), nil
	}
	if target.err != nil {
		return nil, fault.WithFile(target.err, s.uri)
	}
	file, err := target.open(ctx, s.base)
	if err != nil {
		return nil, fault.WithFile(existing(err), target.uri)
	}
	if found.n < 0 {
		return file, nil
	}
	part, err := source.SectionOf(file, found.off, found.n)
	if err != nil {
		_ = file.Close() // an earlier error is returned
		return nil, fault.WithFile(fault.WithPart(err, refsPart, 0), target.uri)
	}
	return part, nil
}

// existing makes of a file that does not exist one that is corrupt: a chunk that is not found is one that was never
// written, and has the fill value.
func existing(err error) error {
	if !missing(err) {
		return err
	}
	return fault.New(fault.Corrupt, refsPart, fault.NoOffset, "a file that references lead to does not exist")
}

// open opens the file.
func (f *referred) open(ctx context.Context, base source.Opener) (source.Reader, error) {
	f.mu.Lock()
	known, fit := f.known, f.fit
	f.mu.Unlock()
	file, err := source.OpenKnown(ctx, base, f.uri, known)
	if err != nil || fit {
		return file, err
	}
	if err := holdsArrays(ctx, base, f.uri, file); err != nil {
		_ = file.Close() // an earlier error is returned
		return nil, err
	}
	f.mu.Lock()
	f.known, f.fit = source.Known{Size: file.Size(), ETag: source.ETag(file)}, true
	f.mu.Unlock()
	return file, nil
}

// arrayMagics are the first bytes of the files that kerchunk and VirtualiZarr make references to, beside TIFF: HDF5,
// NetCDF, GRIB and FITS.
var arrayMagics = []string{"\x89HDF", "CDF\x01", "CDF\x02", "CDF\x05", "GRIB", "SIMP"}

// holdsArrays returns an error if a local file below roots is not of a format that references point into.
// catalog.CheckRaster does the same for indexes in catalogs.
func holdsArrays(ctx context.Context, base source.Opener, uri string, r source.Reader) error {
	if source.IsRemote(source.FileOf(uri)) || !source.RootsOf(base).Bounded() {
		return nil
	}
	head := make([]byte, min(r.Size(), 4))
	if err := r.ReadAt(ctx, head, 0); err != nil {
		return err
	}
	// A user who can write a file below a root could otherwise describe any other file there, such as a key, as pixels.
	if magic.Of(head) != magic.TIFF && !slices.Contains(arrayMagics, string(head)) {
		return fault.New(fault.Unsupported, refsPart, 0,
			"below the roots of a server, references lead to files of HDF5, NetCDF, GRIB, TIFF or FITS only")
	}
	return nil
}

// Names implements source.Namer.
func (s *references) Names(ctx context.Context, folder string) ([]string, error) {
	dir, ok := s.name(folder)
	if !ok {
		return nil, nil
	}
	return s.list.names(ctx, dir)
}
