// Package race tells tests whether the race detector is on. Under it code allocates more and runs ten to forty times
// slower, so tests that count allocations are skipped, and long ones try fewer cases.
package race
