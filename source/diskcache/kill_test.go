//go:build unix

package diskcache

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"testing"
	"time"
)

const (
	// childVariable names the folder of a process that uses it until it is killed, with killQuota.
	childVariable = "CHASKI_TEST_DISKCACHE"
	// soakVariable is how many processes are killed.
	soakVariable = "CHASKI_SOAK_CACHE"
	killQuota    = 2 * objectBytes
)

func TestMain(m *testing.M) {
	if path := os.Getenv(childVariable); path != "" {
		fmt.Println(useFolder(path))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// useFolder reads and keeps random ranges until bytes are wrong.
func useFolder(path string) error {
	f, err := Open(path, killQuota)
	if err != nil {
		return err
	}
	defer f.Close()
	for {
		id, version := rand.IntN(8), rand.IntN(20)/19 // a new version comes at times
		object := NameObject(string(rune('a'+id)), "", string(rune('0'+version)), objectBytes)
		content := contentOf(id, version)
		from := rand.IntN(objectBytes)
		want := content[from:min(objectBytes, from+1+rand.IntN(3*pageBytes))]
		got := make([]byte, len(want))
		missing := f.Read(object, got, int64(from))
		if missing.From < missing.End {
			low, high := missing.From-int64(from), missing.End-int64(from)
			copy(got[low:high], want[low:high])
		}
		if !bytes.Equal(got, want) {
			return fmt.Errorf("wrong bytes from %d on, where %v was missing", from, missing)
		}
		f.Keep(object, got, int64(from))
	}
}

// TestKilledEngines: of engines that share a folder some are killed at random moments, and others come. None reads a
// wrong byte, nothing is damaged, and the files never take more than the quota.
func TestKilledEngines(t *testing.T) {
	kills := 6
	if n, err := strconv.Atoi(os.Getenv(soakVariable)); err == nil {
		kills = n
	}
	path := t.TempDir()
	type child struct {
		process *exec.Cmd
		said    bytes.Buffer
	}
	start := func() *child {
		c := &child{process: exec.Command(os.Args[0])}
		c.process.Env = append(os.Environ(), childVariable+"="+path)
		c.process.Stdout = &c.said
		if err := c.process.Start(); err != nil {
			t.Fatal(err)
		}
		return c
	}
	end := func(c *child) {
		_ = c.process.Process.Kill()
		_ = c.process.Wait() // it was killed
		if c.said.Len() > 0 {
			t.Fatalf("an engine ended: %s", c.said.String())
		}
	}
	var children []*child
	defer func() {
		for _, c := range children {
			end(c)
		}
	}()
	for k := range kills {
		for len(children) < 3 {
			children = append(children, start())
		}
		for onDisk(t, path) == 0 { // processes may take long to start
			time.Sleep(10 * time.Millisecond)
		}
		time.Sleep(time.Duration(rand.IntN(200)) * time.Millisecond)
		gone := rand.IntN(len(children))
		end(children[gone])
		children = append(children[:gone], children[gone+1:]...)
		if k%10 == 9 { // the next engine is alone, and counts anew
			for _, c := range children {
				end(c)
			}
			children = nil
		}
		if n := onDisk(t, path); n > killQuota {
			t.Fatalf("after %d kills %d bytes are on disk, the quota is %d", k+1, n, killQuota)
		}
	}
	ranges, damaged, err := Verify(path, func(int64) {})
	if ranges == 0 || damaged > 0 || err != nil {
		t.Errorf("%d ranges, %d damaged, %v", ranges, damaged, err)
	}
}
