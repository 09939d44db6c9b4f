package bot

import (
	"embed"
	"io/fs"
	"path"
	"strings"
)

//go:generate go run ./assets/draw -o assets/parley.png

//go:embed assets/parley.png
var assets embed.FS

// AssetsPath is the path under which a web server must serve [Assets].
const AssetsPath = "/demo/assets/"

const pictureName = "parley.png"

// Assets holds the files that the demo bot's messages link to, to be served under [AssetsPath].
func Assets() fs.FS {
	sub, err := fs.Sub(assets, "assets")
	if err != nil {
		panic("bot: the embedded folder is missing: " + err.Error())
	}
	return sub
}

// picture is the data of the demo bot's IMAGE message.
type picture struct {
	URL       string `json:"url"`
	Mime      string `json:"mime"`
	Path      string `json:"path"`
	Size      int    `json:"size"` // bytes
	Caption   string `json:"caption"`
	FileName  string `json:"fileName"`
	Extension string `json:"extension"`
}

// newPicture returns the picture with its public address below baseURL, where [Assets] are served.
func newPicture(baseURL string) picture {
	content, err := assets.ReadFile(path.Join("assets", pictureName))
	if err != nil {
		panic("bot: the embedded picture is missing: " + err.Error())
	}
	p := picture{
		Mime:      "image/png",
		Path:      AssetsPath + pictureName,
		Size:      len(content),
		Caption:   "Two speech bubbles, drawn by a program.",
		FileName:  pictureName,
		Extension: strings.TrimPrefix(path.Ext(pictureName), "."),
	}
	p.URL = strings.TrimRight(baseURL, "/") + p.Path
	return p
}
