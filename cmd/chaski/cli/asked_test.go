package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/cmd/chaski/internal/console"
	"github.com/chaski-eo/chaski/tools/testkit/corpus"
)

// asked runs a command whose question is on standard input.
func asked(t *testing.T, question string, args ...string) result {
	t.Helper()
	var out, errs bytes.Buffer
	env := console.Env{In: strings.NewReader(question), Out: &out, Err: &errs}
	return result{run(t.Context(), args, env), out.String(), errs.String()}
}

// TestQuestions: the places of samples are those that ls prints, of all or of those that conditions leave; and a
// question without a query describes the containers.
func TestQuestions(t *testing.T) {
	coast := filepath.Join(corpus.Testdata(t), "coast", "coast.tacozip")
	for level, where := range map[string]string{"0": "rank < 3", "1": "rank >= 0", "2": "rank >= 0"} {
		listed := chaski(t.Context(), "ls", "--level", level, coast)
		if level == "0" {
			listed = chaski(t.Context(), "ls", "--where", where, coast)
		}
		var want []string
		for line := range strings.Lines(listed.out) {
			cells := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
			want = append(want, filepath.Base(cells[0])+" "+cells[2])
		}
		const form = `{"sql": "SELECT id, uri, \"offset\", size FROM entries%s", "where": [{"sql": %q}]}`
		r := asked(t, fmt.Sprintf(form, level, where), "sql", "--format", "json", "--", "-", coast)
		var answer struct{ Rows [][]any }
		if err := json.Unmarshal([]byte(r.out), &answer); err != nil {
			t.Fatal(r.code, r.err, err)
		}
		var got []string
		for _, row := range answer.Rows {
			place := fmt.Sprint(row[1])
			if row[3].(float64) >= 0 {
				place = fmt.Sprintf("/vsisubfile/%.0f_%.0f,%v", row[2], row[3], row[1])
			}
			got = append(got, fmt.Sprintf("%v %s", row[0], place))
		}
		if len(want) < 3 || strings.Join(got, "\n") != strings.Join(want, "\n") {
			t.Errorf("level %s: %q, want %q", level, got, want)
		}
	}
	var about struct {
		Levels int
		Parts  []string
	}
	r := asked(t, "{}", "sql", "-", coast)
	if err := json.Unmarshal([]byte(r.out), &about); err != nil || about.Levels != 3 || len(about.Parts) != 1 {
		t.Errorf("%s, %v", r.out, err)
	}
	if r := asked(t, `{"unknown": 1}`, "sql", "-", coast); r.code != console.ExitUsage {
		t.Errorf("an unknown member: exit %d, %s", r.code, r.err)
	}
}

// TestErrorsForPrograms: a program gets an error as JSON, with the parts that the line for people has.
func TestErrorsForPrograms(t *testing.T) {
	t.Setenv(console.ForProgram, "1")
	none := filepath.Join(t.TempDir(), "none.tif")
	for _, c := range []struct {
		args             []string
		kind, file, part string
	}{
		{[]string{"extract", none}, "not found", none, "file"},
		{[]string{"extract", "--none", none}, "spec", "", ""},
		{[]string{"paste", "--ground", "1,2", "--window", "8", "-"}, "spec", "", ""},
		{[]string{"frame", "--pack", none, "-"}, "spec", "", ""},
	} {
		r := asked(t, "{}\n", c.args...)
		line, ok := strings.CutPrefix(r.err, "\x1e")
		line, _, _ = strings.Cut(line, "\n")
		var said struct{ Kind, File, Part, Message string }
		err := json.Unmarshal([]byte(line), &said)
		if !ok || err != nil || r.code == 0 || said.Message == "" || said.Kind != c.kind || said.File != c.file ||
			said.Part != c.part {
			t.Errorf("%q: exit %d, %q, %v", c.args, r.code, r.err, err)
		}
	}
}
