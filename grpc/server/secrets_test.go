package server

import (
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"

	"github.com/chaski-eo/chaski/grpc/auth"
	"github.com/chaski-eo/chaski/loader"
	chaskiv1 "github.com/chaski-eo/chaski/proto/chaski/v1"
	"github.com/chaski-eo/chaski/source/httpsource"
	"github.com/chaski-eo/chaski/source/remote"
	"github.com/chaski-eo/chaski/tools/testkit/netsim"
	"github.com/chaski-eo/chaski/tools/testkit/race"
	"github.com/chaski-eo/chaski/tools/testkit/testfile"
)

// canary is the secret of every URI of these tests, and the token of their client.
const canary = "hunter2canary"

// canaryURIs returns a URI of an object for each way in which URIs have secrets. base begins with "http://".
func canaryURIs(base, name string) []string {
	host := strings.TrimPrefix(base, "http://")
	uris := []string{"http://user:" + canary + "@" + host + name, "http://" + canary + "@" + host + name,
		"http://user:" + canary + "/x@" + host + name, base + name + "?" + canary}
	for _, query := range []string{"sv=2024&sp=r&sig=", "X-Amz-Date=1&X-Amz-Signature=", "X-Amz-Security-Token=",
		"X-Goog-Signature=", "token=", "AccountName=a;AccountKey="} {
		uris = append(uris, base+name+"?"+query+canary)
	}
	return uris
}

// secretive is a server of objects behind URIs with secrets.
type secretive struct {
	client  chaskiv1.ChaskiClient
	log     *locked
	metrics *prometheus.Registry
	root    string
}

func serveSecrets(t *testing.T, web *netsim.Server) *secretive {
	t.Helper()
	gate, err := auth.NewGate(auth.GateOptions{Made: canary})
	if err != nil {
		t.Fatal(err)
	}
	opener, err := httpsource.New(httpsource.Options{Options: remote.Options{Attempts: 1, Backoff: time.Nanosecond}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = opener.Close() })
	s := &secretive{log: &locked{}, metrics: prometheus.NewRegistry(), root: t.TempDir()}
	copyFile(t, filepath.Join(s.root, "a.tif"), "raster", "tog", "tog-odd-16.tif")
	copyFile(t, filepath.Join(s.root, "a.tacozip"), "coast", "coast.tacozip")
	l, target, dial := listenTCP(t)
	r := startWith(t, l, Options{Gate: gate, Roots: []string{s.root, "http://"}, Metrics: s.metrics,
		Loader: loader.Options{Opener: opener}}, slog.New(slog.NewTextHandler(s.log, &slog.HandlerOptions{
		Level: slog.LevelDebug})))
	conn := dialed(t, target, dial)
	t.Cleanup(func() { conn.Close(); r.stop(t) })
	s.client = chaskiv1.NewChaskiClient(conn)
	return s
}

// quiet checks that neither an answer nor an error shows the secret.
func (s *secretive) quiet(t *testing.T, what string, answer proto.Message, err error) {
	t.Helper()
	texts := []string{fmt.Sprint(err), prototext.Format(status.Convert(err).Proto())}
	for _, d := range status.Convert(err).Details() {
		texts = append(texts, fmt.Sprint(d))
	}
	if answer != nil {
		b, err := proto.Marshal(answer)
		if err != nil {
			t.Fatal(err)
		}
		texts = append(texts, string(b))
	}
	for _, text := range texts {
		if i := strings.Index(text, canary); i >= 0 {
			t.Errorf("%s: the secret comes out: …%s", what, text[max(0, i-200):i+len(canary)])
		}
	}
}

// calls makes each call about a URI.
func (s *secretive) calls(t *testing.T, uri string) (answered int) {
	t.Helper()
	ctx := as(t.Context(), canary)
	info, err := s.client.Info(ctx, &chaskiv1.InfoRequest{Path: uri})
	s.quiet(t, "info", info, err)
	read, err := s.client.Read(ctx, &chaskiv1.ReadRequest{Paths: []string{uri}})
	for err == nil {
		var m *chaskiv1.StreamReply
		if m, err = read.Recv(); err == nil {
			answered++
			s.quiet(t, "read", m, nil)
		}
	}
	s.quiet(t, "read", nil, err)
	for _, spec := range []string{
		`{"source":"URI","batch_size":1}`, `{"source":"URI","batch_size":"URI"}`, `{"source":"URI","batch_size":1`,
		`{"source":"URI","batch_size":1,"fields":[{"name":"x","pattern":"URI{id}"}]}`,
		`{"source":"URI","batch_size":1,"where":"URI"}`, `{"source":"URI","batch_size":1,"sampler":{"kind":"URI"}}`,
		`{"sources":[{"source":"URI","name":"URI","weight":1},{"source":"URI","weight":1}],"batch_size":1}`,
	} {
		b := []byte(strings.ReplaceAll(spec, "URI", uri))
		d, err := s.client.Describe(ctx, &chaskiv1.DescribeRequest{Spec: b})
		s.quiet(t, "describe", nil, err) // the answer has the spec for the client to send again
		if err == nil {
			answered += s.stream(t, d.GetHandle())
		}
	}
	s.stream(t, uri)
	return answered
}

// stream asks for the first batch of a dataset.
func (s *secretive) stream(t *testing.T, handle string) (answered int) {
	t.Helper()
	call, err := s.client.Stream(as(t.Context(), canary))
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range []*chaskiv1.StreamRequest{
		{Kind: &chaskiv1.StreamRequest_Credit{Credit: &chaskiv1.Credit{Batches: 1}}},
		{Kind: &chaskiv1.StreamRequest_Ticket{Ticket: &chaskiv1.Ticket{Handle: handle, Count: 1, RowStride: 1}}},
	} {
		_ = call.Send(m) // Recv says why the server has ended the call
	}
	_ = call.CloseSend()
	for {
		m, err := call.Recv()
		s.quiet(t, "stream", m, err)
		if err != nil {
			return answered
		}
		answered++
	}
}

// TestNoSecretComesOut promises that no call shows a secret of its URIs, whether it succeeds or fails; nor do the log
// and the metrics, which do not show the token of the calls either.
func TestNoSecretComesOut(t *testing.T) {
	race.SkipCovered(t)
	web := netsim.NewServer(false)
	t.Cleanup(web.Close)
	chip := netsim.Chip(1, 2, 96, 32)
	web.Put("/good.tif", chip)
	web.Put("/broken.tif", chip[:200])
	web.Put("/page.tif", []byte("<!DOCTYPE html><html></html>"))
	web.Put("/table.csv", []byte("path,x\na.tif,1\n"))
	container := testfile.Read(t, filepath.Join("..", "..", "testdata", "coast", "coast.tacozip"))
	web.Put("/a.tacozip", container)
	s := serveSecrets(t, web)
	answered := 0
	for _, name := range []string{"good.tif", "broken.tif", "page.tif", "missing.tif", "table.csv", "a.tacozip"} {
		for i, uri := range canaryURIs(web.URL+"/", name) {
			if name == "missing.tif" || i == 0 || i == 3 || i == 4 { // errors of missing files have most texts
				answered += s.calls(t, uri)
			}
		}
	}
	if answered < 15 {
		t.Errorf("%d messages came", answered)
	}
	log := s.log.String()
	if i := strings.Index(log, canary); i >= 0 {
		t.Errorf("the log shows the secret: …%s", log[max(0, i-300):i+len(canary)])
	}
	if !strings.Contains(log, "missing.tif") {
		t.Error("the log does not say which file is missing")
	}
	families, err := s.metrics.Gather()
	if err != nil || len(families) == 0 {
		t.Fatalf("%d metrics: %v", len(families), err)
	}
	for _, f := range families {
		if text := f.String(); strings.Contains(text, canary) {
			t.Errorf("a metric shows the secret: %s", text)
		}
	}
}
