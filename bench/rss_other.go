//go:build !unix

package bench

import "time"

func maxRSS(bool) int64 { return 0 }

func cpuTime() time.Duration { return 0 }
