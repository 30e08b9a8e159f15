// Command fuzztable writes how many inputs each fuzz target ran into a table of docs/fuzzing.md, between two comments.
// It reads the lines that tools/fuzz.sh appends to CHASKI_FUZZ_COUNTS: package, target and count, with tabs between.
//
//	fuzztable docs/fuzzing.md 10m <counts
package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"
)

// The comments around the table.
const (
	begin = "<!-- counts: make fuzz-long -->\n"
	end   = "<!-- end of counts -->\n"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: fuzztable FILE TIME <counts")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2], time.Now(), os.Stdin); err != nil {
		fmt.Fprintln(os.Stderr, "fuzztable:", err)
		os.Exit(1)
	}
}

func run(file, each string, now time.Time, in io.Reader) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	before, rest, ok := strings.Cut(string(text), begin)
	_, after, found := strings.Cut(rest, end)
	if !ok || !found {
		return fmt.Errorf("%s has no %s", file, strings.TrimSpace(begin))
	}
	table, err := table(each, now, in)
	if err != nil {
		return err
	}
	return os.WriteFile(file, []byte(before+begin+table+end+after), 0o644)
}

// table returns the table of the counts, in order of the packages.
func table(each string, now time.Time, in io.Reader) (string, error) {
	var rows []string
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		parts := strings.Split(lines.Text(), "\t")
		if len(parts) != 3 {
			return "", fmt.Errorf("%q is not PACKAGE, TARGET and COUNT", lines.Text())
		}
		name := strings.TrimPrefix(parts[0], "github.com/chaski-eo/chaski/")
		rows = append(rows, fmt.Sprintf("| `%s` | `%s` | %s |\n", name, parts[1], grouped(parts[2])))
	}
	slices.Sort(rows)
	head := fmt.Sprintf("\n%s, %s for each target:\n\n| package | target | inputs |\n|---|---|---:|\n",
		now.UTC().Format(time.DateOnly), each)
	return head + strings.Join(rows, "") + "\n", lines.Err()
}

// grouped puts commas between groups of three digits.
func grouped(n string) string {
	for i := len(n) - 3; i > 0; i -= 3 {
		n = n[:i] + "," + n[i:]
	}
	return n
}
