package main

import (
	"bytes"
	"fmt"
	"go/scanner"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"
)

const (
	goColumns       = 120 // two files fit side by side on a wide screen
	markdownColumns = 100
	codeColumns     = 88 // of code in Markdown: the site shows as many at a width of 1366 pixels
	tab             = 4
)

var (
	generated = regexp.MustCompile(`(?m)^// Code generated .* DO NOT EDIT\.$`)
	// A link cannot be broken: a line may be as long as the one in it. The constant of a figure is not shown.
	link = regexp.MustCompile(`https?://\S+|\]\([^)]+\)|<!--= \S+ -->`)
)

// checkLines returns the lines below root that are too long.
func checkLines(root string) (problems []string, err error) {
	err = walkSources(root, func(path string) error {
		var long []int
		limit := strconv.Itoa(goColumns)
		switch filepath.Ext(path) {
		case ".go":
			src, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			long = longGo(src)
		case ".md":
			src, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			long, limit = longMarkdown(src), fmt.Sprintf("%d (of code, %d)", markdownColumns, codeColumns)
		}
		for _, line := range long {
			problems = append(problems, fmt.Sprintf("%s:%d: over %s columns", path, line, limit))
		}
		return nil
	})
	return problems, err
}

// columns returns the width of a line, with tabs as wide as tab.
func columns(line string) int {
	return utf8.RuneCountInString(line) + (tab-1)*strings.Count(line, "\t")
}

// longGo returns the numbers of the lines of a Go file that are too long. Generated files have
// none, nor have strings in backquotes over several lines, since a break would change them.
func longGo(src []byte) (long []int) {
	if generated.Match(src) {
		return nil
	}
	text := map[int]bool{} // lines inside of a string
	var s scanner.Scanner
	file := token.NewFileSet().AddFile("", -1, len(src))
	s.Init(file, src, nil, 0)
	for {
		pos, tok, lit := s.Scan()
		if tok == token.EOF {
			break
		}
		if n := strings.Count(lit, "\n"); tok == token.STRING && n > 0 {
			for i := range n + 1 {
				text[file.Line(pos)+i] = true
			}
		}
	}
	for i, line := range strings.Split(string(src), "\n") {
		if columns(line) > goColumns && !text[i+1] && !strings.HasPrefix(line, "//go:") &&
			columns(shorten(line)) > goColumns {
			long = append(long, i+1)
		}
	}
	return long
}

// shorten takes links out of a line.
func shorten(line string) string { return link.ReplaceAllString(line, "") }

// longMarkdown returns the numbers of the lines that are too long, but for tables, headings and links.
func longMarkdown(src []byte) (long []int) {
	fence := false
	for i, line := range bytes.Split(src, []byte("\n")) {
		l := string(line)
		trimmed := strings.TrimSpace(l)
		if strings.HasPrefix(trimmed, "```") {
			fence = !fence
			continue
		}
		limit := markdownColumns
		switch {
		case fence:
			limit = codeColumns
		case strings.HasPrefix(trimmed, "|"), strings.HasPrefix(l, "    "), strings.HasPrefix(l, "#"):
			continue
		}
		if columns(l) > limit && columns(shorten(l)) > limit {
			long = append(long, i+1)
		}
	}
	return long
}
