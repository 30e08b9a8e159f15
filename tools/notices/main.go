// Command notices prints the licences of all modules that the command chaski links, for the wheel that carries it.
//
//	go run ./tools/notices >python/THIRD-PARTY-NOTICES.txt
//
// GOOS and GOARCH choose the platform, as they do for the command. It fails if a module has no licence file.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// licence matches the names of files that a distribution has to carry.
var licence = regexp.MustCompile(`(?i)^(licen[cs]e|copying|notice|patents|unlicense|copyright)([-_.].*)?$`)

// pkg is what `go list -json` says about a linked package.
type pkg struct {
	Dir      string
	Standard bool
	Module   *struct {
		Path, Version, Dir string
		Main               bool
	}
}

func main() {
	out := bufio.NewWriter(os.Stdout)
	err := write(out, "./cmd/chaski")
	if err = errors.Join(err, out.Flush()); err != nil {
		fmt.Fprintln(os.Stderr, "notices:", err)
		os.Exit(1)
	}
}

// write writes the licences of the modules of all packages that a command links, in the order of their paths.
func write(w io.Writer, command string) error {
	found, err := licences(command)
	if err != nil {
		return err
	}
	fmt.Fprint(w, "The command chaski links the Go modules below. Each is under its own licence.\n")
	for _, name := range slices.Sorted(maps.Keys(found)) {
		if len(found[name]) == 0 {
			return fmt.Errorf("%s has no licence file", name)
		}
		for _, path := range found[name] {
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			rule := strings.Repeat("=", 80)
			fmt.Fprintf(w, "\n%s\n%s: %s\n%s\n\n%s\n", rule, name, filepath.Base(path), rule, bytes.TrimSpace(text))
		}
	}
	return nil
}

// licences returns the licence files by the name of a module with its version: from the directories of its linked
// packages, and from the directories above them.
func licences(command string) (map[string][]string, error) {
	list := exec.Command("go", "list", "-deps", "-json=Dir,Standard,Module", command)
	list.Stderr = os.Stderr
	data, err := list.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	goRoot, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return nil, fmt.Errorf("go env: %w", err)
	}
	found := map[string][]string{}
	if found["The Go standard library"], err = filesIn(strings.TrimSpace(string(goRoot))); err != nil {
		return nil, err
	}
	for d := json.NewDecoder(bytes.NewReader(data)); ; {
		var p pkg
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return found, nil
		} else if err != nil {
			return nil, fmt.Errorf("go list: %w", err)
		}
		if p.Standard || p.Module == nil || p.Module.Main {
			continue
		}
		name := p.Module.Path + " " + p.Module.Version
		for dir := p.Dir; ; dir = filepath.Dir(dir) {
			files, err := filesIn(dir)
			if err != nil {
				return nil, err
			}
			for _, path := range files {
				if !slices.Contains(found[name], path) {
					found[name] = append(found[name], path)
				}
			}
			if len(dir) <= len(p.Module.Dir) {
				break
			}
		}
		found[name] = slices.Clip(found[name]) // so that a module without files is a key, too
	}
}

// filesIn returns the licence files of a directory.
func filesIn(dir string) (paths []string, err error) {
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		if e.Type().IsRegular() && licence.MatchString(e.Name()) && filepath.Ext(e.Name()) != ".go" {
			paths = append(paths, filepath.Join(dir, e.Name()))
		}
	}
	return paths, err
}
