package peers

import (
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"
)

//go:embed requirements.txt
var requirements string

//go:embed requirements-rumi1.txt
var requirementsRumi1 string

// rumi1 is the format, and the peer, whose package conflicts with the package of the current generation.
const rumi1 = "rumi1"

// Interpreter is a Python that peers run in.
type Interpreter struct {
	Path    string
	Missing map[string]string // peers that could not be installed, and why
}

// EnvironmentOptions configure Prepare.
type EnvironmentOptions struct {
	// Cache is the directory in which environments are made.
	Cache string
	// Python, if not empty, is an interpreter that has the packages; nothing is installed for it.
	Python string
	// Rumi1 is the same for the peer rumi1. NeedRumi1 says whether one is needed.
	Rumi1     string
	NeedRumi1 bool
	// Log is called before a download starts, and when a package cannot be installed.
	Log func(format string, args ...any)
}

// Environment has the interpreters of the peers.
type Environment struct{ Main, Rumi1 Interpreter }

// of returns the interpreter for a format and loader.
func (e *Environment) of(format, loader string) Interpreter {
	if format == rumi1 && loader != "chaski" {
		return e.Rumi1
	}
	return e.Main
}

// Prepare returns interpreters with the packages of the peers. Unless they are given, it makes them in o.Cache once,
// with venv and pip, so that pip's own settings (an index, a proxy, a cache) apply. A package of one peer that cannot
// be installed is noted in Interpreter.Missing; if PyTorch, numpy or rasterio cannot be installed it is an error.
func Prepare(ctx context.Context, o EnvironmentOptions) (*Environment, error) {
	environment := &Environment{Main: Interpreter{Path: o.Python}}
	if o.Python == "" {
		base, err := basePython(ctx)
		if err != nil {
			return nil, err
		}
		v := venv{"main", base, "", requirements, mainSize()}
		if environment.Main, err = v.make(ctx, o); err != nil {
			return nil, err
		}
	}
	environment.Rumi1 = Interpreter{Path: o.Rumi1}
	if o.Rumi1 != "" || !o.NeedRumi1 {
		return environment, nil
	}
	v := venv{rumi1, environment.Main.Path, environment.Main.Path, requirementsRumi1,
		"about 80 MB to download and 250 MB on disk"}
	var err error
	if environment.Rumi1, err = v.make(ctx, o); ctx.Err() != nil {
		return nil, ctx.Err()
	} else if err != nil {
		environment.Rumi1 = Interpreter{Path: environment.Main.Path, Missing: map[string]string{rumi1: err.Error()}}
	}
	return environment, nil
}

func mainSize() string {
	if runtime.GOOS == "linux" {
		return "about 3 GB to download and 7 GB on disk, most of it PyTorch with its CUDA libraries"
	}
	return "about 300 MB to download, most of it PyTorch"
}

// basePython returns an interpreter for which the pinned packages have wheels.
func basePython(ctx context.Context) (string, error) {
	for _, name := range []string{"python3.13", "python3.12", "python3"} {
		path, err := exec.LookPath(name)
		if err != nil {
			continue
		}
		if exec.CommandContext(ctx, path, "-c", "import sys, venv; sys.exit(sys.version_info < (3, 12))").Run() == nil {
			return path, nil
		}
	}
	return "", errors.New("found no Python 3.12 or 3.13 with venv to make an environment from: name an " +
		"interpreter with --python")
}

// venv is a virtual environment to make.
type venv struct {
	name, base string
	over       string // an interpreter whose packages are visible in it; "" for none
	wants      string // its requirements
	size       string
}

// make makes the environment, if it is not complete, and returns its interpreter.
func (v *venv) make(ctx context.Context, o EnvironmentOptions) (Interpreter, error) {
	sum := sha256.Sum256([]byte(v.base + "\n" + v.over + "\n" + v.wants))
	dir := filepath.Join(o.Cache, v.name+"-"+hex.EncodeToString(sum[:4]))
	in := Interpreter{Path: filepath.Join(dir, "bin", "python"), Missing: map[string]string{}}
	if runtime.GOOS == "windows" {
		in.Path = filepath.Join(dir, "Scripts", "python.exe")
	}
	complete := filepath.Join(dir, "chaski-complete.json")
	if b, err := os.ReadFile(complete); err == nil && json.Unmarshal(b, &in.Missing) == nil {
		return in, nil
	}
	o.Log("making a Python environment, once, in %s: %s (--python names an interpreter that has the packages)", dir,
		v.size)
	if err := os.RemoveAll(dir); err != nil {
		return in, err
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return in, err
	}
	if err := try(ctx, v.base, "-m", "venv", dir); err != nil {
		return in, fmt.Errorf("no environment: %w", err)
	}
	if err := v.showOver(ctx, in.Path); err != nil {
		return in, err
	}
	if err := v.install(ctx, &in, o); err != nil {
		return in, err
	}
	data, err := json.Marshal(in.Missing)
	if err != nil {
		return in, err
	}
	return in, os.WriteFile(complete, data, 0o644)
}

// showOver makes the packages of another interpreter visible after the environment's own. The option
// --system-site-packages does not show the packages of another virtual environment.
func (v *venv) showOver(ctx context.Context, python string) error {
	if v.over == "" {
		return nil
	}
	const list = `import site; print("\n".join(site.getsitepackages()))`
	dirs, err := exec.CommandContext(ctx, v.over, "-c", list).Output()
	if err != nil {
		return fmt.Errorf("%s: %w", v.over, err)
	}
	const write = `import pathlib, site, sys
pathlib.Path(site.getsitepackages()[0], "chaski-over.pth").write_text(sys.argv[1])`
	return try(ctx, python, "-c", write, string(dirs))
}

// install installs the packages of all peers, then of each peer.
func (v *venv) install(ctx context.Context, in *Interpreter, o EnvironmentOptions) error {
	packages, peers := byPeer(v.wants)
	pip := []string{"-m", "pip", "install", "--disable-pip-version-check", "--quiet"}
	if len(packages) > 0 {
		if err := try(ctx, in.Path, append(pip, packages...)...); err != nil {
			return fmt.Errorf("the packages that all peers need cannot be installed: %w", err)
		}
	}
	for _, peer := range slices.Sorted(maps.Keys(peers)) {
		// All packages again, so that pip keeps their versions.
		err := try(ctx, in.Path, slices.Concat(pip, peers[peer], packages)...)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			o.Log("%s cannot be installed: %v", peer, err)
			in.Missing[peer] = "cannot be installed: " + err.Error()
		}
	}
	return nil
}

// byPeer splits requirements into requirements of all peers and of single peers, which are named after "#".
func byPeer(text string) (all []string, peers map[string][]string) {
	peers = map[string][]string{}
	for line := range strings.Lines(text) {
		want, peer, _ := strings.Cut(line, "#")
		want, peer = strings.TrimSpace(want), strings.TrimSpace(peer)
		switch {
		case want == "":
		case peer == "":
			all = append(all, want)
		default:
			peers[peer] = append(peers[peer], want)
		}
	}
	return all, peers
}

// packages returns the names of required packages.
func packages(texts ...string) (names []string) {
	for _, text := range texts {
		for line := range strings.Lines(text) {
			if name, _, ok := strings.Cut(line, "=="); ok && !strings.HasPrefix(name, "#") {
				names = append(names, name)
			}
		}
	}
	return names
}

// try runs a command. Its error is the last line that the command printed.
func try(ctx context.Context, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.WaitDelay = 5 * time.Second // for children of a cancelled command that keep its output open
	out, err := cmd.CombinedOutput()
	if message := lastLine(out); err != nil && message != "" {
		return errors.New(message)
	}
	return err
}
