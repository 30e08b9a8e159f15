package source

import (
	"net/url"
	"strconv"
	"strings"

	"github.com/chaski-eo/chaski/fault"
	"github.com/chaski-eo/chaski/internal/pathname"
)

// Names that other programs write. Resolve turns them into names that chaski opens: URIs of the schemes of Mux, local
// paths, and two forms of GDAL that stand for a part of another file, /vsisubfile/OFFSET_SIZE,FILE and
// /vsizip/{ARCHIVE}/MEMBER.

// alias is a beginning of names and what it stands for.
type alias struct {
	prefix string
	// resolve returns the name for what follows the prefix. Its errors say what is wrong with the name.
	resolve func(prefix, rest string) (string, error)
	// scheme is the scheme of the URIs that GDAL opens under the prefix, or "" if GDAL does not write the prefix.
	scheme string
}

// aliases are the beginnings of names that Resolve replaces. No prefix begins another one. A new scheme is one entry.
var aliases = [...]alias{
	{prefix: "/vsicurl/", resolve: curlURL, scheme: "http"},
	{prefix: "/vsicurl?", resolve: curlOptions},
	{prefix: "/vsicurl_streaming/", resolve: curlURL},
	{prefix: "/vsis3/", resolve: store("s3://"), scheme: "s3"},
	{prefix: "/vsis3_streaming/", resolve: store("s3://")},
	{prefix: "/vsigs/", resolve: store("gs://"), scheme: "gs"},
	{prefix: "/vsigs_streaming/", resolve: store("gs://")},
	{prefix: "/vsiaz/", resolve: azureStore, scheme: "az"},
	{prefix: "/vsiaz_streaming/", resolve: azureStore},
	{prefix: "/vsiadls/", resolve: azureStore},
	{prefix: "az://", resolve: azure},
	{prefix: "azure://", resolve: azure},
	{prefix: "abfs://", resolve: azure},
	{prefix: "abfss://", resolve: azure},
	{prefix: "wasb://", resolve: azure},
	{prefix: "wasbs://", resolve: azure},
	{prefix: "source://", resolve: sourceCooperative},
}

// Resolve returns the name by which chaski opens a name: of GDAL's virtual file systems (/vsicurl/URL,
// /vsis3/BUCKET/KEY, /vsizip/ARCHIVE.zip/MEMBER, …), and of schemes with several spellings
// (abfss://CONTAINER@ACCOUNT.dfs.core.windows.net/KEY, source://ACCOUNT/REPOSITORY/KEY). All other names, and names
// that it returned, stay as they are. A name that begins with /vsi but has no meaning here is fault.Unsupported.
func Resolve(name string) (string, error) {
	if !hasAlias(name) {
		return name, nil
	}
	if IsPart(name) {
		resolved, err := resolvePart(name)
		return resolved, fault.WithFile(err, name)
	}
	for _, a := range aliases {
		if len(name) >= len(a.prefix) && strings.EqualFold(name[:len(a.prefix)], a.prefix) {
			resolved, err := a.resolve(a.prefix, name[len(a.prefix):])
			return resolved, fault.WithFile(err, name)
		}
	}
	if prefix := vsiPrefix(name); prefix != "" {
		return "", fault.WithFile(unnamed("chaski does not read %s: of GDAL's file systems it reads %s", prefix,
			"/vsicurl/, /vsis3/, /vsigs/, /vsiaz/, /vsiadls/, /vsizip/ and /vsisubfile/"), name)
	}
	return name, nil
}

// hasAlias reports whether a name may begin with one of aliases. Catalogs have millions of names that do not.
func hasAlias(name string) bool {
	if strings.HasPrefix(name, "/") {
		return strings.HasPrefix(name, "/vsi")
	}
	i := strings.Index(name, "://")
	return i >= len("az") && i <= len("source")
}

// vsiPrefix returns the beginning of a name up to its second slash or to a "?", if GDAL would take it for a virtual
// file system, otherwise "".
func vsiPrefix(name string) string {
	rest, ok := strings.CutPrefix(name, "/vsi")
	end := strings.IndexAny(rest, "/?")
	if !ok || end < 1 {
		return ""
	}
	for _, c := range []byte(rest[:end]) {
		letter, digit := 'a' <= c && c <= 'z', '0' <= c && c <= '9'
		if !letter && !digit && c != '_' {
			return ""
		}
	}
	return name[:len("/vsi")+end+1]
}

// unnamed returns an error about a name that cannot be resolved.
func unnamed(format string, args ...any) error {
	return fault.New(fault.Unsupported, "name", fault.NoOffset, format, args...)
}

// store returns a function that puts a scheme before BUCKET/KEY.
func store(scheme string) func(string, string) (string, error) {
	return func(prefix, rest string) (string, error) {
		if strings.HasPrefix(rest, "/") {
			return "", unnamed("%s has no bucket", prefix)
		}
		return scheme + rest, nil
	}
}

// azureStore returns the name of CONTAINER/KEY behind one of GDAL's file systems for Azure.
func azureStore(prefix, rest string) (string, error) {
	if _, err := store("")(prefix, rest); err != nil {
		return "", err
	}
	return azure("az://", rest)
}

// curlURL returns the URL behind /vsicurl/.
func curlURL(prefix, rest string) (string, error) {
	if s := plainScheme(rest); s != "http" && s != "https" {
		return "", unnamed("%s has no URL of http:// or https:// behind it", prefix)
	}
	return rest, nil
}

// requestOptions are options of /vsicurl? that change how often and when GDAL requests, but not what it gets.
var requestOptions = map[string]bool{"use_head": true, "max_retry": true, "retry_delay": true, "retry_codes": true,
	"list_dir": true, "empty_dir": true, "use_redirect_url_if_no_query_string_params": true}

// curlOptions returns the URL in /vsicurl?url=URL&OPTION=VALUE, whose values are percent-encoded.
func curlOptions(prefix, rest string) (string, error) {
	found := ""
	for option := range strings.SplitSeq(rest, "&") {
		name, value, _ := strings.Cut(option, "=")
		switch {
		case name == "url":
			decoded, err := url.QueryUnescape(value)
			if err != nil {
				return "", unnamed("the url of %s is not percent-encoded", prefix)
			}
			found = decoded
		case !requestOptions[name]:
			return "", unnamed("chaski does not read the option %.40q of %s", name, prefix)
		}
	}
	return curlURL(prefix, found)
}

// sourceCooperative returns the URL of source://ACCOUNT/REPOSITORY/KEY, a file of Source Cooperative. The key is not
// escaped.
func sourceCooperative(prefix, rest string) (string, error) {
	if strings.HasPrefix(rest, "/") {
		return "", unnamed("%s has no account: it must be source://ACCOUNT/REPOSITORY/PATH", prefix)
	}
	parts := strings.Split(rest, "/")
	for i, part := range parts {
		parts[i] = url.PathEscape(part)
	}
	return strings.TrimSuffix("https://data.source.coop/"+strings.Join(parts, "/"), "/"), nil
}

// azure returns az://CONTAINER/KEY for a name without an account, and abfs://CONTAINER@HOST/KEY for one with an
// account. Secure spellings mean the same, because requests always use TLS.
func azure(prefix, rest string) (string, error) {
	authority, _, _ := strings.Cut(rest, "/")
	switch container, host, account := strings.Cut(authority, "@"); {
	case rest == "" && strings.HasPrefix(prefix, "az"): // all containers
		return "az://", nil
	case rest == "": // of all accounts
		return "abfs://", nil
	case container == "", account && host == "":
		return "", unnamed("it must be %sCONTAINER/KEY or %[1]sCONTAINER@ACCOUNT.dfs.core.windows.net/KEY", prefix)
	case account:
		return "abfs://" + rest, nil
	}
	return "az://" + rest, nil
}

// VSI returns the name under which GDAL opens a local path or URI. A URI that GDAL has no name for stays as it is.
func VSI(uri string) string {
	if p, ok := partOf(uri); ok {
		return p.with(VSI(p.file)).String()
	}
	s, rest, _ := strings.Cut(uri, "://")
	switch plainScheme(uri) {
	case "", "file":
		return LocalPath(uri)
	case "http", "https":
		return "/vsicurl/" + uri
	}
	for _, a := range aliases {
		if a.scheme != "" && strings.EqualFold(a.scheme, s) {
			return a.prefix + rest
		}
	}
	return uri
}

// part is a name that stands for a part of another file: a range of bytes, or a member of a ZIP.
type part struct {
	given  string // the name as somebody wrote it, for errors
	file   string // the other file, itself a name that Resolve returned
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

// String returns the name, which partOf reads.
func (p part) String() string {
	if !p.zip {
		buf := strconv.AppendInt([]byte(subfilePrefix), p.off, 10)
		if p.size != untilEnd {
			buf = strconv.AppendInt(append(buf, '_'), p.size, 10)
		}
		return string(append(append(buf, ','), p.file...))
	}
	name := zipPrefix + "{" + p.file + "}"
	if p.member != "" {
		name += "/" + p.member
	}
	return name
}

// with returns the part of the same range or member of another file.
func (p part) with(file string) part {
	p.file = file
	return p
}

// partOf parses a name that Resolve returned. ok is false if the name does not stand for a part of a file.
func partOf(name string) (p part, ok bool) {
	if !strings.HasPrefix(name, "/vsi") {
		return p, false
	}
	if rest, found := strings.CutPrefix(name, subfilePrefix); found {
		return parseSubfile(rest)
	}
	rest, found := strings.CutPrefix(name, zipPrefix)
	if !found {
		return p, false
	}
	p.file, p.member, ok = splitArchive(rest)
	p.zip = true
	return p, ok
}

// Subfile parses the name of a byte range, "/vsisubfile/OFFSET_SIZE,FILE". Offset and size are in bytes. ok is false
// for any other name.
func Subfile(name string) (file string, off, size int64, ok bool) {
	rest, found := strings.CutPrefix(name, subfilePrefix)
	if !found {
		return "", 0, 0, false
	}
	p, ok := parseSubfile(rest)
	return p.file, p.off, p.size, ok && p.size != untilEnd
}

// SubfileName returns the name of a byte range, which Subfile reads.
func SubfileName(file string, off, size int64) string {
	return part{file: file, off: off, size: size}.String()
}

func parseSubfile(rest string) (p part, ok bool) {
	span, file, found := strings.Cut(rest, ",")
	off, size, two := strings.Cut(span, "_")
	if !found {
		return p, false
	}
	var err1, err2 error
	p.file, p.size = file, untilEnd
	p.off, err1 = strconv.ParseInt(off, 10, 64)
	if two {
		p.size, err2 = strconv.ParseInt(size, 10, 64)
	}
	numbers := err1 == nil && err2 == nil && p.off >= 0
	if two {
		numbers = numbers && p.size >= 0
	}
	if p.size == 0 { // as GDAL has it
		p.size = untilEnd
	}
	return p, numbers
}

// maxParts limits how deep the names of parts nest.
const maxParts = 8

// resolvePart resolves the file in /vsisubfile/OFFSET_SIZE,FILE, and the archive in /vsizip/ARCHIVE.zip/MEMBER or
// /vsizip/{ARCHIVE}/MEMBER.
func resolvePart(name string) (string, error) {
	part, ok := partOf(name)
	switch {
	case !ok && strings.HasPrefix(name, zipPrefix):
		return "", unnamed("no archive can be told in it: write %s{ARCHIVE}/MEMBER", zipPrefix)
	case !ok || part.file == "":
		return "", unnamed("it must be %sOFFSET_SIZE,FILE or %[1]sOFFSET,FILE, with numbers of at least 0",
			subfilePrefix)
	case strings.Count(part.file, subfilePrefix)+strings.Count(part.file, zipPrefix) >= maxParts:
		return "", unnamed("over %d file systems in one another", maxParts)
	}
	part.member = strings.Trim(part.member, "/")
	file, err := Resolve(part.file)
	if err != nil {
		return "", err
	}
	part = part.with(LocalPath(file))
	if again, ok := partOf(part.String()); !ok || again.file != part.file || again.member != part.member {
		return "", unnamed("the braces in the archive's name are not in pairs")
	}
	return part.String(), nil
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

// IsPart reports whether a name stands for a part of another file: a byte range (/vsisubfile/) or a member of a ZIP
// (/vsizip/).
func IsPart(name string) bool { return IsRange(name) || strings.HasPrefix(name, zipPrefix) }

// IsRange reports whether a name stands for a byte range of another file (/vsisubfile/).
func IsRange(name string) bool { return strings.HasPrefix(name, subfilePrefix) }

// FileOf returns the file whose part a name stands for, or the name itself. Parts of parts lead to the outermost file.
func FileOf(name string) string {
	for {
		resolved, err := Resolve(name)
		if err != nil {
			return name
		}
		part, ok := partOf(resolved)
		if !ok {
			return resolved
		}
		name = part.file
	}
}

// ResolveFrom resolves a name as Resolve does, and a relative path in it by join, which gets a path that is not
// absolute and belongs to no scheme, or the name itself if it has one. A name that cannot be resolved stays as it is,
// so that opening it says why.
func ResolveFrom(name string, join func(name string) string) string {
	resolved, err := Resolve(name)
	if err != nil {
		return name
	}
	if p, ok := partOf(resolved); ok {
		return p.with(ResolveFrom(p.file, join)).String()
	}
	return join(resolved)
}

// Abs returns a local path as an absolute one, also the path of a file whose part a name stands for. The names of
// remote objects stay as they are.
func Abs(name string) (string, error) {
	var err error
	abs := ResolveFrom(name, func(path string) string {
		if IsRemote(path) {
			return path
		}
		full, aerr := pathname.Abs(LocalPath(path))
		if aerr != nil {
			err = aerr
		}
		return full
	})
	return abs, err
}
