package peers

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// fakeInstaller is an interpreter that makes environments from copies of itself, and whose pip
// lacks one package.
const fakeInstaller = `#!/bin/sh
echo "$@" >> "$CALLS"
case "$*" in
*"-m venv "*) mkdir -p "$3/bin" && cp "$0" "$3/bin/python" ;;
*" install "*mosaicml*) echo "Collecting"; echo "ERROR: no matching distribution for mosaicml" >&2; exit 1 ;;
*" install "*"$BROKEN"*) echo "ERROR: no space" >&2; exit 1 ;;
esac
`

// installer puts fakeInstaller into an otherwise empty PATH. It returns options, the lines that
// they log, and the command lines that ran.
func installer(t *testing.T) (o EnvironmentOptions, logged *[]string, calls func() []string) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("needs a shell")
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "python3.12"), []byte(fakeInstaller), 0o755); err != nil {
		t.Fatal(err)
	}
	record := filepath.Join(dir, "calls")
	t.Setenv("PATH", dir+string(os.PathListSeparator)+"/usr/bin"+string(os.PathListSeparator)+"/bin")
	t.Setenv("CALLS", record)
	t.Setenv("BROKEN", "nothing is broken")
	logged = new([]string)
	o = EnvironmentOptions{Cache: filepath.Join(dir, "cache"), Log: func(format string, args ...any) {
		*logged = append(*logged, fmt.Sprintf(format, args...))
	}}
	return o, logged, func() []string {
		b, err := os.ReadFile(record)
		if err != nil {
			return nil
		}
		return strings.Split(strings.TrimSpace(string(b)), "\n")
	}
}

func TestEnvironmentIsMadeOnce(t *testing.T) {
	o, logged, calls := installer(t)
	o.NeedRumi1 = true
	e, err := Prepare(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if why := e.Main.Missing["mds"]; !strings.Contains(why, "no matching distribution") || len(e.Main.Missing) != 1 {
		t.Errorf("missing: %q", e.Main.Missing)
	}
	if len(*logged) == 0 || !strings.Contains((*logged)[0], "GB") && !strings.Contains((*logged)[0], "MB") ||
		!strings.Contains((*logged)[0], o.Cache) {
		t.Errorf("logged %q, want size and place first", *logged)
	}
	if e.Main.Path == e.Rumi1.Path || !strings.HasPrefix(e.Rumi1.Path, o.Cache) {
		t.Errorf("%+v", e)
	}
	installs := func() (n int) {
		for _, c := range calls() {
			if strings.Contains(c, "pip install") {
				n++
			}
		}
		return n
	}
	n := installs()
	if n < 3 {
		t.Errorf("%d installations: %q", n, calls())
	}
	again, err := Prepare(t.Context(), o)
	if err != nil || installs() != n || again.Main.Path != e.Main.Path || again.Main.Missing["mds"] == "" {
		t.Errorf("the second time: %d installations, %+v, %v", installs()-n, again, err)
	}
}

func TestMissingBasicsAreAnErrorAndRetried(t *testing.T) {
	o, _, _ := installer(t)
	t.Setenv("BROKEN", "torch")
	if _, err := Prepare(t.Context(), o); err == nil || !strings.Contains(err.Error(), "no space") {
		t.Errorf("%v", err)
	}
	t.Setenv("BROKEN", "nothing is broken")
	if _, err := Prepare(t.Context(), o); err != nil {
		t.Errorf("not tried again: %v", err)
	}
}

func TestNothingIsInstalledForAGivenInterpreter(t *testing.T) {
	o, logged, calls := installer(t)
	o.Python, o.Rumi1, o.NeedRumi1 = "python-a", "python-b", true
	e, err := Prepare(t.Context(), o)
	if err != nil || e.Main.Path != "python-a" || e.Rumi1.Path != "python-b" {
		t.Errorf("%+v, %v", e, err)
	}
	if len(*logged)+len(calls()) > 0 {
		t.Errorf("%q, %q", *logged, calls())
	}
}

func TestRumi1IsMissingIfNotInstalled(t *testing.T) {
	o, _, _ := installer(t)
	o.Python, o.NeedRumi1 = "/no/python", true
	e, err := Prepare(t.Context(), o)
	if err != nil || e.Rumi1.Missing[rumi1] == "" {
		t.Errorf("%+v, %v", e, err)
	}
}

func TestEachFormatHasItsInterpreter(t *testing.T) {
	e := &Environment{Main: Interpreter{Path: "main"}, Rumi1: Interpreter{Path: "one"}}
	for _, p := range Peers() {
		want := "main"
		if p.Name == rumi1 {
			want = "one"
		}
		if got := e.of(p.Format, p.loader).Path; p.loader != "" && got != want {
			t.Errorf("%s runs in %s", p.Name, got)
		}
	}
	if got := e.of(rumi1, "").Path; got != "one" {
		t.Errorf("rumi files of generation 1 are written by %s", got)
	}
	if !slices.ContainsFunc(Peers(), func(p Peer) bool { return p.Name == Baseline }) {
		t.Error("no baseline")
	}
}
