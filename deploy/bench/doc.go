// Command bench measures the HTTP APIs against their bounds, in ratios of one run.
//
// Engines and services run as processes of their own (bin/, built by `make build`), the load generator in this one, all on the
// loopback address. POST /message/send is measured in turns with the two halves of which it cannot do without:
//
//	(a) a bare Echo handler that decodes and answers the same JSON
//	(b) bare synchronous JetStream publishes of the same event from 64 goroutines
//
// One after the other they bound it at 1/(1/a + 1/b). Turns are short and alternate, and the median of the turns counts, because
// the machine is shared. The processing layer does not run while the APIs are measured: it would eat their cores.
//
// The caller is Go's own HTTP client, or, with -lean, a generator that does the least work (docs/decisions/0013-benchmark-caller.md).
//
// Read main.go for the run, load.go and ordinary.go for the two generators, bare.go for the two halves, internal/rig for CPU and memory.
package main
