package fault

import (
	"slices"
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
	if omitted := len(items) - len(text); omitted > 0 {
		list += " and " + strconv.Itoa(omitted) + " more"
	}
	return list
}

// Names is List of strings.
func Names(names []string) string { return List(names, Itself) }

const (
	// maxCompared names with at most maxName bytes each are compared in 16 ki * 64 * 64 = 64 Mi steps, some 0.1 s.
	maxCompared = 16 << 10
	maxEdits    = 2 // of a name that is near to another one
)

// Near is List for an error about a name that is not there. Where not all items are listed, those with a name near to
// it come first, the nearest before others: names that differ in at most two letters, apart from capitals.
func Near[T any](missing string, items []T, name func(T) string) string {
	if len(items) <= maxListed {
		return List(items, name)
	}
	var near [maxEdits + 2][]T // by edits; the last ones are not near
	for i, item := range items {
		n := maxEdits + 1
		if i < maxCompared {
			n = min(n, edits(strings.ToLower(missing), strings.ToLower(name(item))))
		}
		near[n] = append(near[n], item)
	}
	return List(slices.Concat(near[:]...), name)
}

// Itself is the name of a string, for Near.
func Itself(name string) string { return name }

// edits returns how many letters are inserted, removed or replaced to make b of a (the distance of Levenshtein), or a
// larger number than maxEdits if these are long names, or their lengths alone say that there are more.
func edits(a, b string) int {
	if max(len(a), len(b)) > maxName || max(len(a), len(b))-min(len(a), len(b)) > maxEdits {
		return maxEdits + 1
	}
	var row [maxName + 1]int // from the first i letters of a to each beginning of b
	for j := range len(b) + 1 {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replaced := diagonal
			if a[i] != b[j] {
				replaced++
			}
			diagonal = row[j+1]
			row[j+1] = min(replaced, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
