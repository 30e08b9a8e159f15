package main

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// pkg is a package with all its mutants.
type pkg struct {
	dir     string
	module  string // its import path
	root    string // the folder of the module
	sources []*source
}

// load reads the files of a package that are compiled here.
func load(dir string) (*pkg, error) {
	const format = `{{.Module.Path}}{{"\n"}}{{.Module.Dir}}{{range .GoFiles}}{{"\n"}}{{.}}{{end}}`
	list, err := exec.Command("go", "list", "-f", format, "./"+filepath.Clean(dir)).Output()
	if err != nil {
		return nil, fmt.Errorf("go list %s: %w", dir, err)
	}
	lines := strings.Split(strings.TrimSpace(string(list)), "\n")
	p := &pkg{dir: dir, module: lines[0], root: lines[1]}
	hosts := 0
	for _, name := range lines[2:] {
		path, err := filepath.Abs(filepath.Join(dir, name))
		if err != nil {
			return nil, err
		}
		s, err := parse(path, filepath.Join(dir, name), hosts)
		if err != nil {
			return nil, err
		}
		hosts += len(s.hosts)
		p.sources = append(p.sources, s)
	}
	return p, nil
}

func (p *pkg) mutants() (all []*mutant) {
	for _, s := range p.sources {
		all = append(all, s.mutants...)
	}
	return all
}

// binaries are the tests, compiled with mutants in the package.
type binaries struct {
	dir   string // where all files of a build are
	tests []tested
}

// tested is the test binary of a package, and its tests, the quickest first.
type tested struct {
	dir    string // of the package
	binary string
	tests  []single
}

// single is a test, how long it runs alone, and the numbers of the functions with mutants that it reaches.
type single struct {
	name    string
	seconds time.Duration
	reached map[int]bool
}

//go:embed chosen/chosen.go
var chooser []byte

// compiled is where a line of the compiler says that something is wrong.
var compiled = regexp.MustCompile(`([\w.]+\.go):(\d+):\d+: `)

// build compiles the tests of packages with all mutants that have a number, and runs each test once without them. It
// takes the number of those that do not compile.
func (p *pkg) build(packages []string) (*binaries, error) {
	dir, err := os.MkdirTemp("", "mutants")
	if err != nil {
		return nil, err
	}
	b := &binaries{dir: dir}
	for _, of := range packages {
		t := tested{dir: of, binary: filepath.Join(dir, fmt.Sprintf("%d.test", len(b.tests)))}
		if err := p.compile(dir, &t); err != nil {
			b.remove()
			return nil, err
		}
		b.tests = append(b.tests, t)
	}
	for i := range b.tests {
		if err := b.tests[i].record(filepath.Join(dir, "reached")); err != nil {
			b.remove()
			return nil, err
		}
	}
	return b, nil
}

func (b *binaries) remove() { _ = os.RemoveAll(b.dir) }

// compile makes the test binary of a package. Mutants that do not compile leave, then it is tried again: the compiler
// tells faults of syntax, types and control flow in turn.
func (p *pkg) compile(dir string, t *tested) error {
	const imported = "internal/chosen"
	for {
		replaced := map[string]string{filepath.Join(p.root, imported, "chosen.go"): filepath.Join(dir, "chosen.go")}
		written := map[string][]byte{"chosen.go": chooser}
		owners := map[string]map[int]*mutant{}
		for _, s := range p.sources {
			name := filepath.Base(s.path)
			written["mutant."+name], owners["mutant."+name] = s.with(p.module + "/" + imported)
			replaced[s.path] = filepath.Join(dir, "mutant."+name)
		}
		overlay, err := json.Marshal(map[string]any{"Replace": replaced})
		if err != nil {
			return err
		}
		written["overlay.json"] = overlay
		for name, text := range written {
			if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
				return err
			}
		}
		command := exec.Command("go", "test", "-c", "-vet=off", "-gcflags=-e",
			"-overlay", filepath.Join(dir, "overlay.json"), "-o", t.binary, t.dir)
		text, err := command.CombinedOutput()
		if err == nil {
			return nil
		}
		left := false
		for _, place := range compiled.FindAllSubmatch(text, -1) {
			line, _ := strconv.Atoi(string(place[2]))
			if m := owners[string(place[1])][line]; m != nil && m.id > 0 {
				m.id, left = 0, true
			}
		}
		if !left {
			return fmt.Errorf("the tests do not compile: %w\n%s", err, text)
		}
	}
}

// patience is how many times as long as without a mutant tests may run.
const patience = 4

// record runs each test alone.
func (t *tested) record(reached string) error {
	names, err := t.command(context.Background(), "-test.list", ".").Output()
	if err != nil {
		return fmt.Errorf("the list of tests of %s: %w", t.dir, err)
	}
	for name := range strings.FieldsSeq(string(names)) {
		if strings.HasPrefix(name, "Benchmark") {
			continue
		}
		one := single{name: name, reached: map[int]bool{}}
		if err := os.RemoveAll(reached); err != nil {
			return err
		}
		began := time.Now()
		command := t.command(context.Background(), "-test.run", "^"+name+"$")
		command.Env = append(command.Env, "MUTANTS_REACHED="+reached)
		if text, err := command.CombinedOutput(); err != nil {
			return fmt.Errorf("%s fails without a mutant: %w\n%s", name, err, text)
		}
		one.seconds = time.Since(began)
		functions, err := os.ReadFile(reached)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		for function := range strings.FieldsSeq(string(functions)) {
			number, err := strconv.Atoi(function)
			if err != nil {
				return err
			}
			one.reached[number] = true
		}
		t.tests = append(t.tests, one)
	}
	slices.SortStableFunc(t.tests, func(a, b single) int { return int(a.seconds - b.seconds) })
	return nil
}

// command runs the binary in the folder of its package. Without the variables failures are files in the tree, and rapid
// looks 30 s for the smallest one. Some mutants take all memory that they get: 12 GiB are 12<<20 KiB.
func (t *tested) command(ctx context.Context, arguments ...string) *exec.Cmd {
	const limited = `ulimit -v $((12 << 20)); exec "$0" "$@"`
	command := exec.CommandContext(ctx, "sh", append([]string{"-c", limited, t.binary}, arguments...)...)
	command.Dir = t.dir
	command.Env = append(os.Environ(), "RAPID_NOFAILFILE=1", "RAPID_SHRINKTIME=1ms")
	command.WaitDelay = time.Second
	return command
}

// passes reports whether all tests that reach the function of a mutant pass with it.
func (b *binaries) passes(m *mutant) (bool, error) {
	for i := range b.tests {
		if ok, err := b.tests[i].passes(m); !ok || err != nil {
			return false, err
		}
	}
	return true, nil
}

// passes runs the tests in groups of about a second, so a slow test runs only if all quicker ones pass.
func (t *tested) passes(m *mutant) (bool, error) {
	var names []string
	var seconds time.Duration
	for i, one := range t.tests {
		if one.reached[m.host.number] {
			names = append(names, one.name)
			seconds += one.seconds
		}
		if len(names) == 0 || seconds < time.Second && i < len(t.tests)-1 {
			continue
		}
		limit := patience * (seconds + time.Second)
		// A test ends itself; what it loops in may not.
		ctx, cancel := context.WithTimeout(context.Background(), limit+20*time.Second)
		command := t.command(ctx, "-test.failfast", "-test.timeout", limit.String(),
			"-test.run", "^("+strings.Join(names, "|")+")$")
		command.Env = append(command.Env, "MUTANT="+strconv.Itoa(m.id))
		text, err := command.CombinedOutput()
		cancel()
		var failed *exec.ExitError
		switch {
		case errors.As(err, &failed):
			return false, nil
		case err != nil:
			return false, fmt.Errorf("%w\n%s", err, text)
		}
		names, seconds = nil, 0
	}
	return true, nil
}
