package cli

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/chaski-eo/chaski/tools/testkit/netsim"
)

// canary is the secret of every URI in these tests.
const canary = "hunter2canary"

// secretURIs returns a URI of a file for each way in which URIs have secrets. base begins with "http://".
func secretURIs(base, name string) []string {
	host := strings.TrimPrefix(base, "http://")
	uris := []string{
		"http://user:" + canary + "@" + host + name,
		"http://" + canary + "@" + host + name,
		"az://container/" + name + "?DefaultEndpointsProtocol=https;AccountName=a;AccountKey=" + canary + ";x=y",
	}
	for _, query := range []string{
		"sv=2024&sp=r&sig=", "X-Amz-Date=1&X-Amz-Signature=", "X-Amz-Credential=", "X-Amz-Security-Token=",
		"X-Goog-Signature=", "X-Goog-Credential=", "token=", "key=", "",
	} {
		uris = append(uris, base+name+"?"+query+canary)
	}
	return uris
}

// keepsURIs are the commands whose output must open the files afterwards: see docs/remote-data.md.
var keepsURIs = map[string]bool{
	"chaski index": true, "chaski spec": true, "chaski locate": true, // on stdout
}

// TestNoSecretsComeOut promises that no command prints or writes a secret of a URI that it was given, whether it
// succeeds or fails. Every command of the program runs, so a new one is tested too.
func TestNoSecretsComeOut(t *testing.T) {
	web := netsim.NewServer(false)
	t.Cleanup(web.Close)
	web.Put("/data/good.tif", netsim.Chip(1, 2, 96, 32))
	web.Put("/data/broken.tif", netsim.Chip(1, 2, 96, 32)[:200])
	web.Put("/data/table.csv", []byte("path,x\na.tif,1\n"))
	web.Put("/data/page.tif", []byte("<!DOCTYPE html><html></html>"))
	t.Setenv("AZURE_STORAGE_ACCOUNT", "a")
	t.Setenv("AZURE_NO_SIGN_REQUEST", "YES")
	names := []string{"good.tif", "broken.tif", "missing.tif", "table.csv", "page.tif"}
	ran, wrote := 0, 0
	for _, name := range names {
		for i, uri := range secretURIs(web.URL+"/data/", name) {
			if strings.HasPrefix(uri, "az:") && name != "missing.tif" {
				continue
			}
			if i != 0 && i != 3 { // the rules for the other forms are tested in package fault
				continue
			}
			eachCommand(Command(), func(cmd *cobra.Command) {
				for _, args := range secretArgs(cmd, uri) {
					ran++
					wrote += runWithSecret(t, cmd, args)
				}
			})
		}
	}
	if ran < 200 || wrote < 5 {
		t.Errorf("%d runs wrote %d files", ran, wrote)
	}
}

// eachCommand calls do with each command that runs and ends by itself.
func eachCommand(cmd *cobra.Command, do func(*cobra.Command)) {
	switch cmd.CommandPath() {
	case "chaski help", "chaski completion", "chaski serve", "chaski token": // the argument of token is a name
		return
	}
	if cmd.Runnable() {
		do(cmd)
	}
	for _, c := range cmd.Commands() {
		eachCommand(c, do)
	}
}

// secretArgs returns argument lists of a command with a URI in the places where commands take one.
func secretArgs(cmd *cobra.Command, uri string) [][]string {
	spec := `{"source":"` + uri + `","batch_size":1,"fields":[{"name":"image"}]}`
	lists := [][]string{{uri}, {uri, uri}, {spec}}
	if f := cmd.Flags().Lookup("output"); f != nil {
		lists = append(lists, []string{"--output", "out.tif", uri}, []string{"--output", "out.parquet", uri},
			[]string{"--output", uri, uri})
	}
	for _, flag := range []string{"spec", "json", "html"} {
		switch f := cmd.Flags().Lookup(flag); {
		case f == nil:
		case f.Value.Type() == "bool":
			lists = append(lists, []string{"--" + flag, uri})
		case flag == "html":
			lists = append(lists, []string{"--html", "out.html", uri})
		default:
			lists = append(lists, []string{"--" + flag, spec}, []string{"--" + flag, uri})
		}
	}
	if strings.HasPrefix(cmd.CommandPath(), "chaski bench ") { // seconds of measuring else
		for i := range lists {
			lists[i] = append([]string{"--rounds", "1", "--seconds", "0.01"}, lists[i]...)
		}
	}
	if cmd.Name() == "sql" {
		lists = append(lists, []string{"SELECT * FROM '" + uri + "'", uri}, []string{"SELECT x FROM data", uri})
	}
	return lists
}

// runWithSecret runs a command in a directory of its own and fails the test if the secret comes out. It returns how
// many files the command wrote.
func runWithSecret(t *testing.T, cmd *cobra.Command, args []string) (files int) {
	t.Helper()
	dir := t.TempDir()
	t.Chdir(dir)
	path := cmd.CommandPath()
	r := chaski(t.Context(), append(strings.Fields(path)[1:], args...)...)
	if strings.Contains(r.err, canary) {
		t.Errorf("%s %q: stderr has the secret: %s", path, args, r.err)
	}
	if keepsURIs[path] {
		return 0
	}
	if i := strings.Index(r.out, canary); i >= 0 {
		t.Errorf("%s %q: stdout has the secret: …%s…", path, args, r.out[max(i-200, 0):i])
	}
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		files++
		b, err := os.ReadFile(name)
		if i := strings.Index(string(b), canary); i >= 0 {
			t.Errorf("%s %q: %s has the secret: …%s…", path, args, name, b[max(i-200, 0):i])
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
	return files
}
