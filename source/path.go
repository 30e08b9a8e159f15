package source

import (
	"cmp"
	"net/url"
	"strings"
)

// Path is a name that was parsed, of a local file, an object of a store, or a part of another file. Openers of this
// package hand paths to each other, so nobody looks into the name again.
type Path struct {
	// Name is the name by which chaski opens the file: a local path, a URI of a scheme of Mux, or one of four forms
	// that stand for a part of another file: GDAL's /vsisubfile/OFFSET_SIZE,FILE and /vsizip/{ARCHIVE}/MEMBER (or
	// /vsitar/), ARCHIVE.npz::ARRAY and FILE.json::MEMBER.
	Name string
	// Scheme is the scheme of the URI in lower case, or "" for a local path. A part of a file has the name of its file
	// system, such as "vsizip".
	Scheme string

	// Part is what the path is of another file, or nil.
	Part *Part
}

// Parse parses a name: of GDAL's virtual file systems (/vsicurl/URL, /vsis3/BUCKET/KEY, /vsizip/ARCHIVE.zip/MEMBER, …),
// and of schemes with several spellings (abfss://CONTAINER@ACCOUNT.dfs.core.windows.net/KEY,
// source://ACCOUNT/REPOSITORY/KEY). All other names, and the names of paths, stay as they are. A name that begins with
// /vsi but has no meaning here is fault.Unsupported; its path has only a scheme, the name of the file system.
func Parse(name string) (Path, error) {
	if !hasAlias(name) && !inFile(name) {
		return Path{Name: name, Scheme: plainScheme(name)}, nil
	}
	if IsPart(name) {
		return parsePart(name)
	}
	prefix := vsiPrefix(name)
	failed := Path{Scheme: cmp.Or(fileSystem(prefix), plainScheme(name))}
	for _, alias := range aliases {
		if len(name) < len(alias.prefix) || !strings.EqualFold(name[:len(alias.prefix)], alias.prefix) {
			continue
		}
		resolved, err := alias.resolve(alias.prefix, name[len(alias.prefix):])
		if err != nil {
			return failed, unresolved(name, "%v", err)
		}
		return Path{Name: resolved, Scheme: plainScheme(resolved)}, nil
	}
	if prefix != "" {
		return failed, unresolved(name, "chaski does not read %s: of GDAL's file systems it reads %s", prefix,
			"/vsicurl/, /vsis3/, /vsigs/, /vsiaz/, /vsiadls/, /vsizip/, /vsitar/ and /vsisubfile/")
	}
	return Path{Name: name, Scheme: plainScheme(name)}, nil
}

// fileSystem returns the name of a file system of GDAL with a prefix.
func fileSystem(prefix string) string { return strings.Trim(prefix, "/?") }

// plainScheme returns the scheme that a URI begins with, in lower case, or "".
func plainScheme(uri string) string {
	i := strings.Index(uri, "://")
	if i < 1 {
		return ""
	}
	for _, c := range []byte(uri[:i]) {
		letter, digit := 'a' <= c|32 && c|32 <= 'z', '0' <= c && c <= '9'
		if !letter && !digit && strings.IndexByte("+-.", c) < 0 {
			return ""
		}
	}
	return strings.ToLower(uri[:i])
}

// Remote reports whether the path is of an object that is not a local file, such as a part of one.
func (p Path) Remote() bool { return p.Scheme != "" && p.Scheme != "file" }

// Web reports whether the path is a URI of HTTP, which has no directories, and in which "?" begins a query.
func (p Path) Web() bool { return p.Scheme == "http" || p.Scheme == "https" }

// Base returns the last part of the path, without the query of a URI of HTTP: that may have secrets. The base of a byte
// range is the one of its file.
func (p Path) Base() string {
	for p.Part != nil && !p.Part.Archive() {
		p = p.Part.File
	}
	name := p.Name
	if p.Part != nil {
		name = cmp.Or(p.Part.Member, name)
	}
	if p.Web() {
		name, _, _ = strings.Cut(name, "?")
	}
	return name[strings.LastIndexByte(name, '/')+1:]
}

// Local returns the path in a file:// URI, whose escapes (%20) it undoes: Python's Path.as_uri writes them. A path with
// a "%" that begins no escape is taken as it is. Other names are returned as they are.
func (p Path) Local() string {
	if p.Scheme != "file" {
		return p.Name
	}
	path := strings.TrimPrefix(p.Name[len("file://"):], "localhost")
	if plain, err := url.PathUnescape(path); err == nil {
		return plain
	}
	return path
}

// Resolve returns the name of the path that a name stands for: see Parse.
func Resolve(name string) (string, error) {
	p, err := Parse(name)
	return p.Name, err
}

// Scheme returns the scheme of the path that a name stands for: see Path.
func Scheme(uri string) string {
	p, _ := Parse(uri) // the scheme is also there with an error
	return p.Scheme
}

// IsWeb reports whether uri names an object of HTTP: see Path.Web. A part of one does not.
func IsWeb(uri string) bool {
	p, _ := Parse(uri)
	return p.Web()
}

// Join appends a relative path, whose parts "/" separates, to a directory, which is a path or a URI. In a URI of HTTP
// and file:// the path is escaped. It stands in front of the query of the former, which may be a signature for the
// whole directory.
func Join(folder, path string) string {
	if folder == "" {
		return path
	}
	query := ""
	if web := IsWeb(folder); web || plainScheme(folder) == "file" {
		if i := strings.IndexByte(folder, '?'); i >= 0 && web {
			folder, query = folder[:i], folder[i:]
		}
		parts := strings.Split(path, "/")
		for i, part := range parts {
			parts[i] = url.PathEscape(part)
		}
		path = strings.Join(parts, "/")
	}
	if folder = strings.TrimRight(folder, "/"); path == "" {
		return folder + query
	}
	return folder + "/" + path + query
}

// IsRemote reports whether uri names an object that is not a local file, such as a part of one.
func IsRemote(uri string) bool {
	p, _ := Parse(uri)
	return p.Remote()
}

// LocalPath returns the path in a file:// URI, without its escapes. Other strings are returned as they are.
func LocalPath(uri string) string { return Path{Name: uri, Scheme: plainScheme(uri)}.Local() }

// Name returns the last part of a path or URI: see Path.Base.
func Name(uri string) string {
	parsed, err := Parse(uri)
	if err != nil {
		return uri[strings.LastIndexByte(uri, '/')+1:]
	}
	return parsed.Base()
}

// FileOf returns the file whose part a name stands for, or the name itself. Parts of parts lead to the outermost file.
func FileOf(name string) string {
	parsed, err := Parse(name)
	if err != nil {
		return name
	}
	for parsed.Part != nil {
		parsed = parsed.Part.File
	}
	return parsed.Name
}

// Separator separates a container from the path of a sample in it: "data.tacozip::roi_1/image".
const Separator = "::"

// Split splits a name into a container and the path of a sample in it. ok is false if the name has no Separator, and of
// an array in a .npz file or a member of JSON, which are files by themselves. A local file may have the separator in
// its own name.
func Split(name string) (container, path string, ok bool) {
	if inFile(name) {
		return name, "", false
	}
	return strings.Cut(name, Separator)
}

// VSI returns the name under which GDAL opens a local path or URI. A URI that GDAL has no name for stays as it is.
func VSI(uri string) string {
	p, err := Parse(uri)
	if err == nil && p.Part != nil {
		part := *p.Part
		part.Array = false // GDAL has no such names
		return part.Name(VSI(part.File.Name))
	}
	_, rest, _ := strings.Cut(uri, "://")
	switch scheme := plainScheme(uri); scheme {
	case "", "file":
		return LocalPath(uri)
	case "http", "https":
		return "/vsicurl/" + uri
	default:
		for _, a := range aliases {
			if a.scheme == scheme {
				return a.prefix + rest
			}
		}
	}
	return uri
}

// ResolveFrom resolves a name as Resolve does, and a relative path in it by join, which gets a path that is not
// absolute and belongs to no scheme, or the name itself if it has one. A name that cannot be resolved stays as it is,
// so opening it says why.
func ResolveFrom(name string, join func(name string) string) string {
	parsed, err := Parse(name)
	switch {
	case err != nil:
		return name
	case parsed.Part != nil:
		return parsed.Part.Name(ResolveFrom(parsed.Part.File.Name, join))
	}
	return join(parsed.Name)
}
