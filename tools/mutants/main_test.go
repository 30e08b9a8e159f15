package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chaski-eo/chaski/tools/testkit/testfile"
)

// TestMutants: of a function with a test that looks only at half of it, the mutants of that half are killed, and those
// of the other one survive. A mutant that loops for ever is killed, and its process ends. What is returned
// beside an error stays.
func TestMutants(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod": "module example\n\ngo 1.26\n",
		"m/m.go": "package m\n\nfunc Seen(a int) bool { return a < 3 }\n\nfunc Unseen(a int) bool { return a < 5 }\n",
		"endless/m.go": "package endless\n\nfunc Down(a int) int {\n" +
			"\tfor a != 0 {\n\t\ta--\n\t}\n\treturn a\n}\n",
		"endless/m_test.go": "package endless\n\nimport \"testing\"\n\nfunc TestDown(t *testing.T) {\n" +
			"\tif Down(9) != 0 {\n\t\tt.Fail()\n\t}\n}\n",
		"beside/m.go": "package beside\n\nimport \"os\"\n\nfunc Two(dir string) (int, error) {\n" +
			"\tif err := os.Chdir(dir); err != nil {\n\t\treturn 0, err\n\t}\n\treturn 2, nil\n}\n",
		"beside/m_test.go": "package beside\n\nimport \"testing\"\n\nfunc TestTwo(t *testing.T) {\n" +
			"\tn, err := Two(\".\")\n\t_, bad := Two(\"none\")\n" +
			"\tif n != 2 || err != nil || bad == nil {\n\t\tt.Fail()\n\t}\n}\n",
		"m/m_test.go": "package m\n\nimport \"testing\"\n\nfunc TestSeen(t *testing.T) {\n" +
			"\tif !Seen(2) || Seen(3) {\n\t\tt.Fail()\n\t}\n}\n",
		"forms/m.go": forms,
		"forms/m_test.go": "package forms\n\nimport \"testing\"\n\nfunc TestForms(t *testing.T) {\n" +
			"\tw := &Wide[int]{1}\n\tn, err := w.Add(0, 1, 5, -1, 9)\n" +
			"\tif n != 7 || err != nil || limit != 5 || double[0](4) != 8 {\n\t\tt.Error(n, err)\n\t}\n}\n",
		"tools/mutants/equivalent.txt": "# the reason\nm/m.go: func Unseen(a int) bool { return a < 5 } => 6\n",
	} {
		path := filepath.Join(dir, name)
		testfile.Write(t, path, []byte(text))
	}
	t.Chdir(dir)
	out, err := os.Create("out")
	if err != nil {
		t.Fatal(err)
	}
	if err := run(out, []string{"m", "endless", "beside", "forms"}, "", 0, 1, 2); err != nil {
		t.Fatal(err)
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
	text := testfile.Read(t, "out")
	const want = "m/m.go:5: < => <=\n\tm/m.go: func Unseen(a int) bool { return a < 5 } => <=\n" +
		"m: 2 of 3 mutants killed, 1 equivalent\nendless: 3 of 3 mutants killed, 0 equivalent\n" +
		"beside: 3 of 3 mutants killed, 0 equivalent\nforms: 6 of 6 mutants killed, 0 equivalent\n"
	if got := string(text); got != want {
		t.Errorf("got %s; want %s", strings.TrimSpace(got), want)
	}
}

// forms has what a copy of a function must keep: := sets a parameter and a result again, labels, receivers, type
// parameters, lists of arguments, and values of variables with functions in them. Text has no difference: "a" - "b"
// does not compile, and does not count.
const forms = `package forms

var limit uint8 = 5

var double = []func(int) int{func(n int) int { return n + n }}

const name = "a"

type Wide[T ~int] struct{ first T }

func (w *Wide[T]) Add(more ...T) (sum T, err error) {
	sum, unused := w.first, name+name
	_ = unused
each:
	for _, n := range more {
		if n < 0 {
			break each
		}
		sum += n
	}
	return sum, nil
}
`

// TestEquivalentLines: each line that the list of equivalent mutants names is in its file.
func TestEquivalentLines(t *testing.T) {
	list, err := equivalent("equivalent.txt")
	if err != nil || len(list) == 0 {
		t.Fatal(len(list), err)
	}
	for key := range list {
		name, rest, _ := strings.Cut(key, ": ")
		line := rest[:strings.LastIndex(rest, " =>")]
		text := string(testfile.Read(t, filepath.Join("..", "..", filepath.FromSlash(name))))
		if !strings.Contains(text, "\t"+line+"\n") && !strings.Contains(text, "\n"+line+"\n") {
			t.Errorf("%s has no line %q", name, line)
		}
	}
}
