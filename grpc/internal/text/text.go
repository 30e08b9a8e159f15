// Package text makes texts of errors and names fit for messages, which are UTF-8 and have bounds.
package text

import "strings"

// Max bounds a text in a message, in bytes. An error of a call travels in its headers, three times and encoded, and
// receivers of those bound them; a table may have thousands of columns, and an error names them all.
const Max = 8 << 10

// omitted stands for the middle of a text.
const omitted = " … "

// Fit returns s as UTF-8 of at most Max bytes. Of a longer text the middle is left out: an error begins with the
// file that it is about, and ends with its kind.
func Fit(s string) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if len(s) <= Max {
		return s
	}
	const half = (Max - len(omitted)) / 2
	return strings.ToValidUTF8(s[:half], "") + omitted + strings.ToValidUTF8(s[len(s)-half:], "")
}
