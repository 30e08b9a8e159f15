// Command fuzztable writes how many inputs each fuzz target ran into a table of docs/fuzzing.md, between two comments.
// It reads the lines that tools/fuzz.sh appends to CHASKI_FUZZ_COUNTS: package, target, time and count, with tabs
// between. Targets that did not run this time keep their rows.
//
//	fuzztable docs/fuzzing.md <counts
package main

import (
	"bufio"
	"fmt"
	"io"
	"maps"
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
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: fuzztable FILE <counts")
		os.Exit(2)
	}
	if err := run(os.Args[1], time.Now(), os.Stdin); err != nil {
		fmt.Fprintln(os.Stderr, "fuzztable:", err)
		os.Exit(1)
	}
}

func run(file string, now time.Time, in io.Reader) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	before, rest, ok := strings.Cut(string(text), begin)
	old, after, found := strings.Cut(rest, end)
	if !ok || !found {
		return fmt.Errorf("%s has no %s", file, strings.TrimSpace(begin))
	}
	table, err := table(old, now, in)
	if err != nil {
		return err
	}
	return os.WriteFile(file, []byte(before+begin+table+end+after), 0o644)
}

// table returns the table of the counts, in order of the packages.
func table(old string, now time.Time, in io.Reader) (string, error) {
	rows := map[string]string{} // by the cells of package and target
	for line := range strings.Lines(old) {
		if cells := strings.SplitN(line, "|", 4); len(cells) == 4 && strings.HasPrefix(line, "| `") {
			rows[strings.Join(cells[:3], "|")] = line
		}
	}
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		parts := strings.Split(lines.Text(), "\t")
		if len(parts) != 4 {
			return "", fmt.Errorf("%q is not PACKAGE, TARGET, TIME and COUNT", lines.Text())
		}
		name := strings.TrimPrefix(parts[0], "github.com/chaski-eo/chaski/")
		key := fmt.Sprintf("| `%s` | `%s` ", name, parts[1])
		on := now.UTC().Format(time.DateOnly)
		rows[key] = fmt.Sprintf("%s| %s | %s | %s |\n", key, on, parts[2], grouped(parts[3]))
	}
	head := "\n| package | target | on | for | inputs |\n|---|---|---|---:|---:|\n"
	return head + strings.Join(slices.Sorted(maps.Values(rows)), "") + "\n", lines.Err()
}

// grouped puts commas between groups of three digits.
func grouped(n string) string {
	for i := len(n) - 3; i > 0; i -= 3 {
		n = n[:i] + "," + n[i:]
	}
	return n
}
