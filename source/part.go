package source

import (
	"strconv"
	"strings"
)

// part is a part of another file: a range of bytes, or a member of a ZIP.
type part struct {
	text   string // the name as somebody wrote it, for errors
	file   Path
	zip    bool
	member string // of a ZIP, "" for the archive itself
	off    int64  // of a range, bytes
	size   int64  // untilEnd: up to the end of the file
}

// untilEnd is the size of a range without one.
const untilEnd = -1

const (
	subfilePrefix = "/vsisubfile/"
	zipPrefix     = "/vsizip/"
)

// name returns the name of the same range or member of a file.
func (p *part) name(file string) string {
	if !p.zip {
		buf := strconv.AppendInt([]byte(subfilePrefix), p.off, 10)
		if p.size != untilEnd {
			buf = strconv.AppendInt(append(buf, '_'), p.size, 10)
		}
		return string(append(append(buf, ','), file...))
	}
	name := zipPrefix + "{" + file + "}"
	if p.member != "" {
		name += "/" + p.member
	}
	return name
}

// ArchiveName returns the name of the directory in a ZIP.
func ArchiveName(file string) string {
	p := part{zip: true}
	return p.name(file)
}

// cutPart parses a name that stands for a part of a file, but not the name of that file.
func cutPart(name string) (p part, file string, ok bool) {
	if rest, found := strings.CutPrefix(name, subfilePrefix); found {
		return cutSubfile(rest)
	}
	p.zip = true
	file, p.member, ok = splitArchive(strings.TrimPrefix(name, zipPrefix))
	return p, file, ok
}

// cutSubfile parses what follows /vsisubfile/.
func cutSubfile(rest string) (p part, file string, ok bool) {
	span, file, found := strings.Cut(rest, ",")
	off, size, two := strings.Cut(span, "_")
	if !found {
		return p, "", false
	}
	var err1, err2 error
	p.size = untilEnd
	p.off, err1 = strconv.ParseInt(off, 10, 64)
	if two {
		p.size, err2 = strconv.ParseInt(size, 10, 64)
	}
	numbers := err1 == nil && err2 == nil && p.off >= 0 && (!two || p.size >= 0)
	if p.size == 0 { // as GDAL has it
		p.size = untilEnd
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
	return file, p.off, p.size, ok && p.size != untilEnd
}

// SubfileName returns the name of a byte range, which Subfile reads.
func SubfileName(file string, off, size int64) string {
	p := part{off: off, size: size}
	return p.name(file)
}

// IsPart reports whether a name stands for a part of another file: a byte range (/vsisubfile/) or a member of a ZIP
// (/vsizip/).
func IsPart(name string) bool { return IsRange(name) || strings.HasPrefix(name, zipPrefix) }

// IsRange reports whether a name stands for a byte range of another file (/vsisubfile/).
func IsRange(name string) bool { return strings.HasPrefix(name, subfilePrefix) }

// maxParts limits how deep the names of parts nest.
const maxParts = 8

// parsePart parses /vsisubfile/OFFSET_SIZE,FILE, and /vsizip/ARCHIVE.zip/MEMBER or /vsizip/{ARCHIVE}/MEMBER.
func parsePart(name string) (Path, error) {
	failed := Path{Scheme: fileSystem(vsiPrefix(name))}
	refuse := func(format string, args ...any) (Path, error) { return failed, unresolved(name, format, args...) }
	parsed, file, ok := cutPart(name)
	switch {
	case !ok && parsed.zip:
		return refuse("no archive can be told in it: write %s{ARCHIVE}/MEMBER", zipPrefix)
	case !ok || file == "":
		return refuse("it must be %sOFFSET_SIZE,FILE or %[1]sOFFSET,FILE, with numbers of at least 0", subfilePrefix)
	case strings.Count(file, subfilePrefix)+strings.Count(file, zipPrefix) >= maxParts:
		return refuse("over %d file systems in one another", maxParts)
	}
	parsed.text, parsed.member = name, strings.Trim(parsed.member, "/")
	var err error
	if parsed.file, err = Parse(file); err != nil {
		return failed, err
	}
	if parsed.file.Scheme == "file" {
		parsed.file = Path{Name: parsed.file.Local()}
	}
	resolved := parsed.name(parsed.file.Name)
	if again, file, ok := cutPart(resolved); !ok || file != parsed.file.Name || again.member != parsed.member {
		return refuse("the braces in the archive's name are not in pairs")
	}
	return Path{Name: resolved, Scheme: failed.Scheme, part: &parsed}, nil
}

// archiveEndings end the name of an archive without braces.
var archiveEndings = [...]string{".zip", ".kmz", ".tacozip"}

// splitArchive splits what follows /vsizip/ into the archive and the member in it. An archive without braces ends
// where one of archiveEndings ends a part of the path for the first time.
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
	if strings.HasPrefix(rest, zipPrefix) { // only braces tell where the inner archive ends
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
