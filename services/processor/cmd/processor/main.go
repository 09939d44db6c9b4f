// Command processor runs Parley's reference processing layer.
package main

import (
	"os"

	"github.com/parley-chat/parley/pkg/service"
	"github.com/parley-chat/parley/services/processor"
)

func main() { os.Exit(service.Main("processor", processor.New)) }
