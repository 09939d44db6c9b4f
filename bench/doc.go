// Command bench measures the HTTP APIs relative to their theoretical bounds, as ratios within one run.
//
// NATS and the services run as separate processes (bin/, built by `make build`), the load generator in this one, all on
// the loopback address. POST /message/send is measured in alternation with its two unavoidable halves:
//
//	(a) a bare Echo handler that decodes and answers the same JSON
//	(b) bare synchronous JetStream publishes of the same event from 64 goroutines
//
// In sequence they bound it at 1/(1/a + 1/b). Turns are short and alternate, and the median of the turns counts,
// because the machine is shared. The processing layer does not run while the APIs are measured, because it would
// compete for the cores.
//
// The caller is Go's HTTP client, or, with -lean, a minimal generator (docs/decisions/0013-code.md).
//
// Read main.go for the run, load.go and ordinary.go for the two generators, bare.go for the two halves, internal/rig
// for CPU and memory.
package main
