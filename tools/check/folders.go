package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// architecture is the page that says what each folder is for.
const architecture = "docs/architecture.md"

// checkFolders returns the folders of packages, at most two deep, that the page of the architecture does not name, and
// the folders at the top that it names and the tree lacks.
func checkFolders(root string) ([]string, error) {
	page, err := os.ReadFile(filepath.Join(root, architecture))
	if err != nil {
		return nil, err
	}
	_, text, _ := strings.Cut(string(page), "## Where things are")
	_, text, _ = strings.Cut(text, "```\n")
	text, _, _ = strings.Cut(text, "```")
	named := map[string]bool{}
	var problems []string
	for _, word := range strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(" \n,;:.()", r) }) {
		named[strings.TrimSuffix(word, "/")] = true
		if name, folder := strings.CutSuffix(word, "/"); folder {
			if _, err := os.Stat(filepath.Join(root, name)); err != nil {
				problems = append(problems, architecture+" names the folder "+word+", which is not there")
			}
		}
	}
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		local, err := filepath.Rel(root, path)
		parts := strings.Split(filepath.ToSlash(local), "/")
		switch name := d.Name(); {
		case err != nil || local == ".":
			return err
		case strings.HasPrefix(name, "."), name == "testdata" && len(parts) > 1, len(parts) > 2,
			len(parts) == 2 && (parts[0] == "cmd" || name == "internal"):
			return filepath.SkipDir
		}
		if code, err := hasCode(path); err != nil || !code {
			return err
		}
		for depth, name := range parts {
			if !named[name] {
				problems = append(problems, architecture+" does not name "+strings.Join(parts[:depth+1], "/"))
				break
			}
		}
		if parts[0] == "internal" || parts[0] == "tools" || parts[0] == "examples" {
			return filepath.SkipDir // their packages are not named one by one
		}
		return nil
	})
	return problems, err
}

// hasCode reports whether Go files lie below a folder.
func hasCode(folder string) (found bool, err error) {
	err = filepath.WalkDir(folder, func(path string, _ fs.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(path, ".go") {
			found = true
			return filepath.SkipAll
		}
		return err
	})
	return found, err
}
