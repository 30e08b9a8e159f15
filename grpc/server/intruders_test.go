package server

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"

	"github.com/chaski-eo/chaski/grpc/auth"
	chaskiv1 "github.com/chaski-eo/chaski/proto/chaski/v1"
	"github.com/chaski-eo/chaski/tools/testkit/pki"
)

// intrusions is how many tries of each kind the tests below make: CHASKI_SOAK_INTRUDERS (`make soak-hostile`), or few.
func intrusions(t *testing.T) int {
	t.Helper()
	given := os.Getenv("CHASKI_SOAK_INTRUDERS")
	switch {
	case given == "" && testing.Short():
		return 30
	case given == "":
		return 100
	}
	n, err := strconv.Atoi(given)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// secret is in the name of what nobody may hear of but bob, and in his file.
const secret = "sphinx"

// besieged is a server with TLS, certificates of clients and tokens, whose clients alice and bob each have a root.
type besieged struct {
	*guardedServer
	roots        string // alice, bob and outside are in it
	mine, theirs string // files of alice and bob
	alice, bob   string // tokens
	own          pki.Pair
}

func besiege(t *testing.T) *besieged {
	t.Helper()
	b := &besieged{roots: t.TempDir()}
	b.mine = filepath.Join(b.roots, "alice", "good", "a.tif")
	b.theirs = filepath.Join(b.roots, "bob-"+secret, "a.tif")
	copyFile(t, b.mine, "raster", "tog", "tog-odd-16.tif")
	// Another raster, whose bytes say whose it is.
	copyFile(t, b.theirs, "raster", "tog", "tog-constant.tif")
	f, err := os.OpenFile(b.theirs, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(secret); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	var lines [2]string
	b.alice, lines[0] = line(t, auth.Client{Name: "alice", Roots: []string{filepath.Join(b.roots, "alice")}})
	b.bob, lines[1] = line(t, auth.Client{Name: "bob", Roots: []string{filepath.Dir(b.theirs)}})
	b.guardedServer = serveGuarded(t, Options{Roots: []string{b.roots}}, lines[0]+lines[1], true)
	b.own = b.authority.Issue(t, "a machine", pki.Valid())
	return b
}

// call is one call of the service about a path: it returns what came, without what names the call.
type call func(ctx context.Context, c chaskiv1.ChaskiClient, path string) ([]byte, error)

// calls are all ways to get something of a file.
func calls() map[string]call {
	return map[string]call{
		"info": func(ctx context.Context, c chaskiv1.ChaskiClient, path string) ([]byte, error) {
			r, err := c.Info(ctx, &chaskiv1.InfoRequest{Path: path})
			return r.GetJson(), err
		},
		"read": func(ctx context.Context, c chaskiv1.ChaskiClient, path string) (got []byte, err error) {
			s, err := c.Read(ctx, &chaskiv1.ReadRequest{Paths: []string{path}})
			if err != nil {
				return nil, err
			}
			return drain(s.Recv)
		},
		"describe": func(ctx context.Context, c chaskiv1.ChaskiClient, path string) ([]byte, error) {
			r, err := c.Describe(ctx, &chaskiv1.DescribeRequest{Spec: []byte(`{"version":1,"batch_size":1,"source":` +
				strconv.Quote(path) + `}`)})
			if err != nil {
				return nil, err
			}
			return []byte(r.GetFingerprint() + r.GetSpecHash() + strconv.FormatInt(r.GetSamples(), 10)), nil
		},
	}
}

// drain returns all messages of an answer.
func drain[M proto.Message](recv func() (M, error)) (got []byte, err error) {
	for {
		m, err := recv()
		if errors.Is(err, io.EOF) {
			return got, nil
		}
		if err != nil {
			return got, err
		}
		// The generated code writes fields in their order.
		if got, err = (proto.MarshalOptions{Deterministic: true}).MarshalAppend(got, m); err != nil {
			return got, err
		}
	}
}

// as returns a context with a token.
func as(ctx context.Context, token string) context.Context {
	if token == "" {
		return ctx
	}
	return metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+token)
}

// quietAbout checks that a text says nothing about bob, and no token.
func (b *besieged) quietAbout(t *testing.T, what, text string) {
	t.Helper()
	for _, word := range []string{secret, b.alice, b.bob} {
		if strings.Contains(text, word) {
			t.Errorf("%s: %q is in %q", what, word, text)
		}
	}
}

// TestStrangers promises that nobody gets anything without a token and a certificate that are right, by any call and
// however often, and that no text says a token or what there is.
func TestStrangers(t *testing.T) {
	b := besiege(t)
	other := pki.New(t, "another")
	expired, foreign := b.authority.Issue(t, "alice", pki.Expired()), other.Issue(t, "alice", pki.Valid())
	// A connection is refused once; then calls fail until the next try, and refused calls have a budget for each
	// connection. So there is one for each few calls.
	tries := intrusions(t)
	dials := max(tries/100, 2)
	for name, c := range map[string]struct {
		authority *pki.Authority
		own       *pki.Pair
		token     string
		code      codes.Code
		dials     int
	}{
		"no token":            {b.authority, &b.own, "", codes.Unauthenticated, dials},
		"wrong token":         {b.authority, &b.own, "new", codes.Unauthenticated, dials},
		"plain text":          {nil, nil, b.alice, codes.Unavailable, dials},
		"no certificate":      {b.authority, nil, b.alice, codes.Unavailable, dials},
		"expired certificate": {b.authority, &expired, b.alice, codes.Unavailable, dials},
		"other authority":     {b.authority, &foreign, b.alice, codes.Unavailable, dials},
	} {
		t.Run(name, func(t *testing.T) {
			refused := 0
			for range c.dials {
				client := b.asker(t, c.authority, c.own)
				for i := 0; i < max(tries/10/c.dials, 7); {
					for what, call := range calls() {
						token := c.token
						if token == "new" {
							token = auth.NewToken()
						}
						got, err := call(as(t.Context(), token), client, b.theirs)
						if len(got) > 0 || codeOf(err) != c.code {
							t.Fatalf("%s: %d bytes, %v, not %v", what, len(got), err, c.code)
						}
						b.quietAbout(t, what, err.Error())
						if token != "" && strings.Contains(err.Error(), token) {
							t.Errorf("%s: the error shows a token: %v", what, err)
						}
						i++
						refused++
					}
				}
			}
			t.Logf("%d calls refused, over %d connections", refused, c.dials)
		})
	}
	for _, token := range []string{b.alice, b.bob} {
		if log := b.log.String(); strings.Contains(log, token) {
			t.Error("the log shows a token")
		}
	}
}

// TestOtherTenants promises that a client gets nothing by paths that the kernel takes out of its root, whatever way
// they go, and that the refusal is the same whether there is a file or not.
func TestOtherTenants(t *testing.T) {
	b := besiege(t)
	root := filepath.Join(b.roots, "alice")
	for link, to := range map[string]string{"out": "../" + filepath.Base(filepath.Dir(b.theirs)), "in": "good",
		"out.tif": b.theirs, "gone": "../nobody", "self": "."} {
		if err := os.Symlink(to, filepath.Join(root, link)); err != nil {
			t.Fatal(err)
		}
	}
	client, all := b.asker(t, b.authority, &b.own), calls()
	names := []string{"..", "..", ".", "", "alice", "bob-" + secret, "out", "out", "in", "self", "gone", "good"}
	last := []string{"a.tif", "a.tif", "none.tif", "out.tif", "../out.tif"}
	rnd := rand.New(rand.NewPCG(15, 3))
	texts := map[string]string{} // by call
	var outside, inside int
	for range intrusions(t) {
		path := root
		for range rnd.IntN(6) {
			path += "/" + names[rnd.IntN(len(names))]
		}
		path += "/" + last[rnd.IntN(len(last))]
		if !leadsOut(root, path) {
			inside++
			continue
		}
		if outside++; outside%8 == 0 { // a connection of refused calls only is closed after a hundred
			client = b.asker(t, b.authority, &b.own)
		}
		for what, call := range all {
			got, err := call(as(t.Context(), b.alice), client, path)
			if len(got) > 0 || codeOf(err) != codes.NotFound {
				t.Fatalf("%s of %s: %d bytes, %v", what, path, len(got), err)
			}
			text := strings.ReplaceAll(err.Error(), path, "PATH")
			if first, ok := texts[what]; ok && text != first {
				t.Fatalf("%s of %s: %q, and of others %q", what, path, text, first)
			}
			texts[what] = text
			b.quietAbout(t, what, text)
		}
	}
	if outside < inside/10 || outside == 0 {
		t.Errorf("%d paths lead outside, %d inside", outside, inside)
	}
	t.Logf("%d paths that lead outside, each by %d calls", outside, len(all))
}

// leadsOut reports whether the kernel goes out of root by a path that begins with it, and does not come back. A name
// that is missing below the root does not lead out; a link to nowhere does, for all of those here are to outside.
func leadsOut(root, path string) bool {
	at, prefix := root, root
	for name := range strings.SplitSeq(path[len(root)+1:], "/") {
		prefix += "/" + name
		real, err := filepath.EvalSymlinks(prefix)
		if err != nil {
			if _, err := os.Lstat(prefix); err == nil {
				return true
			}
			break
		}
		at = real
	}
	return at != root && !strings.HasPrefix(at, root+"/")
}

// TestLinksToAnotherTenant promises that a client whose helper exchanges links below its root, while it asks, gets what
// lies below its root, whole, or a refusal, by any call; and that no refusal says where a link leads.
func TestLinksToAnotherTenant(t *testing.T) {
	b := besiege(t)
	flip := filepath.Join(b.roots, "alice", "flip")
	if err := os.Mkdir(flip, 0o777); err != nil {
		t.Fatal(err)
	}
	bob := filepath.Dir(b.theirs)
	set := func(bad bool) {
		for name, to := range map[string][2]string{
			"dir": {"../good", bob}, "file.tif": {"../good/a.tif", b.theirs},
		} {
			i := 0
			if bad {
				i = 1
			}
			temporary := filepath.Join(flip, "."+name)
			_ = os.Symlink(to[i], temporary)
			_ = os.Rename(temporary, filepath.Join(flip, name))
		}
	}
	set(false)
	client, all := b.asker(t, b.authority, &b.own), calls()
	type asked struct{ what, path string }
	want := map[asked]string{}
	var list []asked
	for what, call := range all {
		for _, p := range []string{flip + "/dir/a.tif", flip + "/file.tif"} {
			got, err := call(as(t.Context(), b.alice), client, p)
			if err != nil || len(got) == 0 {
				t.Fatalf("%s of %s: %v", what, p, err)
			}
			want[asked{what, p}] = string(got)
			list = append(list, asked{what, p})
		}
	}
	stop, done := make(chan struct{}), make(chan struct{})
	var flips atomic.Int64
	go func() {
		defer close(done)
		for bad := true; ; bad = !bad {
			select {
			case <-stop:
				return
			default:
				set(bad)
				flips.Add(1)
			}
		}
	}()
	defer func() { close(stop); <-done }()
	tries, read, refused := intrusions(t), 0, 0
	for i := 0; i < tries || (read == 0 || refused == 0) && i < 1000*tries; i++ {
		a := list[i%len(list)]
		got, err := all[a.what](as(t.Context(), b.alice), client, a.path)
		if err != nil {
			if len(got) > 0 && !strings.HasPrefix(want[a], string(got)) {
				t.Fatalf("%s of %s: something else before %v", a.what, a.path, err)
			}
			b.quietAbout(t, a.what, err.Error())
			refused++
			continue
		}
		if string(got) != want[a] {
			t.Fatalf("%s of %s: it is not what lies below the root", a.what, a.path)
		}
		read++
	}
	if read == 0 || refused == 0 {
		t.Errorf("%d tries read, %d were refused", read, refused)
	}
	t.Logf("%d tries: %d read what is below the root, %d were refused; the links were exchanged %d times",
		read+refused, read, refused, flips.Load())
}

// nonsense sends bytes as they are.
type nonsense struct{}

func (nonsense) Name() string                    { return "proto" }
func (nonsense) Marshal(v any) ([]byte, error)   { return *v.(*[]byte), nil }
func (nonsense) Unmarshal(b []byte, v any) error { *v.(*[]byte) = b; return nil }

// TestHostileStreams promises that no stream of nonsense, or of tickets for a dataset of somebody else, gets a batch,
// and that it is told nothing in a text of at most 4 KiB.
func TestHostileStreams(t *testing.T) {
	b := besiege(t)
	client := b.asker(t, b.authority, &b.own)
	theirs, err := client.Describe(as(t.Context(), b.bob), &chaskiv1.DescribeRequest{
		Spec: []byte(`{"version":1,"batch_size":1,"source":` + strconv.Quote(b.theirs) + `}`)})
	if err != nil {
		t.Fatal(err)
	}
	conn := b.dialed(t, b.authority, &b.own)
	handles := []string{theirs.GetHandle(), theirs.GetSpecHash(), theirs.GetFingerprint(), "", "x",
		strings.Repeat("y", 10_000), b.theirs}
	told := map[codes.Code]int{}
	for i := range max(intrusions(t)/10, 20) {
		rnd := rand.New(rand.NewPCG(uint64(i), 15))
		ctx, cancel := context.WithCancel(as(t.Context(), b.alice))
		s, err := conn.NewStream(ctx, &grpc.StreamDesc{ClientStreams: true, ServerStreams: true},
			chaskiv1.Chaski_Stream_FullMethodName, grpc.ForceCodec(nonsense{}))
		if err != nil {
			t.Fatal(err)
		}
		for range 1 + rnd.IntN(6) {
			message := hostile(t, rnd, handles)
			_ = s.SendMsg(&message) // Recv says why, if this fails
		}
		_ = s.CloseSend()
		for {
			var message []byte
			if err = s.RecvMsg(&message); err != nil {
				break
			}
			var r chaskiv1.StreamReply
			if perr := proto.Unmarshal(message, &r); perr != nil || r.GetFault() == nil {
				t.Fatalf("stream %d got %v, %v", i, &r, perr)
			}
			b.quietAbout(t, "a fault", strings.ReplaceAll(r.GetFault().GetMessage(), b.theirs, "PATH"))
		}
		cancel()
		text := ""
		if !errors.Is(err, io.EOF) {
			text = err.Error()
			told[codeOf(err)]++
		} else {
			told[codes.OK]++
		}
		if len(text) > 4<<10 {
			t.Errorf("stream %d: a text of %d bytes", i, len(text))
		}
		b.quietAbout(t, "a stream", strings.ReplaceAll(text, b.theirs, "PATH"))
	}
	t.Logf("streams ended with %v", told)
	if told[codes.OK]+told[codes.InvalidArgument]+told[codes.Internal] == 0 {
		t.Errorf("no stream came to its end: %v", told)
	}
	if got, err := calls()["read"](as(t.Context(), b.alice), client, b.mine); err != nil || len(got) == 0 {
		t.Errorf("afterwards alice gets %d bytes, %v", len(got), err)
	}
}

// hostile returns a message of a stream: of random fields, or of random bytes.
func hostile(t *testing.T, rnd *rand.Rand, handles []string) []byte {
	t.Helper()
	var r chaskiv1.StreamRequest
	random := func(n int) []byte {
		b := make([]byte, rnd.IntN(n+1))
		for i := range b {
			b[i] = byte(rnd.Uint32())
		}
		return b
	}
	extreme := []int64{0, 1, -1, 1<<31 - 1, 1 << 31, 1<<63 - 1, -1 << 63, rnd.Int64()}
	number := func() int64 { return extreme[rnd.IntN(len(extreme))] }
	switch rnd.IntN(5) {
	case 0, 1:
		r.Kind = &chaskiv1.StreamRequest_Ticket{Ticket: &chaskiv1.Ticket{Id: uint64(number()),
			Handle: handles[rnd.IntN(len(handles))], Epoch: uint64(number()), First: number(), Count: uint32(number()),
			RowStart: uint32(number()), RowStride: uint32(number()), Native: rnd.IntN(2) == 0}}
	case 2:
		r.Kind = &chaskiv1.StreamRequest_Credit{Credit: &chaskiv1.Credit{Batches: uint32(number())}}
	case 3:
		r.Kind = &chaskiv1.StreamRequest_Attach{Attach: &chaskiv1.Attach{Secret: random(40), Stream: uint64(number())}}
	case 4:
		return random(300)
	}
	b, err := proto.Marshal(&r)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
