package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/parley-chat/parley/pkg/atomicfile"
	"github.com/parley-chat/parley/pkg/credential"
)

// visitorKeys loads the keys that sign visitor tokens. They are created at the first start only: with new keys every visitor
// would have to register again.
func visitorKeys(path string) (*credential.KeySet, error) {
	_, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		keys, err := credential.GenerateKeySet()
		if err != nil {
			return nil, fmt.Errorf("creating the visitor keys: %w", err)
		}
		if err := atomicfile.Write(path, keys); err != nil {
			return nil, err
		}
	}
	return credential.LoadKeySet(path)
}
