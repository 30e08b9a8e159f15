package fault

import "strings"

// MaxText bounds the text of an Error and of messages about errors, in bytes: a table may have thousands of columns,
// and an error names them all; a hostile file has names of megabytes. The status of a call has less room, since it
// travels in headers.
const MaxText = 8 << 10

// maxName bounds the names that errors quote, in bytes. File systems bound names to 255; people write far shorter ones.
const maxName = 64

// omitted stands for the middle of a text.
const omitted = " … "

// Fit returns s as UTF-8 of at most MaxText bytes. Of a longer text the middle is left out: an error begins with the
// file that it is about, and ends with its kind.
func Fit(s string) string { return FitIn(s, MaxText) }

// FitIn is Fit with a bound of n bytes, at least 16.
func FitIn(s string, n int) string {
	if len(s) > 4*n { // the middle is left out anyway, so it need not be looked at
		s = s[:2*n] + omitted + s[len(s)-2*n:]
	}
	s = strings.ToValidUTF8(s, "\uFFFD")
	if len(s) <= n {
		return s
	}
	half := (n - len(omitted)) / 2
	return strings.ToValidUTF8(s[:half], "") + omitted + strings.ToValidUTF8(s[len(s)-half:], "")
}

// Short returns a name from a file, such as the name of a band, for an error: without secrets, and with "…" for
// what follows its first 64 bytes. A secret is hidden before, because a piece of a URI cannot be told from other text.
func Short(name string) string {
	if len(name) <= maxName {
		return name
	}
	if name = WithoutSecrets(name); len(name) <= maxName {
		return name
	}
	return strings.ToValidUTF8(name[:maxName], "") + "…"
}
