// Command panel serves the panel.
package main

import (
	"os"

	"github.com/parley-chat/parley/pkg/ops"
	"github.com/parley-chat/parley/pkg/service"
	"github.com/parley-chat/parley/services/panel"
)

func main() {
	ops.CollectSeldom()
	os.Exit(service.Main("panel", panel.New))
}
