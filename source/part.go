package source

import (
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Part is a part of another file: a range of bytes, a member of an archive, or a member of JSON, which is the range of
// all bytes because only who reads the text finds it.
type Part struct {
	Text   string // the name as somebody wrote it, for errors
	File   Path
	ZIP    bool
	Tar    bool
	JSON   bool
	Array  bool   // of a ZIP: the member is an array of a .npz file
	Member string // of an archive, "" for the archive itself, or of JSON
	Off    int64  // of a range, bytes
	Size   int64  // UntilEnd: up to the end of the file
}

// UntilEnd is the size of a range without one.
const UntilEnd = -1

const (
	subfilePrefix = "/vsisubfile/"
	zipPrefix     = "/vsizip/"
	tarPrefix     = "/vsitar/"
)

// Archive reports whether the part is a member of an archive.
func (p *Part) Archive() bool { return p.ZIP || p.Tar }

// Name returns the name of the same range or member of a file.
func (p *Part) Name(file string) string {
	if p.JSON {
		return file + Separator + p.Member
	}
	if !p.Archive() {
		buf := strconv.AppendInt([]byte(subfilePrefix), p.Off, 10)
		if p.Size != UntilEnd {
			buf = strconv.AppendInt(append(buf, '_'), p.Size, 10)
		}
		return string(append(append(buf, ','), file...))
	}
	if p.Array {
		return ArrayName(file, strings.TrimSuffix(p.Member, arrayEnd))
	}
	name := zipPrefix
	if p.Tar {
		name = tarPrefix
	}
	name += "{" + file + "}"
	if p.Member != "" {
		name += "/" + p.Member
	}
	return name
}

// ArchiveName returns the name of the directory in a ZIP.
func ArchiveName(file string) string {
	p := Part{ZIP: true}
	return p.Name(file)
}

// tarEnds end the names of archives that are read as tars are: tars, and databases of LMDB, whose keys are names.
var tarEnds = [...]string{".tar", ".mdb", ".lmdb"}

// EndsTar reports whether a name ends like a tar or a database.
func EndsTar(name string) bool {
	return slices.ContainsFunc(tarEnds[:], func(end string) bool { return strings.HasSuffix(name, end) })
}

// CutTar cuts a path behind the last of its folders whose name ends like a tar or a database, A.tar/B.
func CutTar(path string) (archive, member string, ok bool) {
	cut := -1
	for _, end := range tarEnds {
		if n := strings.LastIndex(path, end+"/"); n >= 0 {
			cut = max(cut, n+len(end))
		}
	}
	if cut < 0 {
		return path, "", false
	}
	return path[:cut], path[cut+1:], true
}

// InDatabase reports whether name is the path of a value in a database of LMDB: A.mdb/KEY, or /vsitar/{A.mdb}/KEY.
func InDatabase(name string) bool {
	if parts, file, ok := cutPart(name); ok && parts.Tar {
		return parts.Member != "" && !strings.HasSuffix(file, tarEnds[0])
	}
	archive, member, ok := CutTar(name)
	return ok && member != "" && !strings.HasSuffix(archive, tarEnds[0])
}

// TarName returns the name of the directory in a tar.
func TarName(file string) string {
	p := Part{Tar: true}
	return p.Name(file)
}

// InTar returns the name of a member of a local tar for a path below it, a.tar/b.tif, and other paths as they are, such
// as those below a directory that is named as a tar, which stat tells: os.Stat, or one that asks only where files may
// be opened.
func InTar(path string, stat func(name string) (fs.FileInfo, error)) string {
	if Scheme(path) != "" {
		return path
	}
	path = filepath.ToSlash(path)
	for end := range len(path) {
		if path[end] != '/' || !EndsTar(path[:end]) {
			continue
		}
		if st, err := stat(path[:end]); err != nil || !st.IsDir() {
			return TarName(path[:end]) + path[end:]
		}
	}
	return filepath.FromSlash(path)
}

// A .npz file is a ZIP whose members are arrays. The member of an array has its name and arrayEnd.
const (
	arraysEnd = ".npz"
	arrayEnd  = ".npy"
)

// ArrayName returns the name of an array in a .npz file: FILE.npz::ARRAY.
func ArrayName(file, array string) string { return file + Separator + array }

// SplitArray splits the name of an array in a .npz file. ok is false for any other name.
func SplitArray(name string) (file, array string, ok bool) { return splitMember(name, arraysEnd) }

// jsonEnds are the ends of files of JSON, and of XML, which is read as JSON.
var jsonEnds = []string{".json", ".jsonl", ".ndjson", ".geojson", ".xml"}

// SplitJSON splits the name of a member of JSON or XML, FILE.json::MEMBER. ok is false for any other name.
// A member has no slash, which would stand between a directory and a file.
func SplitJSON(name string) (file, member string, ok bool) {
	file, member, ok = splitMember(name, jsonEnds...)
	return file, member, ok && !strings.Contains(member, "/")
}

// splitMember splits FILE::MEMBER of a file with one of some extensions.
func splitMember(name string, ends ...string) (file, member string, ok bool) {
	file, member, ok = strings.Cut(name, Separator)
	if !ok {
		return file, "", false
	}
	path := file
	if strings.Contains(file, "://") {
		path, _, _ = strings.Cut(file, "?")
	}
	ok = member != "" && slices.ContainsFunc(ends, func(end string) bool {
		n := len(path) - len(end)
		return n > 0 && strings.EqualFold(path[n:], end)
	})
	return file, member, ok
}

// inFile reports whether a name is FILE::MEMBER of a file that is no container.
func inFile(name string) bool {
	_, _, array := SplitArray(name)
	_, _, member := SplitJSON(name)
	return array || member
}

// cutPart parses a name that stands for a part of a file, but not the name of that file.
func cutPart(name string) (p Part, file string, ok bool) {
	if file, array, found := SplitArray(name); found {
		return Part{ZIP: true, Array: true, Member: strings.TrimSuffix(array, arrayEnd) + arrayEnd}, file, true
	}
	if file, member, found := SplitJSON(name); found {
		return Part{JSON: true, Member: member, Size: UntilEnd}, file, true
	}
	if rest, found := strings.CutPrefix(name, subfilePrefix); found {
		return cutSubfile(rest)
	}
	rest, tar := strings.CutPrefix(name, tarPrefix)
	p.ZIP, p.Tar = !tar, tar
	file, p.Member, ok = splitArchive(strings.TrimPrefix(rest, zipPrefix))
	return p, file, ok
}

// cutSubfile parses what follows /vsisubfile/.
func cutSubfile(rest string) (p Part, file string, ok bool) {
	span, file, found := strings.Cut(rest, ",")
	off, size, two := strings.Cut(span, "_")
	if !found {
		return p, "", false
	}
	var err1, err2 error
	p.Size = UntilEnd
	p.Off, err1 = strconv.ParseInt(off, 10, 64)
	if two {
		p.Size, err2 = strconv.ParseInt(size, 10, 64)
	}
	numbers := err1 == nil && err2 == nil && p.Off >= 0 && (!two || p.Size >= 0)
	if p.Size == 0 { // as GDAL has it
		p.Size = UntilEnd
	}
	return p, file, numbers
}

// Subfile parses the name of a byte range, "/vsisubfile/OFFSET_SIZE,FILE". Offset and size are in bytes. ok is false
// for any other name.
func Subfile(name string) (file string, off, size int64, ok bool) {
	rest, found := strings.CutPrefix(name, subfilePrefix)
	if !found {
		return "", 0, 0, false
	}
	p, file, ok := cutSubfile(rest)
	return file, p.Off, p.Size, ok && p.Size != UntilEnd
}

// SubfileName returns the name of a byte range, which Subfile reads.
func SubfileName(file string, off, size int64) string {
	p := Part{Off: off, Size: size}
	return p.Name(file)
}

// IsPart reports whether a name stands for a part of another file: a byte range (/vsisubfile/) or a member of an
// archive (/vsizip/, /vsitar/, or an array of a .npz file), or of JSON.
func IsPart(name string) bool {
	return IsRange(name) || strings.HasPrefix(name, zipPrefix) || strings.HasPrefix(name, tarPrefix) || inFile(name)
}

// IsRange reports whether a name stands for a byte range of another file (/vsisubfile/).
func IsRange(name string) bool { return strings.HasPrefix(name, subfilePrefix) }

// maxParts limits how deep the names of parts nest.
const maxParts = 8

// parsePart parses /vsisubfile/OFFSET_SIZE,FILE, and /vsizip/ARCHIVE.zip/MEMBER or /vsizip/{ARCHIVE}/MEMBER, and so
// of /vsitar/.
func parsePart(name string) (Path, error) {
	failed := Path{Scheme: fileSystem(vsiPrefix(name))}
	if inFile(name) {
		failed.Scheme = fileSystem(zipPrefix)
	}
	refuse := func(format string, args ...any) (Path, error) { return failed, unresolved(name, format, args...) }
	parsed, file, ok := cutPart(name)
	switch {
	case !ok && parsed.Archive():
		return refuse("no archive can be told in it: write %s{ARCHIVE}/MEMBER", vsiPrefix(name))
	case !ok || file == "":
		return refuse("it must be %sOFFSET_SIZE,FILE or %[1]sOFFSET,FILE, with numbers of at least 0", subfilePrefix)
	case strings.Count(file, "/vsi") >= maxParts:
		return refuse("over %d file systems in one another", maxParts)
	}
	parsed.Text, parsed.Member = name, strings.Trim(parsed.Member, "/")
	var err error
	if parsed.File, err = Parse(file); err != nil {
		return failed, err
	}
	if parsed.File.Scheme == "file" {
		parsed.File = Path{Name: parsed.File.Local()}
	}
	resolved := parsed.Name(parsed.File.Name)
	if again, file, ok := cutPart(resolved); !ok || file != parsed.File.Name || again.Member != parsed.Member {
		return refuse("the braces in the archive's name are not in pairs")
	}
	return Path{Name: resolved, Scheme: failed.Scheme, Part: &parsed}, nil
}

// archiveEndings end the name of an archive without braces.
var archiveEndings = append([]string{".zip", ".kmz", ".tacozip", arraysEnd}, tarEnds[:1]...)

// splitArchive splits what follows /vsizip/ or /vsitar/ into the archive and the member in it. An archive without
// braces ends where one of archiveEndings ends a part of the path for the first time.
func splitArchive(rest string) (file, member string, ok bool) {
	if strings.HasPrefix(rest, "{") {
		depth := 0
		for i := range len(rest) {
			switch rest[i] {
			case '{':
				depth++
			case '}':
				depth--
			}
			if depth == 0 {
				member = rest[i+1:]
				return rest[1:i], strings.TrimPrefix(member, "/"), i > 1 && (member == "" || member[0] == '/')
			}
		}
		return "", "", false
	}
	// GDAL takes /vsizip/vsicurl/… for /vsizip//vsicurl/….
	if vsiPrefix("/"+rest) != "" {
		rest = "/" + rest
	}
	// Only braces tell where an inner archive ends.
	if strings.HasPrefix(rest, zipPrefix) || strings.HasPrefix(rest, tarPrefix) {
		return "", "", false
	}
	for i := 0; i < len(rest); {
		end := strings.IndexByte(rest[i:], '/')
		if end < 0 {
			end = len(rest) - i
		}
		end += i
		for _, ending := range archiveEndings {
			if n := end - len(ending); n > i && strings.EqualFold(rest[n:end], ending) {
				return rest[:end], strings.TrimPrefix(rest[end:], "/"), true
			}
		}
		i = end + 1
	}
	return "", "", false
}
