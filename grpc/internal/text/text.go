// Package text makes texts of errors and names fit for messages, which are UTF-8 and have bounds.
package text

import "strings"

// Max bounds a text in a message, in bytes: a table may have thousands of columns, and an error names them all. The
// status of a call has less room, since it travels in headers.
const Max = 8 << 10

// omitted stands for the middle of a text.
const omitted = " … "

// Fit returns s as UTF-8 of at most Max bytes. Of a longer text the middle is left out: an error begins with the
// file that it is about, and ends with its kind.
func Fit(s string) string { return FitIn(s, Max) }

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
