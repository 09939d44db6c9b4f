// Command generate writes proto-events/asyncapi.yaml and docs/events.md from the .proto files and the examples.
// `make generate` runs it in the root of the repository.
package main

import (
	"bytes"
	"context"
	"fmt"
	"os"

	"go.yaml.in/yaml/v3"
)

const (
	protoRoot    = "proto-events/proto"
	examplesDir  = "proto-events/examples"
	asyncAPIPath = "proto-events/asyncapi.yaml"
	eventsPage   = "docs/events.md"
)

func main() {
	if err := run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "generate:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	c, err := readContract(ctx)
	if err != nil {
		return err
	}
	examples, err := readExamples(c)
	if err != nil {
		return err
	}
	var document bytes.Buffer
	encoder := yaml.NewEncoder(&document)
	encoder.SetIndent(2)
	if err := encoder.Encode(asyncAPI(c, examples)); err != nil {
		return err
	}
	if err := os.WriteFile(asyncAPIPath, document.Bytes(), 0o644); err != nil {
		return err
	}
	return os.WriteFile(eventsPage, page(c), 0o644)
}
