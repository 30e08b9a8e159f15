package server

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"

	"github.com/chaski-eo/chaski/grpc/auth"
	"github.com/chaski-eo/chaski/loader"
	chaskiv1 "github.com/chaski-eo/chaski/proto/chaski/v1"
	"github.com/chaski-eo/chaski/tools/testkit/pki"
	"github.com/chaski-eo/chaski/tools/testkit/race"
)

// questionsAbout returns a question of each kind that opens what path names, in each way in which it can name it. What
// else they open is below root.
func questionsAbout(t *testing.T, path, root string) map[string]*chaskiv1.AskRequest {
	t.Helper()
	spec := func(s loader.Spec) []byte {
		s.BatchSize = 1
		b, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	type containers = chaskiv1.Containers
	raster, container := filepath.Join(root, "a.tif"), filepath.Join(root, "a.tacozip")
	all := map[string]*chaskiv1.AskRequest{}
	for name, c := range map[string]*containers{
		"": {Paths: []string{path}}, " by a sample's name": {Paths: []string{path + "::a"}},
		" second": {Paths: []string{container, path}},
	} {
		all["about"+name] = &chaskiv1.AskRequest{Kind: &chaskiv1.AskRequest_About{
			About: &chaskiv1.AboutQuestion{Containers: c}}}
		all["table"+name] = &chaskiv1.AskRequest{Kind: &chaskiv1.AskRequest_Table{
			Table: &chaskiv1.TableQuestion{Containers: c, Text: []byte(`{"sql":"SELECT * FROM data"}`)}}}
		all["stored table"+name] = &chaskiv1.AskRequest{Kind: &chaskiv1.AskRequest_Table{
			Table: &chaskiv1.TableQuestion{Containers: c, Text: []byte(`{"sql":"SELECT * FROM data"}`), Stored: true}}}
		all["entries"+name] = &chaskiv1.AskRequest{Kind: &chaskiv1.AskRequest_Entries{
			Entries: &chaskiv1.EntriesQuestion{Containers: c, Text: []byte("{}")}}}
		all["bytes of a row"+name] = &chaskiv1.AskRequest{Kind: &chaskiv1.AskRequest_Bytes{
			Bytes: &chaskiv1.BytesQuestion{Containers: c}}}
	}
	for what, name := range map[string]string{
		"bytes": path, "bytes of a range": "/vsisubfile/0_9," + path, "bytes of a sample": path + "::a",
	} {
		all[what] = &chaskiv1.AskRequest{Kind: &chaskiv1.AskRequest_Bytes{Bytes: &chaskiv1.BytesQuestion{Name: name}}}
	}
	for what, paths := range map[string][]string{"index": {path}, "second index": {raster, path}} {
		all[what] = &chaskiv1.AskRequest{Kind: &chaskiv1.AskRequest_Index{
			Index: &chaskiv1.IndexQuestion{Paths: paths}}}
	}
	all["index of a file"] = &chaskiv1.AskRequest{Kind: &chaskiv1.AskRequest_Index{
		Index: &chaskiv1.IndexQuestion{File: path}}}
	for what, s := range map[string]loader.Spec{
		"stats": {Source: path}, "stats of a sample": {Source: path + "::a"},
		"stats of a field": {Source: root, Fields: []loader.Field{
			{Name: "x", Pattern: filepath.Dir(path) + "/{id}" + filepath.Ext(path)}}},
	} {
		all[what] = &chaskiv1.AskRequest{Kind: &chaskiv1.AskRequest_Stats{
			Stats: &chaskiv1.StatsQuestion{Spec: spec(s)}}}
	}
	all["paste"] = &chaskiv1.AskRequest{Kind: &chaskiv1.AskRequest_Paste{Paste: &chaskiv1.PasteQuestion{
		Scene: path, Height: 8, Width: 8, StrideY: 8, StrideX: 8, Blend: "mean"}}}
	return all
}

// asker returns a client of dialed.
func (g *guardedServer) asker(t *testing.T, a *pki.Authority, own *pki.Pair) chaskiv1.ChaskiClient {
	t.Helper()
	return chaskiv1.NewChaskiClient(g.dialed(t, a, own))
}

// dialed returns a connection to a server; authority and certificate may be nil.
func (g *guardedServer) dialed(t *testing.T, a *pki.Authority, own *pki.Pair) *grpc.ClientConn {
	t.Helper()
	how := insecure.NewCredentials()
	if a != nil {
		how = trusting(t, a, own)
	}
	conn, err := grpc.NewClient(g.target, grpc.WithTransportCredentials(how))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// askAs asks one question with a token, and returns what came.
func askAs(t *testing.T, c chaskiv1.ChaskiClient, token string, q *chaskiv1.AskRequest) (got int, err error) {
	t.Helper()
	ctx := t.Context()
	if token != "" {
		ctx = metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+token)
	}
	call, err := c.Ask(ctx)
	if err != nil {
		return 0, err
	}
	_ = call.Send(q) // if the server has refused the call already, Recv says why
	_ = call.CloseSend()
	for {
		r, err := call.Recv()
		if err != nil {
			return got, err
		}
		got += len(r.GetData())
	}
}

// TestWhoMayAsk promises that no question of any kind is answered without a known token and, with mTLS, a valid
// certificate; and that neither the refusal nor the log shows a token or a byte of an answer.
func TestWhoMayAsk(t *testing.T) {
	root := t.TempDir()
	chip := filepath.Join(root, "a.tif")
	copyFile(t, chip, "raster", "tog", "tog-odd-16.tif")
	alice, aliceLine := line(t, auth.Client{Name: "alice"})
	wrong := auth.NewToken()
	g := serveGuarded(t, Options{Roots: []string{root}}, aliceLine, true)
	own, other := g.authority.Issue(t, "alice", pki.Valid()), pki.New(t, "another")
	expired, foreign := g.authority.Issue(t, "alice", pki.Expired()), other.Issue(t, "alice", pki.Valid())
	questions := questionsAbout(t, chip, root)
	if n, err := askAs(t, g.asker(t, g.authority, &own), alice, questions["bytes"]); n == 0 {
		t.Fatalf("alice gets nothing: %v", err)
	}
	for name, c := range map[string]struct {
		client chaskiv1.ChaskiClient
		token  string
		code   codes.Code
	}{
		"no token":            {g.asker(t, g.authority, &own), "", codes.Unauthenticated},
		"wrong token":         {g.asker(t, g.authority, &own), wrong, codes.Unauthenticated},
		"plain text":          {g.asker(t, nil, nil), alice, codes.Unavailable},
		"no certificate":      {g.asker(t, g.authority, nil), alice, codes.Unavailable},
		"expired certificate": {g.asker(t, g.authority, &expired), alice, codes.Unavailable},
		"other authority":     {g.asker(t, g.authority, &foreign), alice, codes.Unavailable},
	} {
		for what, q := range questions {
			n, err := askAs(t, c.client, c.token, q)
			if codeOf(err) != c.code || n > 0 {
				t.Errorf("%s: %s: %d bytes, %v, not %v", name, what, n, err, c.code)
			}
			if strings.Contains(err.Error(), alice) || strings.Contains(err.Error(), wrong) {
				t.Errorf("%s: %s: the error shows a token: %v", name, what, err)
			}
		}
	}
	if log := g.log.String(); strings.Contains(log, alice) || strings.Contains(log, wrong) {
		t.Errorf("the log shows a token:\n%s", log)
	}
}

// TestTenantsAsk promises that no question of any kind opens what lies below the roots of another client, through a
// link neither, and that its answer does not tell whether there is a file.
func TestTenantsAsk(t *testing.T) {
	race.SkipCovered(t)
	const outside = "outside of the served directories"
	dir := t.TempDir()
	roots := map[string]string{}
	for _, name := range []string{"alice", "bob"} {
		roots[name] = filepath.Join(dir, name)
		copyFile(t, filepath.Join(roots[name], "a.tif"), "raster", "tog", "tog-odd-16.tif")
		copyFile(t, filepath.Join(roots[name], "a.tacozip"), "coast", "coast.tacozip")
	}
	if err := os.Symlink(roots["bob"], filepath.Join(roots["alice"], "link")); err != nil {
		t.Fatal(err)
	}
	alice, a := line(t, auth.Client{Name: "alice", Roots: []string{roots["alice"]}})
	g := serveGuarded(t, Options{Roots: []string{dir}}, a, false)
	c := g.asker(t, g.authority, nil)
	for _, file := range []string{"a.tif", "a.tacozip"} {
		mine := filepath.Join(roots["alice"], file)
		if n, err := askAs(t, c, alice, questionsAbout(t, mine, roots["alice"])["bytes"]); n == 0 {
			t.Fatalf("alice gets nothing of her own: %v", err)
		}
		for _, from := range []string{roots["bob"], filepath.Join(roots["alice"], "link"), roots["alice"] + "/../bob"} {
			there := questionsAbout(t, from+"/"+file, roots["alice"])
			absent := questionsAbout(t, from+"/none"+filepath.Ext(file), roots["alice"])
			for what, q := range there {
				n, err := askAs(t, c, alice, q)
				if n > 0 || codeOf(err) != codes.NotFound || !strings.Contains(err.Error(), outside) {
					t.Errorf("%s of %s/%s: %d bytes, %v", what, from, file, n, err)
				}
				_, none := askAs(t, c, alice, absent[what])
				if want := strings.ReplaceAll(none.Error(), "/none.", "/a."); err.Error() != want {
					t.Errorf("%s of %s/%s: %v, and where there is no file %v", what, from, file, err, none)
				}
			}
		}
	}
}
