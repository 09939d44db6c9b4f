package attachment

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/url"

	"github.com/parley-chat/parley/pkg/file"
)

// Prefix is the path under which files are served.
const Prefix = "/files/"

// PathOf returns the unguessable path of a file.
func PathOf(f file.File) string { return Prefix + f.ID + "/" + url.PathEscape(f.Name) }

// data is the content of a message of type IMAGE, VIDEO, AUDIO or FILE (spec, "Observed data fields").
type data struct {
	URL       string `json:"url"`
	Mime      string `json:"mime"`
	Path      string `json:"path"`
	Size      int64  `json:"size"` // bytes
	Caption   string `json:"caption"`
	FileName  string `json:"fileName"`
	Extension string `json:"extension"`
}

// Data returns the data of a message with the file. base is the public address of this API.
func (k Kept) Data(base, caption string) (json.RawMessage, error) {
	path := PathOf(k.File)
	encoded, err := json.Marshal(data{
		URL: base + path, Mime: k.Kind.Mime, Path: path, Size: k.Size, Caption: caption, FileName: k.Name,
		Extension: cmp.Or(k.Kind.Extension, file.ExtensionOf(k.Name)),
	})
	if err != nil {
		return nil, fmt.Errorf("encoding the data of a file: %w", err)
	}
	return encoded, nil
}
