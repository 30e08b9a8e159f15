package source

import (
	"net/url"
	"os"
	"strings"
)

// Other tools name objects in other ways: GDAL by the prefixes of its virtual file systems, and fsspec and rasters of
// Source Cooperative by schemes that stand for others. A Mux opens all of them.

// fileSystems are GDAL's virtual file systems, with the scheme that each stands for. Those with an empty one are not
// read, and /vsicurl/ has a whole URL behind it.
var fileSystems = map[string]string{
	"vsicurl": "http", "vsicurl_streaming": "http", "vsis3": "s3", "vsis3_streaming": "s3", "vsigs": "gs",
	"vsigs_streaming": "gs", "vsiaz": "az", "vsiaz_streaming": "az", "vsiadls": "az", "vsizip": "vsizip",
	"vsioss": "", "vsiswift": "", "vsihdfs": "", "vsiwebhdfs": "", "vsigzip": "", "vsitar": "", "vsi7z": "",
	"vsirar": "", "vsimem": "", "vsistdin": "", "vsisparse": "", "vsicrypt": "", "vsicached": "",
}

// fileSystem splits a name such as /vsis3/bucket/key into the file system and what follows it. ok is false for a name
// of another form. /vsisubfile/ is a range of a file, which is none of them.
func fileSystem(name string) (system, rest string, ok bool) {
	if !strings.HasPrefix(name, "/vsi") {
		return "", "", false
	}
	end := strings.IndexAny(name[1:], "/?")
	if end < 0 {
		return "", "", false
	}
	system, rest = name[1:1+end], name[1+end:]
	_, ok = fileSystems[system]
	return system, rest, ok
}

// vsiScheme returns the scheme of a name in one of GDAL's file systems.
func vsiScheme(name string) (scheme string, ok bool) {
	system, _, ok := fileSystem(name)
	if !ok {
		return "", false
	}
	switch scheme = fileSystems[system]; scheme {
	case "":
		return system, true
	case "http":
		address := Canonical(name)
		if !isHTTP(address) {
			return system, true
		}
		scheme, _, _ = strings.Cut(address, ":")
	}
	return scheme, true
}

// Canonical returns the name by which an object is opened whose name another tool has given:
//
//	/vsicurl/URL, /vsicurl?…&url=URL     URL
//	/vsis3/, /vsigs/, /vsiaz/, /vsiadls/ s3://, gs://, az://
//	source://ACCOUNT/REPOSITORY/PATH     https://data.source.coop/ACCOUNT/REPOSITORY/PATH
//	abfs://CONTAINER/PATH, abfss://      az://CONTAINER/PATH
//	abfs://CONTAINER@HOST/PATH           az://CONTAINER/PATH, or its URL if the account is not AZURE_STORAGE_ACCOUNT
//
// All other names stay as they are.
func Canonical(name string) string {
	if system, rest, ok := fileSystem(name); ok {
		switch scheme := fileSystems[system]; {
		case scheme == "http":
			if address := curled(rest); isHTTP(address) { // nothing else: a path must not hide in it
				return address
			}
		case scheme != "" && scheme != system && strings.HasPrefix(rest, "/"):
			return scheme + ":/" + rest
		}
		return name
	}
	scheme, rest, ok := strings.Cut(name, "://")
	if !ok {
		return name
	}
	switch strings.ToLower(scheme) {
	case "source":
		return "https://data.source.coop/" + rest
	case "abfs", "abfss":
		return azure(rest)
	}
	return name
}

// curled returns the URL of /vsicurl/URL or /vsicurl?option=value&url=URL, from what follows "vsicurl".
func curled(rest string) string {
	if options, ok := strings.CutPrefix(rest, "?"); ok {
		values, err := url.ParseQuery(options)
		if err != nil {
			return ""
		}
		return values.Get("url")
	}
	return rest[1:]
}

func isHTTP(address string) bool {
	return strings.HasPrefix(address, "http://") || strings.HasPrefix(address, "https://")
}

// InZip splits /vsizip/ARCHIVE.zip/FILE or /vsizip/{ARCHIVE}/FILE into the name of an archive, which may be in another
// file system, and a file in it.
func InZip(name string) (archive, file string, ok bool) {
	rest, ok := strings.CutPrefix(name, "/vsizip/")
	if !ok {
		return "", "", false
	}
	if inside, is := strings.CutPrefix(rest, "{"); is {
		archive, file, ok = strings.Cut(inside, "}/")
		return archive, file, ok && archive != "" && file != ""
	}
	end := strings.Index(strings.ToLower(rest), ".zip/")
	if end < 1 {
		return "", "", false
	}
	archive, file = rest[:end+len(".zip")], rest[end+len(".zip/"):]
	return archive, file, file != ""
}

// azure returns the name of an object of abfs://, CONTAINER/PATH or CONTAINER@ACCOUNT.dfs.HOST/PATH.
func azure(rest string) string {
	where, path, _ := strings.Cut(rest, "/")
	container, host, ok := strings.Cut(where, "@")
	if account, _, _ := strings.Cut(host, "."); !ok || account == os.Getenv("AZURE_STORAGE_ACCOUNT") {
		return "az://" + container + "/" + path
	}
	return "https://" + strings.Replace(host, ".dfs.", ".blob.", 1) + "/" + container + "/" + path
}
