// Command metrics writes what is made from the list of a server's metrics: the table of docs/metrics.md, and the
// dashboard deploy/grafana/chaski.json. With --check it writes nothing, and fails if they differ.
package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"strings"

	"github.com/chaski-eo/chaski/grpc/server"
)

const (
	page      = "docs/metrics.md"
	dashboard = "deploy/grafana/chaski.json"
	// begin and end stand around the table in the page.
	begin = "<!-- The table is written by go run ./tools/metrics. -->\n"
	end   = "<!-- end -->\n"
)

func main() {
	check := flag.Bool("check", false, "write nothing, and fail if a file differs")
	flag.Parse()
	if err := run(*check); err != nil {
		fmt.Fprintln(os.Stderr, "metrics:", err)
		os.Exit(1)
	}
}

func run(check bool) error {
	text, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	before, rest, found := strings.Cut(string(text), begin)
	_, after, closed := strings.Cut(rest, end)
	if !found || !closed {
		return fmt.Errorf("%s: no %q and %q", page, begin, end)
	}
	board, err := boardJSON(server.Metrics)
	if err != nil {
		return err
	}
	for path, want := range map[string][]byte{
		page:      []byte(before + begin + table(server.Metrics) + end + after),
		dashboard: board,
	} {
		have, _ := os.ReadFile(path) // a missing file differs, too
		switch {
		case bytes.Equal(have, want):
		case check:
			return fmt.Errorf("%s is not made from the list of metrics: go run ./tools/metrics", path)
		default:
			if err := os.WriteFile(path, want, 0o644); err != nil {
				return err
			}
		}
	}
	return nil
}

// table returns the metrics as Markdown.
func table(list []server.Metric) string {
	var b strings.Builder
	b.WriteString("\n| metric | type | label | |\n|---|---|---|---|\n")
	for _, m := range list {
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", m.Name, m.Type, m.Label, m.Help)
	}
	b.WriteString("\n")
	return b.String()
}
