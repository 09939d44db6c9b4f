package embedded

import "sync"

// starting lets one FerretDB of a process start at a time: its New writes variables of its own package, which two of them at
// once, as in parallel tests, must not.
var starting sync.Mutex
