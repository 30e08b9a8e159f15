package container

import (
	"fmt"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/chaski-eo/chaski/tables/query"
)

// functionHelp describes the SQL functions, by groups. The query package writes it, so that help and
// engine agree. Tests make the commands thousands of times in one process.
var functionHelp = sync.OnceValue(func() string {
	var b strings.Builder
	group := ""
	for _, f := range query.Functions() {
		if f.Group != group {
			group = f.Group
			fmt.Fprintf(&b, "%s:\n", group)
		}
		for i, line := range wrap(strings.ReplaceAll(f.Doc, "`", ""), helpWidth-helpIndent) {
			if i == 0 && len(f.Signature) <= helpIndent-3 {
				fmt.Fprintf(&b, "  %-*s%s\n", helpIndent-2, f.Signature, line)
				continue
			}
			if i == 0 {
				fmt.Fprintf(&b, "  %s\n", f.Signature)
			}
			fmt.Fprintf(&b, "%*s%s\n", helpIndent, "", line)
		}
	}
	return strings.TrimSuffix(b.String(), "\n")
})

const (
	helpWidth  = 100 // columns: as wide as the help of the other commands
	helpIndent = 36  // columns before a description: most signatures are shorter than 34
)

// wrap breaks text between words into lines of at most width runes. A longer word has a line of its own.
func wrap(text string, width int) []string {
	var lines []string
	line := ""
	for _, word := range strings.Fields(text) {
		if line != "" && utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > width {
			lines, line = append(lines, line), ""
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	return append(lines, line)
}
