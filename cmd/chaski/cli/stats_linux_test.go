package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
	"golang.org/x/sys/unix"

	"github.com/chaski-eo/chaski/cmd/chaski/internal/console"
)

// onTerminal runs a command whose standard output is a terminal, and returns what the terminal got.
func onTerminal(t *testing.T, args ...string) string {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skip("no terminal here: ", err)
	}
	defer master.Close()
	number, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0)
	}
	if err != nil {
		t.Skip("no terminal here: ", err)
	}
	tty, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skip("no terminal here: ", err)
	}
	read := make(chan string)
	go func() {
		text, _ := io.ReadAll(master) // the error is EIO, once the terminal is closed
		read <- strings.ReplaceAll(string(text), "\r\n", "\n")
	}()
	var errs bytes.Buffer
	code := run(t.Context(), args, console.Env{In: strings.NewReader(""), Out: tty, Err: &errs})
	tty.Close()
	text := <-read
	if code != 0 {
		t.Fatalf("%q: exit %d: %s", args, code, errs.String())
	}
	return text
}

// TestStatsOnATerminal: a terminal shows a row for each band, with the numbers of the JSON, which programs and files
// get all the same.
func TestStatsOnATerminal(t *testing.T) {
	chip := testdata(t, "alpha", "rgba.tif")
	r := chaski(t.Context(), "stats", chip)
	if r.code != 0 || !json.Valid([]byte(r.out)) {
		t.Fatalf("exit %d: %s%s", r.code, r.out, r.err)
	}
	if got := onTerminal(t, "stats", "--format", "json", chip); got != r.out {
		t.Errorf("--format json on a terminal: %.200s", got)
	}
	file := filepath.Join(t.TempDir(), "stats.json")
	for _, args := range [][]string{{"stats", chip}, {"stats", "-o", file, chip}} {
		got := onTerminal(t, args...)
		compareSummary(t, got, r.out)
		if named := strings.Contains(got, "output: "+file); named != (len(args) > 2) {
			t.Errorf("%q: the output is named: %v\n%s", args, named, got)
		}
	}
	if written, err := os.ReadFile(file); err != nil || string(written) != r.out {
		t.Errorf("%v, %.200s", err, written)
	}
	if piped := chaski(t.Context(), "stats", "--format", "text", chip); piped.out != onTerminal(t, "stats", chip) {
		t.Errorf("--format text in a pipe: %s%s", piped.out, piped.err)
	}
}

// compareSummary compares the rows of a terminal with the JSON.
func compareSummary(t *testing.T, text, report string) {
	t.Helper()
	var shown struct {
		Samples int64
		Fields  map[string][]map[string]any
	}
	var want struct {
		Samples int64
		Fields  map[string]struct{ Bands []map[string]any }
	}
	if err := yaml.Unmarshal([]byte(text), &shown); err != nil {
		t.Fatal(err, text)
	}
	if err := json.Unmarshal([]byte(report), &want); err != nil {
		t.Fatal(err)
	}
	bands, rows := want.Fields["image"].Bands, shown.Fields["image"]
	if shown.Samples != want.Samples || len(rows) != len(bands) || len(rows) == 0 {
		t.Fatalf("%d samples, %d rows: want %d and %d\n%s", shown.Samples, len(rows), want.Samples, len(bands), text)
	}
	for k, band := range bands {
		for _, name := range []string{"mean", "std", "min", "max", "count"} {
			if got, want := fmt.Sprintf("%.6v", asFloat(rows[k][name])), fmt.Sprintf("%.6v", band[name]); got != want {
				t.Errorf("band %d: %s is %s, want %s", k, name, got, want)
			}
		}
		nodata, count := band["nodata"].(float64), band["count"].(float64)
		if want := fmt.Sprintf("%.3g%%", 100*nodata/(nodata+count)); nodata == 0 || rows[k]["nodata"] != want {
			t.Errorf("band %d: nodata is %v, want %s", k, rows[k]["nodata"], want)
		}
	}
}

// asFloat returns a number of YAML, as JSON would have it.
func asFloat(v any) any {
	if n, ok := v.(int); ok {
		return float64(n)
	}
	return v
}
