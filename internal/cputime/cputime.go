// Package cputime is the clock of benchmarks, and of tests that bound how long something takes. It counts processor
// time, which other work on the machine stretches less than elapsed time. Systems other than Unix get elapsed time.
package cputime
