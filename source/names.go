package source

import (
	"fmt"
	"net/url"
	"strings"

	"github.com/chaski-eo/chaski/fault"
)

// Names that other programs write. Parse turns them into paths.

// schemeAlias is a beginning of names and what it stands for.
type schemeAlias struct {
	prefix string
	// resolve returns the name for what follows the prefix. Its errors say what is wrong with the name.
	resolve func(prefix, rest string) (string, error)
	// scheme is the scheme of the URIs that GDAL opens under the prefix, or "" if GDAL does not write the prefix.
	scheme string
}

// aliases are the beginnings of names that Parse replaces. No prefix begins another one. A new scheme is one entry.
var aliases = [...]schemeAlias{
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

// hasAlias reports whether a name may begin with one of aliases. Catalogs have millions of names that do not.
func hasAlias(name string) bool {
	if strings.HasPrefix(name, "/") {
		return strings.HasPrefix(name, "/vsi")
	}
	scheme, _, found := strings.Cut(name, "://")
	return found && len(scheme) <= longestAlias
}

// longestAlias is the length of the longest scheme among aliases.
var longestAlias = func() (longest int) {
	for _, a := range aliases {
		if scheme, _, found := strings.Cut(a.prefix, "://"); found {
			longest = max(longest, len(scheme))
		}
	}
	return longest
}()

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

// unresolved returns the error about a name that stands for no path.
func unresolved(name, format string, args ...any) error {
	return &fault.Error{Kind: fault.Unsupported, File: name, Part: "name", Off: fault.NoOffset,
		Msg: fmt.Sprintf(format, args...)}
}

// store returns a function that puts a scheme before BUCKET/KEY.
func store(scheme string) func(string, string) (string, error) {
	return func(prefix, rest string) (string, error) {
		if strings.HasPrefix(rest, "/") {
			return "", fmt.Errorf("%s has no bucket", prefix)
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
		return "", fmt.Errorf("%s has no URL of http:// or https:// behind it", prefix)
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
				return "", fmt.Errorf("the url of %s is not percent-encoded", prefix)
			}
			found = decoded
		case !requestOptions[name]:
			return "", fmt.Errorf("chaski does not read the option %.40q of %s", name, prefix)
		}
	}
	return curlURL(prefix, found)
}

// sourceCooperative returns the URL of source://ACCOUNT/REPOSITORY/KEY, a file of Source Cooperative. The key is not
// escaped.
func sourceCooperative(prefix, rest string) (string, error) {
	if strings.HasPrefix(rest, "/") {
		return "", fmt.Errorf("%s has no account: it must be source://ACCOUNT/REPOSITORY/PATH", prefix)
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
		return "", fmt.Errorf("it must be %sCONTAINER/KEY or %[1]sCONTAINER@ACCOUNT.dfs.core.windows.net/KEY", prefix)
	case account:
		return "abfs://" + rest, nil
	}
	return "az://" + rest, nil
}
