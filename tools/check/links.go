package main

import (
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"unicode"
)

var (
	linkPattern    = regexp.MustCompile(`([\w/.-]+\.md)?\]\(([^()\s]*(?:\([^()\s]*\)[^()\s]*)*)\)`)
	headingPattern = regexp.MustCompile(`^#{1,6} +(.*?) *#*$`)
	codePattern    = regexp.MustCompile("`[^`]*`")
	textPattern    = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
)

// checkLinks checks that what the Markdown pages below root link to within the repository is there: files, and
// headings of pages. A link is not named by its file, which says nothing to readers of the site.
func checkLinks(root string) (problems []string, err error) {
	pages, err := markdown(root)
	if err != nil {
		return nil, err
	}
	anchors := map[string]map[string]bool{}
	for path, lines := range pages {
		anchors[path] = anchorsOf(lines)
	}
	for path, lines := range pages {
		fenced := false
		for i, line := range lines {
			if strings.HasPrefix(strings.TrimSpace(line), "```") {
				fenced = !fenced
			}
			if fenced {
				continue
			}
			for _, m := range linkPattern.FindAllStringSubmatch(codePattern.ReplaceAllString(line, ""), -1) {
				wrong := wrongLink(path, m[2], anchors)
				if wrong == "" && m[1] != "" {
					wrong = m[2] + ": the name of a link says what is there, not " + m[1]
				}
				if wrong != "" {
					problems = append(problems, fmt.Sprintf("%s:%d: %s", path, i+1, wrong))
				}
			}
		}
	}
	return problems, nil
}

// wrongLink returns what is wrong about a link on a page, or "".
func wrongLink(page, link string, anchors map[string]map[string]bool) string {
	target, err := url.Parse(link)
	if err != nil {
		return err.Error()
	}
	if target.Scheme != "" || target.Host != "" {
		return ""
	}
	file := page
	if target.Path != "" {
		file = filepath.Join(filepath.Dir(page), filepath.FromSlash(target.Path))
	}
	if _, err := os.Stat(file); err != nil {
		return link + " is no file"
	}
	if known, isPage := anchors[file]; isPage && target.Fragment != "" && !known[target.Fragment] {
		return link + ": the page has no such heading"
	}
	return ""
}

// markdown returns the lines of all Markdown pages below root, outside of hidden directories.
func markdown(root string) (map[string][]string, error) {
	pages := map[string][]string{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != root && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata"):
			return fs.SkipDir
		case d.IsDir() || filepath.Ext(path) != ".md":
			return nil
		}
		text, err := os.ReadFile(path)
		pages[path] = strings.Split(string(text), "\n")
		return err
	})
	return pages, err
}

// anchorsOf returns the anchors of the headings of a page, as GitHub makes them: letters, digits, "-" and "_" of the
// text in lower case, "-" for a space, and a number behind a heading that is there twice.
func anchorsOf(lines []string) map[string]bool {
	anchors := map[string]bool{}
	fenced := false
	for _, line := range lines {
		if strings.HasPrefix(line, "```") {
			fenced = !fenced
		}
		m := headingPattern.FindStringSubmatch(line)
		if fenced || m == nil {
			continue
		}
		anchor := strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case unicode.IsLetter(r), unicode.IsDigit(r), r == '-', r == '_':
				return unicode.ToLower(r)
			}
			return -1
		}, textPattern.ReplaceAllString(m[1], "$1"))
		unique := anchor
		for n := 1; anchors[unique]; n++ {
			unique = fmt.Sprintf("%s-%d", anchor, n)
		}
		anchors[unique] = true
	}
	return anchors
}
