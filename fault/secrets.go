package fault

import (
	"regexp"
	"strings"
)

// hidden takes the place of a secret.
const hidden = "…"

// The secrets that URIs and connection strings may have. Where a secret begins or ends is not always certain, so each
// pattern rather hides too much.
//
// Texts may be JSON, of which no quote or escape may be cut: a backslash counts with the character after it, unless
// that is a quote. A cleaned path has one slash after its scheme.
var (
	// A user with a password may have any byte but "/" before the last "@" of the host.
	userOfURI = regexp.MustCompile(`(` + scheme + `)[^/\s"]*@`)
	// A password with "/" follows a colon. Digits between the colon and "/" are a port instead, and an "@" after them
	// belongs to the path.
	slashedPassword = regexp.MustCompile(`(` + scheme + `)[^/@:\s"]*:[0-9]*[^0-9/@\s"?][^@\s"?]*@`)
	// The query of a URI is hidden as a whole: a list of the names of secrets would always lack one.
	queryOfURI = regexp.MustCompile(`(` + scheme + `[^?\s"]*\?)(?:[^\s"\\]|\\[^"])+`)
	// A list of names is left for texts without a scheme, such as the rest of a URI whose path has a space, or an SDK's
	// message with a query only. encoding/json writes "&" as \u0026.
	queryValue = regexp.MustCompile(`(?i)((?:[?&;]|\\u0026)(?:sig|signature|token|access_token|key|api_?key|password|` +
		`passwd|pwd|secret|credential|awsaccesskeyid|googleaccessid|key-pair-id|policy|subscription-key|` +
		`x-(?:amz|goog|ms|oss|cos)-[a-z-]+)=)[^&;\s"\\]+`)
	// Azure's connection strings have these names.
	connectionValue = regexp.MustCompile(`(?i)\b(AccountKey|SharedAccessKey|SharedAccessSignature)=[^;\s"\\]+`)
)

// scheme matches the beginning of a URI. One letter would be a drive of Windows.
const scheme = `\b[a-zA-Z][a-zA-Z0-9+.-]+:/{1,2}`

// WithoutSecrets returns text without what gives access to the files of the URIs in it: users, passwords and queries
// (such as the signature of a presigned URL) of URIs, secret parameters, and the keys of connection strings. Errors,
// logs, metrics, reports and descriptions pass through it. Catalogs, specs and plans of jobs do not, because they could
// not open their files afterwards.
func WithoutSecrets(text string) string {
	// Lists of files have millions of URIs without secrets. Each pattern reads some MB a second, and a search for the
	// byte that it needs some GB.
	if strings.Contains(text, ":/") {
		if strings.Contains(text, "@") {
			text = slashedPassword.ReplaceAllString(text, "${1}"+hidden+"@")
			text = userOfURI.ReplaceAllString(text, "${1}"+hidden+"@")
		}
		if strings.Contains(text, "?") {
			text = hide(queryOfURI, text)
		}
	}
	if strings.Contains(text, "=") {
		text = hide(queryValue, text)
		text = connectionValue.ReplaceAllString(text, "${1}="+hidden)
	}
	return text
}

// hide replaces what follows the first group of a pattern. A colon at its end stays: it comes after the file of an
// error.
func hide(pattern *regexp.Regexp, text string) string {
	return pattern.ReplaceAllStringFunc(text, func(match string) string {
		kept := pattern.FindStringSubmatch(match)[1] + hidden
		if strings.HasSuffix(match, ":") {
			kept += ":"
		}
		return kept
	})
}
