package report

import "html/template"

// The names here are for pages about other things that look like a report, so that all pages of chaski have one style.

// Style returns the style sheet.
func Style() template.CSS { return template.CSS(styleText) }

// Clean makes any text one line that cannot make a page look different from its content.
func Clean(s string) string { return clean(s) }

// Bytes formats a number of bytes.
func Bytes(n int64) string { return bytesText(n) }

// Thousands formats a number with spaces between thousands.
func Thousands(n int64) string { return thousands(n) }
