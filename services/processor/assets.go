package processor

import (
	"io/fs"

	"github.com/parley-chat/parley/services/processor/internal/bot"
)

// DemoAssetsPath is the path under which a web server must serve [DemoAssets]; Config.AssetsURL is that
// server's address.
const DemoAssetsPath = bot.AssetsPath

// DemoAssets holds the files that the demo bot's messages link to (parley.png).
func DemoAssets() fs.FS { return bot.Assets() }
