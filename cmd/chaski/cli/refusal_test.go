//go:build linux

package cli

import (
	"bytes"
	"encoding/hex"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/chaski-eo/chaski/tools/testkit/corpus"
	"github.com/chaski-eo/chaski/tools/testkit/race"
	"github.com/chaski-eo/chaski/tools/testkit/testfile"
)

// refusalMemory is what the command may take to refuse a file: resident, bytes.
const refusalMemory = 100 << 20

// badFile is a line of the corpus about a damaged file.
type badFile struct {
	Path, Kind, Format, Base, File, What, Expect string
}

func badFiles(t *testing.T, dir string) (list []badFile) {
	t.Helper()
	for _, f := range corpus.Rows[badFile](t, dir) {
		if f.Kind == "bad" {
			list = append(list, f)
		}
	}
	return list
}

// arguments returns how the command is asked for a bad file.
func (f badFile) arguments(t *testing.T, dir, tmp string) []string {
	t.Helper()
	path := filepath.Join(dir, f.Path)
	switch filepath.Ext(f.Path) {
	case ".zl":
		return []string{"frame", path}
	case ".blob", ".hdr":
		blob := testfile.Read(t, path)
		header := filepath.Join(tmp, filepath.Base(f.Path)+".hex")
		testfile.Write(t, header, []byte(hex.EncodeToString(blob)))
		of := f.File
		if of == "" {
			of = f.Base
		}
		return []string{"cat", "--format", "sha256", "--header", header, filepath.Join(dir, of)}
	}
	return []string{"cat", "--format", "sha256", path}
}

// TestRefusalsAreCheap: the command ($CHASKI_BIN) refuses every damaged frame, rumi file and TIFF
// of the corpus with one line, within 100 MiB. One that takes minutes of a processor, where most take 20 ms, is killed.
func TestRefusalsAreCheap(t *testing.T) {
	binary := os.Getenv("CHASKI_BIN")
	if _, err := os.Stat(binary); binary == "" || err != nil {
		t.Skip("CHASKI_BIN names no built command")
	}
	if race.Enabled {
		t.Skip("the race detector's memory would count; without it this runs among the variants")
	}
	dir, tmp := filepath.Join(corpus.Dir(t), "raster"), t.TempDir()
	// The resident memory of a process includes what it had before exec, and this process may be
	// large after other tests. A process of its own does the measuring.
	const alone = "CHASKI_TEST_REFUSALS"
	if os.Getenv(alone) == "" {
		cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
		cmd.Env = append(os.Environ(), alone+"=1")
		out, err := cmd.CombinedOutput()
		if t.Logf("%s", out); err != nil {
			t.Error(err)
		}
		return
	}
	var greatest int64
	var great string
	files, refused := badFiles(t, dir), 0
	for _, f := range files {
		cmd := exec.CommandContext(t.Context(), "sh", append([]string{"-c", `ulimit -t 120; exec "$@"`, "sh", binary},
			f.arguments(t, dir, tmp)...)...)
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		err := cmd.Run()
		if cmd.ProcessState == nil {
			t.Fatal(err)
		}
		use := cmd.ProcessState.SysUsage().(*syscall.Rusage)
		if n := use.Maxrss << 10; n > greatest {
			greatest, great = n, f.Path
		}
		if err == nil && f.Expect == "error" ||
			err != nil && (cmd.ProcessState.ExitCode() != 1 || strings.Count(stderr.String(), "\n") != 1) {
			t.Errorf("%s (%s): exit code %d: %s", f.Path, f.What, cmd.ProcessState.ExitCode(), stderr.String())
		}
		if err != nil {
			refused++
		}
	}
	t.Logf("%d files, %d refused; the largest took %d MiB (%s)", len(files), refused, greatest>>20, great)
	if refused == 0 || greatest > refusalMemory {
		t.Errorf("at most %d MiB are wanted", refusalMemory>>20)
	}
}
