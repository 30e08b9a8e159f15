package query

import (
	"os"
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/tools/testkit/testfile"
)

// TestFunctionsAreDocumented promises that docs/sql.md lists all functions. CHASKI_UPDATE_DOCS=1 writes the list.
func TestFunctionsAreDocumented(t *testing.T) {
	const path = "../../../docs/sql.md"
	b := testfile.Read(t, path)
	text := string(b)
	from, to := strings.Index(text, "<!-- functions:"), strings.Index(text, "<!-- end of functions -->")
	if from < 0 || to < 0 {
		t.Fatal("docs/sql.md has no place for the functions")
	}
	from += strings.Index(text[from:], "\n") + 1
	want := functionTables()
	if os.Getenv("CHASKI_UPDATE_DOCS") != "" {
		testfile.Write(t, path, []byte(text[:from]+want+text[to:]))
		return
	}
	if text[from:to] != want {
		t.Error("docs/sql.md lists other functions: CHASKI_UPDATE_DOCS=1 go test -run TestFunctionsAreDocumented " +
			"./format/tables/query")
	}
}

// functionTables are the functions as tables of Markdown.
func functionTables() string {
	var b strings.Builder
	group := ""
	cell := strings.NewReplacer("|", `\|`)
	for _, f := range Functions() {
		if f.Group != group {
			group = f.Group
			b.WriteString("\n**" + group + "**\n\n| function | result |\n|---|---|\n")
		}
		more := ""
		if len(f.Aliases) > 0 {
			more = " (`" + strings.Join(f.Aliases, "`, `") + "`)"
		}
		b.WriteString("| `" + cell.Replace(f.Signature) + "`" + more + " | " + cell.Replace(f.Doc) + " |\n")
	}
	return b.String() + "\n"
}

// TestFunctionsSayWhatTheyAre promises that every function has a unique name, a signature that begins with it, and a
// description.
func TestFunctionsSayWhatTheyAre(t *testing.T) {
	seen := map[string]bool{}
	for _, f := range Functions() {
		name, _, _ := strings.Cut(f.Signature, "(")
		if name == "" || f.Doc == "" || f.Group == "" {
			t.Errorf("%+v", f)
		}
		for _, n := range append([]string{name}, f.Aliases...) {
			if seen[n] {
				t.Errorf("two functions are named %s", n)
			}
			seen[n] = true
			if n != "count" && functionLibrary.Functions[n] == nil && functionLibrary.Aggregates[n] == nil {
				t.Errorf("there is no function %s", n)
			}
		}
	}
}
