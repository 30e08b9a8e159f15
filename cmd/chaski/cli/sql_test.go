package cli

import (
	"bytes"
	"encoding/binary"
	"path/filepath"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"

	"github.com/chaski-eo/chaski/tools/testkit/testfile"
)

// TestSQLCommand: sql, and conditions of ls, print the expected rows and end with the exit codes
// for missing names, wrong queries and queries that need DuckDB.
func TestSQLCommand(t *testing.T) {
	two := testContainer(t, "taco-v2/spec200/codec_snappy.tacozip")
	three := testContainer(t, "taco-v2/current/three_level.tacozip")
	for _, x := range []struct {
		args []string
		code int
		out  string // standard output, or a part of it where it ends in …
		err  string // a part of standard error
	}{
		{
			[]string{
				"sql", "--format", "json",
				`SELECT id, "internal:parent_id" AS p FROM level1 WHERE id = 'label' ORDER BY 2 LIMIT 2`,
				two,
			},
			0, `{"columns":["id","p"],"rows":[["label",0],["label",1]]}` + "\n", "",
		},
		{
			[]string{
				"sql", "--format", "json",
				`SELECT "l0:id" AS a, "l1:id" AS b, count(*) AS n FROM l2 GROUP BY 1, 2 ORDER BY a DESC, b LIMIT 1`,
				three,
			},
			0, `{"columns":["a","b","n"],"rows":[["roi_k3","s1",3]]}` + "\n", "",
		},
		{
			[]string{"sql", "SELECT id, id LIKE '%1' AS one FROM DATA ORDER BY id LIMIT 2;", two},
			0, "id\tone\nroi_qs0\tfalse\nroi_qs1\ttrue\n", "",
		},
		{
			[]string{
				"sql", "--format", "json",
				"SELECT sum(\"internal:parent_id\") AS s, 0/0 AS n FROM data WHERE false", two,
			},
			0, `{"columns":["s","n"],"rows":[[null,…`, "",
		},
		{
			[]string{"sql", "SELECT id FROM level7", two}, 1, "",
			`no table "level7"; there are data, level1, l0, l1: not found`,
		},
		{[]string{"sql", "SELECT nosuch FROM data", two}, 1, "", `no column "nosuch"; there are id, type`},
		{[]string{"sql", "SELECT hash(id) FROM data", two}, 1, "", "this needs DuckDB"},
		{[]string{"sql", "SELEC id FROM data", two}, 2, "", `syntax error at or near "SELEC"`},
		{[]string{"sql", two, "SELECT id FROM data"}, 2, "", "syntax error at or near"},
		{[]string{"sql", "SELECT id FROM data WHERE id > 1", two}, 2, "", "cannot compare"},
		{[]string{"sql", "SELECT 1; SELECT 2", two}, 2, "", "single SELECT"},
		{[]string{"sql", "SELECT 1"}, 2, "", "QUERY and at least one CONTAINER"},
		{[]string{"sql", "--format", "xml", "SELECT 1", two}, 2, "", "--format"},
		{[]string{"sql", "SELECT 1", two + ".none"}, 1, "", "not found"},
		{
			[]string{"ls", "--where", "id IN ('roi_qs2', 'roi_qs0')", "--order-by", "ID desc", two},
			0, "roi_qs2\tFOLDER\t…", "",
		},
		{[]string{"ls", "--where", "id = ", two}, 2, "", "syntax error at end of input"},
		{[]string{"ls", "--order-by", "nosuch", two}, 1, "", `no column "nosuch"`},
		{[]string{"ls", "--order-by", `"internal:parent_id" desc`, "--limit", "1", two}, 0, "roi_qs3\tFOLDER\t…", ""},
	} {
		r := chaski(t.Context(), x.args...)
		part, cut := strings.CutSuffix(x.out, "…")
		if r.code != x.code || cut && !strings.HasPrefix(r.out, part) || !cut && r.out != x.out ||
			!strings.Contains(r.err, x.err) {
			t.Errorf("%q: exit %d\n%s%s", x.args, r.code, r.out, r.err)
		}
		if x.code == 1 && !errorLine.MatchString(r.err) {
			t.Errorf("%q: %q is not one line", x.args, r.err)
		}
	}
}

// TestNoRows: a container without samples keeps its columns, with and without conditions.
func TestNoRows(t *testing.T) {
	var footer bytes.Buffer
	if err := parquet.Write(&footer, []struct {
		ID     string  `parquet:"tortilla:id"`
		Format string  `parquet:"tortilla:file_format"`
		Offset int64   `parquet:"tortilla:offset"`
		Length int64   `parquet:"tortilla:length"`
		Cloud  float64 `parquet:"cloud"`
	}{}); err != nil {
		t.Fatal(err)
	}
	file := make([]byte, 200, 200+footer.Len())
	copy(file, "#y")
	binary.LittleEndian.PutUint64(file[2:], 200)
	binary.LittleEndian.PutUint64(file[10:], uint64(footer.Len()))
	binary.LittleEndian.PutUint64(file[18:], 1)
	path := filepath.Join(t.TempDir(), "none.tortilla")
	testfile.Write(t, path, append(file, footer.Bytes()...))
	const want = `{"columns":["tortilla:id","cloud"],"rows":[]}` + "\n"
	for _, where := range []string{"", " WHERE cloud < 10"} {
		r := chaski(t.Context(), "sql", "--format", "json", `SELECT "tortilla:id", cloud FROM data`+where, path)
		if r.code != 0 || r.out != want {
			t.Errorf("%q: exit %d\n%s%s", where, r.code, r.out, r.err)
		}
	}
}

// TestQueryInAFile: queries that are too long for an argument are read from files.
func TestQueryInAFile(t *testing.T) {
	two := testContainer(t, "taco-v2/spec200/codec_snappy.tacozip")
	many := "id IN (" + strings.Repeat("'no such id', ", 20000) + "'roi_qs1')"
	write := func(name, text string) string {
		path := filepath.Join(t.TempDir(), name)
		testfile.Write(t, path, []byte(text))
		return "@" + path
	}
	q := write("q", "SELECT id FROM data WHERE "+many)
	if r := chaski(t.Context(), "sql", q, two); r.code != 0 || r.out != "id\nroi_qs1\n" {
		t.Errorf("exit %d\n%s%s", r.code, r.out, r.err)
	}
	if r := chaski(t.Context(), "sql", "@"+two+".none", two); r.code != 2 {
		t.Errorf("exit %d\n%s", r.code, r.err)
	}
}
