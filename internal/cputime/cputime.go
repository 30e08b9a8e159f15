// Package cputime is the clock of tests that bound how long something takes: processor time, which a
// machine with other work does not stretch as it does the time on the wall. Where the system does not
// tell it (not Unix), it is the time on the wall after all.
package cputime
