package gcs

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"gocloud.dev/blob"
	"gocloud.dev/gcerrors"
)

// cloud is Cloud Storage as far as uploads and listings need it, after its documentation of resumable uploads.
type cloud struct {
	objects map[string][]byte
	session []byte
	name    string
	broken  int // every so many requests for a part fail, half of them after the part was stored
	parts   int
	lie     bool // about the checksum
}

func (c *cloud) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	switch query := r.URL.Query(); {
	case r.Method == http.MethodGet:
		c.list(w, query.Get("prefix"), query.Get("pageToken"))
	case query.Get("ifGenerationMatch") == "0" && c.objects[query.Get("name")] != nil:
		w.WriteHeader(http.StatusPreconditionFailed)
		fmt.Fprint(w, `{"error":{"message":"it is there"}}`)
	case query.Get("uploadType") == "media":
		c.store(w, query.Get("name"), body)
	case query.Get("uploadType") == "resumable":
		c.name, c.session = query.Get("name"), nil
		w.Header().Set("Location", "http://"+r.Host+"/session")
	case r.URL.Path == "/session":
		c.part(w, r.Header.Get("Content-Range"), body)
	default:
		http.Error(w, r.URL.String(), http.StatusBadRequest)
	}
}

func (c *cloud) part(w http.ResponseWriter, span string, body []byte) {
	c.parts++
	fails := c.broken > 0 && c.parts%c.broken == 0
	span, total, _ := strings.Cut(strings.TrimPrefix(span, "bytes "), "/")
	if fails && c.parts/c.broken%2 == 0 {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	if first, _, ok := strings.Cut(span, "-"); ok {
		if first != strconv.Itoa(len(c.session)) {
			http.Error(w, "not the next byte", http.StatusBadRequest)
			return
		}
		if total == "*" && len(body)%unit != 0 {
			http.Error(w, "not a multiple of 256 KiB", http.StatusBadRequest)
			return
		}
		if fails { // a part of the part
			body = body[:len(body)/unit/2*unit]
		}
		c.session = append(c.session, body...)
	}
	switch {
	case fails:
		w.WriteHeader(http.StatusServiceUnavailable)
	case total == strconv.Itoa(len(c.session)):
		c.store(w, c.name, c.session)
	default:
		if len(c.session) > 0 {
			w.Header().Set("Range", fmt.Sprintf("bytes=0-%d", len(c.session)-1))
		}
		w.WriteHeader(http.StatusPermanentRedirect)
	}
}

func (c *cloud) store(w http.ResponseWriter, name string, b []byte) {
	c.objects[name] = bytes.Clone(b)
	sum := crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli))
	if c.lie {
		sum++
	}
	_ = json.NewEncoder(w).Encode(map[string]string{"size": strconv.Itoa(len(b)),
		"crc32c": base64.StdEncoding.EncodeToString(binary.BigEndian.AppendUint32(nil, sum))})
}

// list answers with pages of two objects.
func (c *cloud) list(w http.ResponseWriter, prefix, token string) {
	var names []string
	for name := range c.objects {
		if strings.HasPrefix(name, prefix) && name > token {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	answer := map[string]any{}
	if len(names) > 2 {
		names, answer["nextPageToken"] = names[:2], names[1]
	}
	items := []map[string]string{}
	for _, name := range names {
		items = append(items, map[string]string{"name": name, "size": strconv.Itoa(len(c.objects[name])),
			"generation": "7"})
	}
	answer["items"] = items
	_ = json.NewEncoder(w).Encode(answer)
}

func open(t *testing.T, c *cloud) *blob.Bucket {
	t.Helper()
	c.objects = map[string][]byte{}
	server := httptest.NewServer(c)
	t.Cleanup(server.Close)
	b := blob.NewBucket(&bucket{client: server.Client(), base: server.URL, name: "chips", wait: time.Millisecond})
	t.Cleanup(func() { _ = b.Close() }) // nothing is left to write
	return b
}

// part is the size of the parts of uploads.
const part = 4 * unit

// put writes an object in pieces of random lengths.
func put(t *testing.T, b *blob.Bucket, name string, data []byte, o blob.WriterOptions) error {
	t.Helper()
	o.BufferSize, o.ContentType, o.DisableContentTypeDetection = part, "application/octet-stream", true
	w, err := b.NewWriter(t.Context(), name, &o)
	if err != nil {
		t.Fatal(err)
	}
	for random := rand.New(rand.NewPCG(1, 2)); len(data) > 0; {
		n := min(len(data), 1+random.IntN(2*part))
		if _, err := w.Write(data[:n]); err != nil {
			break // Close returns it
		}
		data = data[n:]
	}
	return w.Close()
}

func TestUploads(t *testing.T) {
	for _, broken := range []int{0, 3, 4, 5, 7} {
		for _, size := range []int{0, 1, part - 1, part, part + 1, 3 * part, 3*part + 5} {
			c := &cloud{broken: broken}
			b := open(t, c)
			data := make([]byte, size)
			for i := range data {
				data[i] = byte(i * i >> 8)
			}
			if err := put(t, b, "dir/a b?.bin", data, blob.WriterOptions{}); err != nil {
				t.Errorf("%d bytes, every %d requests fail: %v", size, broken, err)
			} else if got, there := c.objects["dir/a b?.bin"]; !there || !bytes.Equal(got, data) {
				t.Errorf("%d bytes, every %d requests fail: the store has %d others", size, broken, len(got))
			}
		}
	}
}

func TestUploadFails(t *testing.T) {
	for _, size := range []int{10, 2*unit + 1} {
		c := &cloud{}
		b := open(t, c)
		if err := put(t, b, "a", []byte("first"), blob.WriterOptions{IfNotExist: true}); err != nil {
			t.Fatal(err)
		}
		err := put(t, b, "a", make([]byte, size), blob.WriterOptions{IfNotExist: true})
		if gcerrors.Code(err) != gcerrors.FailedPrecondition || string(c.objects["a"]) != "first" {
			t.Errorf("%d bytes over an object: got %v, want FailedPrecondition and the object as it was", size, err)
		}
		c.lie = true
		if err := put(t, b, "b", make([]byte, size), blob.WriterOptions{}); err == nil ||
			!strings.Contains(err.Error(), "checksum") {
			t.Errorf("%d bytes, another checksum: got %v, want an error", size, err)
		}
		c.lie, c.broken = false, 1
		if err := put(t, b, "c", make([]byte, 2*part+1), blob.WriterOptions{}); err == nil {
			t.Error("every request fails: got no error")
		}
		if c.objects["c"] != nil {
			t.Error("a failed upload left an object")
		}
	}
}

func TestLists(t *testing.T) {
	c := &cloud{}
	b := open(t, c)
	for _, name := range []string{"x/1", "x/2", "x/3", "x/4", "x/5", "y"} {
		c.objects[name] = []byte(name)
	}
	var got []string
	token := blob.FirstPageToken
	for len(token) > 0 {
		page, next, err := b.ListPage(t.Context(), token, 1000, &blob.ListOptions{Prefix: "x/"})
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range page {
			if tag := (&store{}).ETag(o); tag != "7" || o.Size != 3 {
				t.Errorf("%s: got tag %q, %d bytes, want 7, 3", o.Key, tag, o.Size)
			}
			got = append(got, o.Key)
		}
		token = next
	}
	if want := []string{"x/1", "x/2", "x/3", "x/4", "x/5"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
