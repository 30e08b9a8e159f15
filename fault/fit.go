package fault

import (
	"strconv"
	"strings"
)

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

// maxListed is how many names an error lists.
const maxListed = 24

// List lists names from a file for an error: the first ones, as Short has them, and how many more there are.
func List[T any](items []T, name func(T) string) string {
	if len(items) == 0 {
		return "none"
	}
	var text []string
	for _, item := range items[:min(len(items), maxListed)] {
		text = append(text, Short(name(item)))
	}
	list := strings.Join(text, ", ")
	if more := len(items) - len(text); more > 0 {
		list += " and " + strconv.Itoa(more) + " more"
	}
	return list
}

// Names is List of strings.
func Names(names []string) string { return List(names, func(name string) string { return name }) }
