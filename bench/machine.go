package bench

import (
	"bufio"
	"os"
	"runtime"
	"strings"

	"github.com/chaski-eo/chaski/internal/zstd"
)

// Machine describes the machine of a measurement.
type Machine struct {
	CPU        string `json:"cpu"`
	Cores      int    `json:"cores"` // usable by this process
	GOMAXPROCS int    `json:"gomaxprocs"`
	Go         string `json:"go"`
	OS         string `json:"os"`
	Arch       string `json:"arch"`
	Zstd       string `json:"zstd"` // name of the decoder
}

// ThisMachine describes the machine that this process runs on.
func ThisMachine() Machine {
	return Machine{
		CPU: cpuModel(), Cores: runtime.NumCPU(), GOMAXPROCS: runtime.GOMAXPROCS(0), Go: runtime.Version(),
		OS: runtime.GOOS + osRelease(), Arch: runtime.GOARCH, Zstd: zstd.Name,
	}
}

// cpuModel reads Linux's /proc/cpuinfo: "model name" on amd64; other machines may not say.
func cpuModel() string {
	file, err := os.Open("/proc/cpuinfo")
	if err != nil {
		return "unknown"
	}
	defer file.Close()
	s := bufio.NewScanner(file)
	for s.Scan() {
		name, value, ok := strings.Cut(s.Text(), ":")
		if name = strings.TrimSpace(name); ok && (name == "model name" || name == "Model") {
			return strings.TrimSpace(value)
		}
	}
	return "unknown"
}

func osRelease() string {
	data, err := os.ReadFile("/proc/sys/kernel/osrelease")
	if err != nil {
		return ""
	}
	return " " + strings.TrimSpace(string(data))
}
