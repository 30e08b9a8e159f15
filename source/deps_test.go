package source

import (
	"os/exec"
	"strings"
	"testing"
)

// TestNoSDKInCorePackages: packages that read files, and those that load batches from them, compile
// neither a cloud SDK nor our HTTP client.
func TestNoSDKInCorePackages(t *testing.T) {
	const module = "github.com/chaski-eo/chaski/"
	out, err := exec.Command("go", "list", "-deps", module+"source", module+"tiff", module+"rumi",
		module+"store/catalog", module+"loader").Output()
	if err != nil {
		t.Skip("needs the go command: ", err)
	}
	deps := strings.Fields(string(out))
	if len(deps) < 20 {
		t.Fatalf("%d packages", len(deps))
	}
	for _, d := range deps {
		for _, not := range []string{
			"gocloud.dev", "github.com/aws/", "github.com/Azure/", "cloud.google.com/",
			"google.golang.org/api", "go.opentelemetry.io", "github.com/parquet-go",
			"google.golang.org/protobuf", "github.com/twpayne/go-geom",
			module + "source/httpsource", module + "source/blobsource",
		} {
			if strings.HasPrefix(d, not) {
				t.Errorf("%s is compiled in", d)
			}
		}
	}
}
