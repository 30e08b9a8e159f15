package fault

import (
	"regexp"
	"strings"
)

// hidden takes the place of a secret.
const hidden = "…"

// The secrets that URIs and connection strings may have. Where a secret begins or ends is not always certain: then
// more is hidden rather than less. python/src/chaski/_secrets.py hides all that these rules hide, and more; testdata/
// secrets.json tests both.
var (
	// Two letters or digits: one would be a drive of Windows. GDAL's names begin with /vsiNAME/ in place of a scheme,
	// and a URI whose scheme is forgotten with two slashes, which no part of a path is before.
	anyScheme  = regexp.MustCompile(`[a-zA-Z0-9+.-][a-zA-Z0-9]:/|/vsi[a-z0-9_]+/|(?:^|` + noPath + `)//`)
	httpScheme = regexp.MustCompile(`(?i)https?:/`)
	// Before the "@" of these schemes is the name of a container.
	azureScheme    = regexp.MustCompile(`(?i)(?:^|[^a-z0-9+.-])(?:abfs|wasb)s?$`)
	azureContainer = regexp.MustCompile(`^[a-z0-9$-]+$`)
	// An IPv6 address has colons, which begin no password.
	ipv6Host = regexp.MustCompile(`^\[[0-9a-fA-F:.]*(?:%[^\]]*)?\](?::[0-9]*)?$`)
	// URIs in queries are percent-encoded, again in queries of queries, and JSON may have \/ or \u002f for "/".
	encodedScheme = regexp.MustCompile(`[a-zA-Z0-9+.-][a-zA-Z0-9](?:%(?:25)*3[aA](?:%(?:25)*2[fF]){1,2}|` +
		`:(?:\\+(?:/|u002[fF])){1,2})|(?:^|` + noPath + `)(?:(?:%(?:25)*2[fF]){2}|(?:\\+(?:/|u002[fF])){2})`)
	encodedSlash = regexp.MustCompile(`/|%(?:25)*2[fF]|\\u002[fF]`)
	encodedAt    = regexp.MustCompile(`@|%(?:25)*40`)
	encodedQuery = regexp.MustCompile(`\?|%(?:25)*3[fF]`)
	encodedWord  = regexp.MustCompile(`[^\t\n\f\r "]+`)
	// Only HTTP has queries without a value. In other URIs "?" is a wildcard unless a name and "=" follow. Stores
	// encode both where they take a query for a part of a key. The bound keeps the time of many "%3F" linear.
	parameter = regexp.MustCompile(`^[a-zA-Z0-9_.%-]{0,99}(?:=|%(?:25)*3[dD])`)
	// GDAL's names may have options, such as headers and cookies: /vsicurl?OPTION=VALUE&url=URL.
	vsiOptions = regexp.MustCompile(`/vsi[a-z0-9_]+\?[^\t\n\f\r "]+`)
	vsiOption  = regexp.MustCompile(`((?:[?&]|\\u0026)([^=&?\\]*)=)(?:[^&\\]|\\[^u])*`)
	// A list of names is left for texts without a scheme, such as the rest of a URI whose path has a space, or an SDK's
	// message with a query only. encoding/json writes "&" as \u0026.
	queryValue = regexp.MustCompile(`(?i)((?:[?&;#]|\\u0026)(?:sig|signature|token|access_token|key|api_?key|` +
		`password|passwd|pwd|secret|credential|awsaccesskeyid|googleaccessid|key-pair-id|policy|subscription-key|` +
		`x-(?:amz|goog|ms|oss|cos)-[a-z-]+)=)[^&;\t\n\f\r "\\]+`)
	// Azure's connection strings have these names.
	connectionValue = regexp.MustCompile(`(?i)\b(AccountKey|SharedAccessKey|SharedAccessSignature)=[^;\t\n\f\r "\\]+`)
)

// noPath matches a byte that is no part of a path or of a scheme.
const noPath = `[^a-zA-Z0-9_.~/:\\%+@-]`

// wordEnds are the bytes that end a URI in a text.
const wordEnds = "\t\n\f\r \""

// WithoutSecrets returns text without what gives access to the files of the URIs in it: users, passwords and queries
// (such as the signature of a presigned URL) of URIs, secret parameters, and the keys of connection strings. Errors,
// logs, metrics, reports and descriptions pass through it. Catalogs and specs keep them: they could not open their
// files otherwise. Its time grows with the length of text, whatever text is.
func WithoutSecrets(text string) string {
	// Lists of files have millions of URIs without secrets. A search for the bytes that secrets need reads some GB a
	// second.
	if strings.Contains(text, "/vsi") && strings.Contains(text, "?") {
		text = vsiOptions.ReplaceAllStringFunc(text, func(match string) string {
			return vsiOption.ReplaceAllStringFunc(match, func(option string) string {
				parts := vsiOption.FindStringSubmatch(option)
				if parts[2] == "url" { // the other rules hide the secrets of it
					return option
				}
				return parts[1] + hideQuery(option[len(parts[1]):])
			})
		})
	}
	if strings.ContainsAny(text, "@?") || strings.Contains(text, "3F") || strings.Contains(text, "3f") {
		text = eachURI(eachURI(eachURI(text, ":/"), "/vsi"), "//")
	}
	if strings.Contains(text, "%") && (strings.Contains(text, "2F") || strings.Contains(text, "2f")) ||
		strings.Contains(text, `:\`) || strings.Contains(text, "@") && strings.Contains(text, `\`) {
		text = encodedWord.ReplaceAllStringFunc(text, withoutEncoded)
	}
	if strings.Contains(text, "=") {
		text = queryValue.ReplaceAllStringFunc(text, func(match string) string {
			return queryValue.FindStringSubmatch(match)[1] + hidden + colonOf(match)
		})
		text = connectionValue.ReplaceAllString(text, "${1}="+hidden)
	}
	return text
}

// eachURI hides the secrets of each word of text that has a URI. sign is a part of each URI.
func eachURI(text, sign string) string {
	var out strings.Builder
	done := 0
	for {
		i := strings.Index(text[done:], sign)
		if i < 0 {
			if done == 0 {
				return text
			}
			out.WriteString(text[done:])
			return out.String()
		}
		i += done
		first := done + strings.LastIndexAny(text[done:i], wordEnds) + 1
		last := len(text)
		if n := strings.IndexAny(text[i:], wordEnds); n >= 0 {
			last = i + n
		}
		out.WriteString(text[done:first])
		out.WriteString(withoutQuery(withoutUsers(text[first:last])))
		done = last
	}
}

// withoutUsers hides the users and passwords of the URIs of a word.
func withoutUsers(word string) string {
	if !strings.Contains(word, "@") {
		return word
	}
	var out strings.Builder
	done, mark := 0, 0
	for _, numbers := range anyScheme.FindAllStringIndex(word, -1) {
		first := numbers[1]
		if first < done { // inside of a password
			continue
		}
		if strings.HasPrefix(word[first:], "/") { // a cleaned path has one slash after its scheme
			first++
		}
		if mark < first { // searched once for all URIs before it
			mark = len(word)
			if n := strings.IndexAny(word[first:], "@?"); n >= 0 {
				mark = first + n
			}
		}
		last := endOfUser(word, first, mark)
		if last < 0 || azureScheme.MatchString(word[max(0, numbers[1]-len("-abfss:/")):numbers[1]-len(":/")]) &&
			azureContainer.MatchString(word[first:last]) {
			continue
		}
		out.WriteString(word[done:first] + hidden)
		done = last
	}
	out.WriteString(word[done:])
	return out.String()
}

// endOfUser returns where the user and the password end that begin at first, or -1. mark is the next "@" or "?".
func endOfUser(word string, first, mark int) int {
	authority, _, _ := strings.Cut(word[first:], "/")
	if i := strings.LastIndexByte(authority, '@'); i >= 0 {
		return first + i
	}
	// A password with "/" follows a colon. Only digits would be a port, and an "@" after them would belong to the path.
	_, password, _ := strings.Cut(authority, ":")
	if strings.Trim(password, "0123456789") == "" || mark == len(word) || word[mark] == '?' ||
		ipv6Host.MatchString(authority) {
		return -1
	}
	return mark
}

// withoutQuery hides the query of a word as a whole: a list of the names of secrets would always lack one.
func withoutQuery(word string) string {
	uri := anyScheme.FindStringIndex(word)
	if uri == nil {
		return word
	}
	web := httpScheme.FindStringIndex(word)
	for first := uri[1]; ; {
		mark := encodedQuery.FindStringIndex(word[first:])
		if mark == nil {
			return word
		}
		first += mark[1]
		if web != nil && web[1] <= first && word[first-1] == '?' || parameter.MatchString(word[first:]) {
			return word[:first] + hideQuery(word[first:])
		}
	}
}

// withoutEncoded hides the users, passwords and queries of the encoded URIs of a word.
func withoutEncoded(word string) string {
	schemes := encodedScheme.FindAllStringIndex(word, -1)
	if schemes == nil {
		return word
	}
	var out strings.Builder
	done := 0
	for _, numbers := range schemes {
		authority := word[numbers[1]:]
		if slash := encodedSlash.FindStringIndex(authority); slash != nil {
			authority = authority[:slash[0]]
		}
		if ats := encodedAt.FindAllStringIndex(authority, -1); ats != nil {
			out.WriteString(word[done:numbers[1]] + hidden)
			done = numbers[1] + ats[len(ats)-1][0]
		}
	}
	out.WriteString(word[done:])
	word = out.String()
	first := schemes[0][1]
	if mark := encodedQuery.FindStringIndex(word[first:]); mark != nil {
		return word[:first+mark[1]] + hideQuery(word[first+mark[1]:])
	}
	return word
}

// hideQuery returns what takes the place of a query at the end of a word. In JSON, a backslash before the quote that
// ends the word belongs to that; two of them are a backslash of the query.
func hideQuery(query string) string {
	end := strings.TrimRight(query, `\`)
	end = query[:len(query)-(len(query)-len(end))%2]
	if end == "" {
		return query
	}
	return hidden + colonOf(end) + query[len(end):]
}

// colonOf returns the colon at the end of a secret. It comes after the file of an error.
func colonOf(secret string) string {
	if strings.HasSuffix(secret, ":") {
		return ":"
	}
	return ""
}
